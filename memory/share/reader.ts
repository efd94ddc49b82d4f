import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import type { MemoryNode } from '../model/node.ts';
import type { JournalTurn } from '../model/turn.ts';
import type { TaskText } from '../tasks/task-files.ts';
import { saveBlocks } from './pages.ts';
import { BATCH, getDigest, NO_ROW, type ShareContext, type SharedNode, type ShareState, unread } from './parts.ts';
import {
  type BlockPayload,
  canonicalJson,
  findTask,
  type Payload,
  type Row,
  rowDigest,
  type TaskPayload,
  type TurnPayload,
  taskKey,
} from './row.ts';
import {
  checkCard,
  getChange,
  getLabel,
  isContinued,
  isNewer,
  OWN,
  openRow,
  type Peer,
  strayRedirects,
  UNSENT,
} from './state.ts';
import { digestOfTask, planTask } from './tasks.ts';
import { unpack } from './turns.ts';

/** Rows that are checked without a pause: a signature takes some 0.2 ms, and requests pass meanwhile. */
const SLICE = 10;
/** Rows of the first read. Later reads are limited by size, because verbatim turns are large. */
const FIRST = 100;
const LEAST = 10;
const READ_CHARS = 8 * 1024 * 1024;

/** Takes over what other machines published. The result throws CometError `share_failed`. */
export function createPull(context: ShareContext): () => Promise<void> {
  const { bus, state, keep, memory, rules, signal, looked } = context;

  async function pullFrom(machine: string): Promise<void> {
    const pinned = state().peers[machine] ?? null;
    const stamp = await bus.stamp(machine);
    if (context.isRead(machine, stamp, pinned?.head ?? null)) return;
    let limit = FIRST;
    let rows = await bus.read(machine, pinned?.head.sequence ?? 0, limit);
    const [first] = rows;
    if (first === undefined) return;
    const card = checkCard(machine, first, pinned?.card ?? null, rules.scope);
    if (typeof card === 'string') return keep({ refused: { ...state().refused, [machine]: card } });
    const head = { sequence: 0, digest: rowDigest(machine, first) };
    const name = getLabel(machine, card.name, Object.values(state().peers));
    const isSame = pinned !== null && canonicalJson(pinned.card) === canonicalJson(card);
    let peer: Peer = isSame ? pinned : { machine, card, name, head: pinned?.head ?? head };
    if (!isContinued(peer, rows.find(({ sequence }) => sequence === peer.head.sequence) ?? null)) {
      peer = { ...peer, head };
      rows = await bus.read(machine, 0, limit);
    }
    if (peer !== pinned) await keep({ peers: { ...state().peers, [machine]: peer } });
    for (let after = peer.head.sequence; ; ) {
      signal.throwIfAborted();
      const last = rows.at(-1)?.sequence ?? after;
      const news = rows.filter(({ sequence }) => sequence > after);
      if (!(await apply(context, peer, news))) return;
      context.onRead?.(news.length);
      if (rows.length < limit) return context.noteRead(machine, stamp, state().peers[machine]?.head ?? null);
      after = last;
      const chars = news.reduce((sum, { payload }) => sum + payload.length, 0);
      const fitting = Math.floor((news.length * READ_CHARS) / Math.max(1, chars));
      limit = Math.min(BATCH, Math.max(LEAST, fitting));
      rows = await bus.read(machine, after + 1, limit);
    }
  }

  return async () => {
    await noteRaw(context);
    const failures: CometError[] = [];
    const machines = await bus.machines();
    for (const machine of machines.filter((each) => each !== state().machine)) {
      await pullFrom(machine).catch(async (cause: unknown) => {
        if (signal.aborted || !(cause instanceof CometError)) throw cause;
        // One damaged log keeps no other back; where the storage does not answer, none is tried.
        await bus.machines();
        failures.push(new CometError(cause.code, `the log of ${machine} cannot be read: ${cause.message}`, { cause }));
      });
    }
    const revision = memory.revision();
    const stray = looked.redirects === revision ? [] : strayRedirects(memory.nodes());
    if (stray.length > 0) await memory.save(stray);
    else looked.redirects = revision;
    const left = Object.keys({ ...state().peers, ...state().refused }).filter((each) => !machines.includes(each));
    await keep({ pulled: new Date(context.now()).toISOString(), left });
    if (failures[0] !== undefined) throw failures[0];
  };
}

/** Once verbatim turns are wanted, those that were passed over are read. */
async function noteRaw({ rules, state, keep }: ShareContext): Promise<void> {
  const { raw, peers } = state();
  if (raw === rules.raw) return;
  await keep({ raw: rules.raw, ...(rules.raw ? { peers: unread(peers) } : {}) });
}

/** What a batch of rows changes. */
interface Changes {
  readonly known: Record<string, SharedNode>;
  readonly saves: Map<string, MemoryNode>;
  readonly removals: Set<string>;
  readonly turns: TurnPayload[];
  readonly tasks: TaskPayload[];
  readonly blocks: BlockPayload[];
  /** Removed by the user: it does not come back. */
  readonly removed: Set<string>;
  /** Own rows of nodes that were removed elsewhere. */
  readonly erasing: number[];
  refused: ShareState['refused'];
}

/** False where they wait for the right passphrase. */
async function apply(context: ShareContext, peer: Peer, rows: readonly Row[]): Promise<boolean> {
  const { memory, rules, state, keep, getKey, trusted } = context;
  const head = rows.at(-1);
  if (head === undefined) return true;
  const before = new Set(await context.removed.load());
  const isHere = new Set(memory.nodes().map(({ node_id }) => node_id));
  const changes: Changes = {
    ...{ known: { ...state().known }, saves: new Map(), removals: new Set(), removed: new Set(), turns: [], tasks: [] },
    ...{ blocks: [], erasing: [...state().erasing], refused: state().refused },
  };
  const reader = {
    ...{ scope: rules.scope, projects: rules.projects, raw: rules.raw, trusted },
    getOwner: (nodeId: string) => changes.known[nodeId]?.owner ?? (isHere.has(nodeId) ? OWN : null),
    isRemoved: (nodeId: string) => before.has(nodeId) || changes.removed.has(nodeId),
  };
  const { salt } = peer.card;
  const key = salt === null ? null : await getKey(salt);
  for (const [at, row] of rows.entries()) {
    if (at % SLICE === 0) await context.rest();
    const payload = openRow(peer, row, key);
    if (payload === 'passphrase') {
      await keep({ refused: { ...state().refused, [peer.machine]: payload } });
      return false;
    }
    const change = typeof payload === 'string' ? payload : getChange(peer, payload, reader);
    if (typeof change === 'string') changes.refused = { ...changes.refused, [peer.machine]: change };
    else if (change.kind === 'turn') changes.turns.push(change);
    else if (change.kind === 'task') changes.tasks.push(change);
    else if (change.kind === 'block') changes.blocks.push(change);
    else if (change.kind === 'remove') noteRemoval(change.nodeId, changes, rules.scope === 'me');
    else if (change.kind === 'save') noteSave(change.node, payload as NodePayload, peer, changes);
  }
  if (changes.removed.size > 0) await context.removed.add([...changes.removed]);
  await memory.remove([...changes.removals].filter((nodeId) => isHere.has(nodeId)));
  await memory.save([...changes.saves.values()]);
  await removeTasks(changes, context);
  await saveTasks(peer, changes, context);
  await saveBlocks(changes.blocks, peer, changes, context);
  const turns = await saveTurns(changes, isHere, context);
  const read = { ...peer, head: { sequence: head.sequence, digest: rowDigest(peer.machine, head) } };
  const { known, refused, erasing } = changes;
  const { [peer.machine]: last, ...others } = refused;
  const kept = last === 'passphrase' ? others : refused;
  await keep({ known, turns, refused: kept, erasing, peers: { ...state().peers, [peer.machine]: read } });
  return true;
}

async function removeTasks({ removals }: Changes, { memory }: ShareContext): Promise<void> {
  if (![...removals].some((id) => id.startsWith('task '))) return;
  const tasks = (await memory.tasks()).flatMap((file) => findTask(file) ?? []);
  for (const task of tasks) if (removals.has(taskKey(task))) await memory.removeTask(task.name);
}

/** In their order, as far as they were not removed by a later row. */
async function saveTasks({ machine }: Peer, changes: Changes, { memory }: ShareContext): Promise<void> {
  const { tasks, known, removals } = changes;
  if (tasks.length === 0) return;
  const getStem = ({ name }: TaskText): string => path.posix.basename(name, '.md').toLowerCase();
  const here = new Map((await memory.tasks()).map((file) => [getStem(file), file]));
  for (const payload of tasks) {
    const [stem, task] = [getStem(payload), findTask(payload)];
    const id = task === null ? '' : taskKey(task);
    if (task === null || removals.has(id)) continue;
    const plan = planTask(payload, known[id], here.get(stem) ?? null);
    if (plan === 'taken') changes.refused = { ...changes.refused, [machine]: 'taken_name' };
    if (plan === 'taken' || plan === 'none') continue;
    const file = { name: payload.name, text: payload.text };
    if (plan === 'save') await memory.saveTask(file);
    if (plan === 'save') here.set(stem, file);
    const digest = digestOfTask(file);
    const { owner = machine, sequences = [] } = known[id] ?? {};
    const isSame = digestOfTask(here.get(stem) ?? file) === digest;
    known[id] = { owner, version: payload.version, digest, source: isSame ? digest : '', sequences };
  }
}

/** Only turns that a memory here stands for. */
async function saveTurns(
  { turns, saves, removals }: Changes,
  isHere: ReadonlySet<string>,
  { memory, state }: ShareContext,
): Promise<ShareState['turns']> {
  const fresh: JournalTurn[] = [];
  const received = { ...state().turns };
  for (const payload of turns) {
    const { nodeId } = payload;
    const turn = removals.has(nodeId) || !(isHere.has(nodeId) || saves.has(nodeId)) ? null : await unpack(payload);
    if (turn === null) continue;
    fresh.push(turn);
    received[turn.turnId] ??= { sequence: NO_ROW, nodeId };
  }
  if (fresh.length > 0) await memory.saveTurns(fresh);
  return received;
}

/** @param isOwn  the user removed it on another machine; otherwise a teammate took it back and may share it again */
function noteRemoval(nodeId: string, { known, erasing, removed, removals, saves }: Changes, isOwn: boolean): void {
  erasing.push(...(known[nodeId]?.sequences ?? []));
  delete known[nodeId];
  saves.delete(nodeId);
  removals.add(nodeId);
  if (isOwn) removed.add(nodeId);
}

type NodePayload = Extract<Payload, { kind: 'node' }>;

function noteSave(node: MemoryNode, { version }: NodePayload, { machine }: Peer, changes: Changes): void {
  const { known, saves, removals, erasing } = changes;
  const before = known[node.node_id];
  const digest = getDigest(node);
  if (!isNewer({ version, digest }, before)) return;
  const { owner = machine, sequences = [] } = before ?? {};
  // The first publisher of what a person changed elsewhere publishes that in place of what it said before.
  const isOver = owner === OWN && node.author.by === 'user' && digest !== before?.digest;
  if (isOver) erasing.push(...sequences);
  const said = { digest, source: `${digest} ${node.project}`, sequences };
  known[node.node_id] = { owner, version, ...(isOver ? UNSENT : said) };
  saves.set(node.node_id, node);
  removals.delete(node.node_id);
}
