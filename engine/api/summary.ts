import { getOnly } from '../../common/errors.ts';
import { getMode } from '../../common/policy.ts';
import { amount, clip, formatCount, oneLine, percentSaved } from '../../common/text.ts';
import type { Memory } from '../../memory/index.ts';
import type { CostLedger, Receipt, Receipts } from '../../proxy/ledger/index.ts';
import type { Policy } from '../policy/index.ts';
import type { SessionTitles } from '../transcript/session-titles.ts';

interface Services {
  readonly memory: Memory;
  readonly policy: Pick<Policy, 'of'>;
  readonly receipts: Pick<Receipts, 'list' | 'ofSession'>;
}

type Finishing = Services & { opened(): Promise<unknown>; readonly ledger: Pick<CostLedger, 'conversation'> };

const TITLE_CHARS = 70;

export type ProjectSummary = Awaited<ReturnType<typeof sessionSummary>>;
export type SessionSummary = NonNullable<Awaited<ReturnType<typeof finishSessions>>>;

export function projectSummary({ memory, policy }: Services, projectDir: string) {
  const { library } = memory;
  const nodes = library.list({ projectDir });
  const [newest] = nodes;
  return {
    mode: getMode(policy.of(projectDir)),
    nodes: nodes.length,
    /** Open items. They cannot be read before the store is open. */
    open: nodes.length === 0 ? 0 : library.listItems({ projectDir }).filter(({ kind }) => kind === 'todo').length,
    newest: newest === undefined ? null : { node_id: newest.node_id, title: getTitle(newest), at: newest.created_at },
  };
}

/** The same for a session that begins: the first one after a brief is told of its file. */
export async function sessionSummary(services: Services, projectDir: string) {
  const brief = await services.memory.maintenance.takeBrief();
  return { ...projectSummary(services, projectDir), ...(brief === null ? {} : { brief }) };
}

function getTitle({ title, summary }: { title?: string | undefined; summary: string }): string {
  return clip(oneLine(title ?? summary), TITLE_CHARS);
}

interface FinishRequest {
  readonly projectDir: string;
  readonly sinceMs: number;
  readonly sessionId?: string | undefined;
  readonly others?: readonly string[] | undefined;
}

/**
 * Summarizes the waiting turns of the sessions of a project that sent requests since a time: what they kept and recalled,
 * and the prompt tokens of the newest request. Null where none did.
 * @param sessionId  the newest of them where it is not known, but none of `others`, which other terminals run
 */
export async function finishSessions(
  { memory, receipts, opened, ledger }: Finishing,
  { projectDir, sinceMs, sessionId, others = [] }: FinishRequest,
) {
  const { library } = memory;
  const own = receipts.list().filter(({ class: kind, at }) => kind === 'main' && Date.parse(at) >= sinceMs);
  // The first turns of an engine wait until its store is open and its rules are read.
  await opened();
  await Promise.all(own.map(({ session_id }) => memory.capture.awaitCaptures(session_id)));
  const sessionIds = new Set((await library.listSessions({ projectDir })).map((session) => session.session_id));
  const ids = [...new Set(own.map((receipt) => receipt.session_id))].filter(
    (id) => sessionIds.has(id) && (sessionId === undefined ? !others.includes(id) : id === sessionId),
  );
  const [newest] = ids;
  if (newest === undefined) return null;
  await Promise.all(ids.map((id) => memory.capture.closeSession(id)));
  const all = own.filter((receipt) => ids.includes(receipt.session_id));
  const last = (all.find((receipt) => receipt.session_id === newest) as Receipt).economics;
  // Commands import this file and should not load memory.
  const { isReminder } = await import('../../memory/index.ts');
  return {
    session_id: newest,
    kept: ids.reduce((sum, id) => sum + library.list({ sessionId: id, sinceMs }).length, 0),
    recalled: new Set(all.flatMap(recalledFor)).size,
    received: last.received_tokens,
    sent: last.sent_tokens,
    /** Of memory's own model calls for the session, ever. */
    own: ledger.conversation(newest)?.totals.ownTokens ?? 0,
    /** What these sessions left open, newest first; absent in engines of earlier versions. */
    left: (await library.listItems({ projectDir }))
      .filter(({ kind, session_id }) => kind === 'todo' && ids.includes(session_id))
      // A reminder of the user is a task already.
      .filter(({ origin, text }) => origin !== 'user' || !isReminder(text))
      .map(({ id, text }) => ({ id, text: clip(oneLine(text), TITLE_CHARS) })),
  };
}

/** Ids of the memories that were recalled for the prompt of this request. */
export function recalledFor({ added }: Pick<Receipt, 'added'>): string[] {
  return added.flatMap(({ current, found = [], nodes, channel }) => {
    if (current !== true) return [];
    return channel === 'system' ? found.map(({ nodeId }) => nodeId) : nodes;
  });
}

/** The newest request of a session: its prompt tokens, and the title of what it recalled, '' for nothing. */
export function newestRequest({ memory, receipts }: Services, sessionId: string) {
  const { library } = memory;
  const [newest] = receipts.ofSession(sessionId);
  if (newest === undefined) return null;
  const { received_tokens: received, sent_tokens: sent } = newest.economics;
  const [id] = recalledFor(newest);
  const node = id === undefined ? undefined : library.list({}).find(({ node_id }) => node_id === id);
  return { received, sent, recalled: node === undefined ? '' : getTitle(node) };
}

/** A receipt with its prompt and the session's title, else its first prompt, on one line; '' where memory does not have it. */
export type NamedReceipt = Receipt & { readonly prompt: string; readonly session_title: string };

/** `last` is the newest rewritten request; others have little to explain. */
export function receiptNamed(receipts: readonly Receipt[], name: string): Receipt {
  const matches =
    name === 'last'
      ? receipts.filter((one) => one.edits.length > 0).slice(0, 1)
      : receipts.filter((one) => one.request_id.startsWith(name));
  const problem = name === 'last' ? 'no request has been rewritten' : `no request begins with "${name}"`;
  const none = `${problem} lately; comet-cc explain --list shows those that are kept`;
  return getOnly(matches, none, `${matches.length} requests begin with "${name}"; give more of the id`);
}

/** @param receipts  to name; each session is read once */
export async function nameReceipts(
  { memory, titles }: Pick<Services, 'memory'> & { readonly titles: SessionTitles },
  receipts: ReturnType<Receipts['list']>,
): Promise<NamedReceipt[]> {
  const { library } = memory;
  const ids = [...new Set(receipts.map(({ session_id }) => session_id))];
  const prompts = new Map(await Promise.all(ids.map(async (id) => [id, await library.prompts(id)] as const)));
  const own = await titles.of(ids);
  return receipts.map((receipt) => {
    const all = prompts.get(receipt.session_id) ?? [];
    // Right behind a compaction, a prompt that the user took back has the key of the one in its place.
    const near = all.filter(({ key }) => key === receipt.turn);
    const { text = '' } = near.find(({ atMs }) => atMs >= Date.parse(receipt.at)) ?? near.at(-1) ?? {};
    const session_title = own.get(receipt.session_id) ?? clip(oneLine(all[0]?.text ?? ''), TITLE_CHARS);
    return { ...receipt, prompt: oneLine(text), session_title };
  });
}

/** Field names are those of `status --json`. */
export function requestCounts({ receipts }: Pick<Services, 'receipts'>) {
  const own = receipts.list().filter((receipt) => receipt.class === 'main');
  const [newest] = own;
  const cuts = own.filter(({ economics }) => economics.decision.startsWith('cut'));
  const { received_tokens: received = 0, sent_tokens: sent = 0 } = newest?.economics ?? {};
  return {
    /** Of the newest request of a main loop, in prompt tokens. */
    context: newest === undefined ? null : { at: newest.at, received, sent },
    /** Requests with a new cut, of those whose receipts are kept. */
    cuts: { count: cuts.length, newest: cuts[0]?.at ?? null },
    /** Ids of the sessions with a kept receipt, newest first. */
    sessions: [...new Set(own.map(({ session_id }) => session_id))] as readonly string[],
  };
}

const MODES = { on: 'memory on', private: 'memory reads but keeps nothing', off: 'memory paused' } as const;

/**
 * "memory on · 12 memories of this project · 2 open items"
 * @param passes  whether the session's requests pass through the proxy; otherwise nothing of it is kept
 */
export function startLine({ mode, nodes, open, brief }: Omit<ProjectSummary, 'newest'>, passes = true): string {
  const memories =
    nodes === 0 ? 'no memories of this project yet' : `${formatCount(nodes, 'memory', 'memories')} of this project`;
  return [
    passes || mode === 'off'
      ? MODES[mode]
      : 'memory reads, but this session bypasses comet-cc (start it with comet-cc run claude)',
    memories,
    ...(open === 0 ? [] : [formatCount(open, 'open item')]),
    ...(brief === undefined ? [] : [`brief: ${brief} (comet-cc inbox)`]),
  ].join(' · ');
}

/** What a session left open, offered as tasks; '' for nothing. */
export function offerLine({ left = [] }: Partial<SessionSummary>): string {
  const [first] = left;
  if (first === undefined) return '';
  const more = left.length > 1 ? ` and ${left.length - 1} more (comet-cc todo)` : '';
  return `left open: ${first.text}${more} · a task of it: comet-cc task add --from ${first.id} --at "tomorrow 9:00"`;
}

/** "kept 6 · recalled 3 · context 41k instead of 56k · resume: comet-cc run claude --resume 5f3a…" */
export function endLine({ session_id, kept, recalled, received, sent, own }: Omit<SessionSummary, 'left'>): string {
  const isSmaller = percentSaved(received, sent) > 0;
  const context = isSmaller ? `context ${amount(sent)} instead of ${amount(received)}` : `context ${amount(sent)}`;
  const resume = `resume: comet-cc run claude --resume ${session_id}`;
  const used = own === 0 ? [] : [`memory's own calls ${amount(own)} tokens`];
  return [`kept ${kept}`, `recalled ${recalled}`, context, ...used, resume].join(' · ');
}
