import { contentText } from '../render.ts';
import type { EngineServices } from '../service.ts';
import type { NamedReceipt } from '../summary.ts';
import { type Message, trimmed } from './conversation.ts';

const MAX_CHARS = 200_000;
/** Of a message that was sent as it came. */
const KEPT_CHARS = 2_000;
/** Receipts hold no byte of what Claude Code sent. */
const NOT_KEPT = [
  'What was left out is rebuilt from the stored turns, with secrets redacted',
  'the system prompt and tools are not kept; messages that stayed are those of the stored turns',
  'old thinking blocks are not kept',
];

interface Change {
  readonly kind: 'kept' | 'changed';
  /** Who said it, or where in the body it is. */
  readonly at: string;
  /** As it was received; of a kept message the beginning. */
  readonly removed: string;
  readonly added: string;
  /** Of `removed` before it was shortened. */
  readonly bytes: number;
}

/** A receipt with the whole conversation that it was about, in order: what was kept, left out and added. */
export async function requestView({ memory: { library } }: Pick<EngineServices, 'memory'>, receipt: NamedReceipt) {
  const session = await library.readSession(receipt.session_id);
  // What the request can have had: earlier turns, and the prompt of its own.
  const at = session.findIndex((message) => message.turn === (receipt.turn ?? ''));
  const messages = at < 0 ? session : session.slice(0, at + 1);
  const rangeByMessage = new Map<Message, DroppedPart>();
  for (const range of receipt.dropped) {
    for (const message of trimmed(messages, { ...receipt, dropped: [range] }).lineOf.keys()) {
      if (!rangeByMessage.has(message)) rangeByMessage.set(message, range);
    }
  }
  const insertions = receipt.added.map((each) => ({
    ...each,
    /** Index of a message in the sent body; the newest for what was recalled now. */
    place: each.current === true ? Number.POSITIVE_INFINITY : Number(each.position.split('.')[1] ?? 0),
  }));
  const waiting = new Set(insertions);
  const take = (fits: (each: (typeof insertions)[number]) => boolean) =>
    insertions.filter((each) => waiting.has(each) && fits(each) && waiting.delete(each));
  const changes: Change[] = take(({ channel }) => channel === 'system').map(insertion);
  let sent = 0;
  for (const [range, own] of getRuns(messages, rangeByMessage)) {
    if (range === null) {
      for (const message of own) {
        const added = take(({ channel, place }) => channel !== 'preamble' && place <= sent);
        changes.push(describeKept(message), ...added.map(insertion));
        sent += 1;
      }
    } else {
      const nodes = range.nodes.join();
      const preamble = take((each) => each.channel === 'preamble' && each.nodes.join() === nodes);
      changes.push(describeDropped(range, own, preamble));
    }
  }
  for (const range of receipt.dropped.filter((each) => ![...rangeByMessage.values()].includes(each))) {
    const added = take((each) => each.nodes.join() === range.nodes.join());
    changes.push(describeDropped(range, [], added));
  }
  changes.push(...take(() => true).map(insertion));
  return { ...receipt, changes, not_kept: NOT_KEPT };
}

type DroppedPart = NamedReceipt['dropped'][number];
type AddedPart = NamedReceipt['added'][number];

function getRuns(messages: readonly Message[], rangeByMessage: ReadonlyMap<Message, DroppedPart>) {
  const runs: [DroppedPart | null, Message[]][] = [];
  for (const message of messages) {
    const range = rangeByMessage.get(message) ?? null;
    const last = runs.at(-1);
    if (last !== undefined && last[0] === range) last[1].push(message);
    else runs.push([range, [message]]);
  }
  return runs;
}

function describeKept(message: Message): Change {
  const text = contentText(message.content).join('\n');
  const removed = text.slice(0, KEPT_CHARS);
  return { kind: 'kept', at: message.role, removed, added: '', bytes: Buffer.byteLength(text) };
}

function describeDropped({ from, to }: DroppedPart, messages: readonly Message[], own: readonly AddedPart[]): Change {
  const removed = messages.map(({ role, content }) => `${role}: ${contentText(content).join('\n')}`).join('\n\n');
  const texts = { removed: removed.slice(0, MAX_CHARS), added: own.map(({ text }) => text).join('\n') };
  return { kind: 'changed', at: `messages ${from} to ${to}`, ...texts, bytes: Buffer.byteLength(removed) };
}

function insertion({ position, text }: AddedPart): Change {
  return { kind: 'changed', at: position.replace('.', ' '), removed: '', added: text, bytes: 0 };
}
