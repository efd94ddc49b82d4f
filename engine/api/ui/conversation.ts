import type { Receipt } from '../../../proxy/ledger/index.ts';
import { contentText } from '../render.ts';
import type { EngineServices } from '../service.ts';

export type Message = Awaited<ReturnType<EngineServices['memory']['library']['readSession']>>[number];

const MAX_CHARS = 50_000;

interface Entry {
  /** Place in the session. */
  readonly seq: number;
  readonly role: string;
  readonly kind: 'text' | 'tool_use' | 'tool_result' | 'thinking';
  /** Verbatim but for redacted spans and what `left_out` counts. */
  readonly text: string;
  /** Characters at the end that are not part of `text`; absent for none. */
  readonly left_out?: number;
  /** Place in `lines` of what stands for it in the newest request; absent where it is sent. */
  readonly trimmed_by?: number;
}

/** The session as it was, and what its newest request had in place of the turns that were trimmed. */
export async function sessionView(
  { memory, receipts, titles }: Pick<EngineServices, 'memory' | 'receipts' | 'titles'>,
  { sessionId, from, limit }: { readonly sessionId: string; readonly from: number; readonly limit: number },
) {
  const { library } = memory;
  const { session_id, title, project, updated_at } = await library.showSession(sessionId);
  const requests = receipts.ofSession(session_id);
  const messages = await library.readSession(session_id);
  const trims = trimmed(messages, requests[0] ?? { dropped: [], added: [] });
  const entries = messages.flatMap((message) => getEntries(message, trims.lineOf.get(message)));
  const own = (await titles.of([session_id])).get(session_id);
  return {
    ...{ session_id, title: own ?? title, project, updated_at },
    /** Of all pages. */
    total: entries.length,
    messages: entries.slice(from, from + limit).map((entry, place): Entry => ({ ...entry, seq: from + place })),
    lines: trims.lines,
    /** Newest first. */
    requests: requests.map(({ request_id, at, economics }) => {
      const { decision, received_tokens, sent_tokens, saved_usd } = economics;
      return { request_id, at, decision, received_tokens, sent_tokens, saved_usd };
    }),
  };
}

/** Messages of the session that a request left out, with the line that stands for each. */
export function trimmed(messages: readonly Message[], { dropped, added }: Pick<Receipt, 'dropped' | 'added'>) {
  const lines: { readonly text: string; readonly nodes: readonly string[] }[] = [];
  const lineByMessage = new Map<Message, number>();
  for (const { from, nodes, messages: count } of dropped) {
    const preamble =
      added.find((each) => each.channel === 'preamble' && each.nodes.join() === nodes.join())?.text ?? '';
    const own = getLines(preamble, nodes).map((line) => ({ ...line, place: lines.push(line) - 1 }));
    let left = count;
    for (const message of messages) {
      // The first message always stays.
      if (message.seq < Math.min(from, 1)) continue;
      const line = own.find((each) => each.nodes.some((id) => message.nodes.includes(id)));
      if (line === undefined || left === 0 || lineByMessage.has(message)) continue;
      lineByMessage.set(message, line.place);
      left -= 1;
    }
  }
  return { lines, lineOf: lineByMessage };
}

/** The lines that name one of these nodes, and the whole text for nodes that none names. */
function getLines(preamble: string, nodes: readonly string[]) {
  const lines = preamble.split('\n').flatMap((text) => {
    const named = nodes.filter((id) => text.includes(id));
    return named.length === 0 ? [] : [{ text, nodes: named }];
  });
  const rest = nodes.filter((id) => !lines.some((line) => line.nodes.includes(id)));
  return rest.length === 0 ? lines : [...lines, { text: preamble, nodes: rest }];
}

type Block = Readonly<Record<string, unknown>>;

function getEntries({ role, content }: Message, line: number | undefined): Omit<Entry, 'seq'>[] {
  const blocks: readonly Block[] = Array.isArray(content)
    ? content
    : [{ type: 'text', text: contentText(content).join('\n') }];
  return blocks.map((block) => {
    const { kind, text } = readBlock(block);
    const left = text.length - MAX_CHARS;
    const entry = { role, kind, text: text.slice(0, MAX_CHARS) };
    return { ...entry, ...(left > 0 ? { left_out: left } : {}), ...(line === undefined ? {} : { trimmed_by: line }) };
  });
}

function readBlock(block: Block): Pick<Entry, 'kind' | 'text'> {
  switch (block['type']) {
    case 'thinking':
      return { kind: 'thinking', text: String(block['thinking']) };
    case 'tool_use':
      return { kind: 'tool_use', text: `${String(block['name'])} ${JSON.stringify(block['input'], null, 2)}` };
    case 'tool_result':
      return { kind: 'tool_result', text: contentText(block['content'] ?? '').join('\n') };
    default:
      return { kind: 'text', text: contentText([block]).join('\n') };
  }
}
