import { CometError } from '../../common/errors.ts';
import { isPrivate, type KeptReason, keptReason, outgoing } from './filter.ts';
import { changedBlocks, inOrder, PAGE_NODE, pageNodes } from './pages.ts';
import {
  BATCH,
  getDigest,
  type Leaving,
  NO_ROW,
  newState,
  type ShareContext,
  type SharedNode,
  type ShareState,
  withoutLog,
} from './parts.ts';
import { canonicalJson, MAX_PAYLOAD_CHARS, type Payload, type Row, rowDigest, signRow } from './row.ts';
import { seal } from './seal.ts';
import { type Head, OWN, planPublish, UNSENT } from './state.ts';
import { changedTasks } from './tasks.ts';
import { type LeavingTurn, nextTurns, withoutGone, withUnsentTurns } from './turns.ts';

/** Nodes that are looked at, and rows that are signed, without a pause. */
const SLICE = 200;
const SIGNED = 20;

/** Puts into the machine's own log what changed since the last time; the state is on disk before a row leaves. */
export function createWriter(context: ShareContext) {
  const { bus, state, keep, signal } = context;
  const getHead = (row: Row): Head => ({ sequence: row.sequence, digest: rowDigest(state().machine, row) });

  /** As another machine, or from the beginning: everything that leaves is queued once more. */
  async function startOver(why: 'copy' | 'lost', identity: Partial<ShareState> = {}): Promise<void> {
    await keep({ ...withoutLog(state()), ...identity, restarted: { why, at: new Date(context.now()).toISOString() } });
    await queue(context);
  }

  /** Rows that the bucket has already leave the outbox. */
  async function reconcile(): Promise<void> {
    const { machine: own, confirmed: arrived, outbox: unsent } = state();
    const stamp = await bus.stamp(own);
    if (unsent.length === 0 && context.isRead(own, stamp, arrived)) return;
    const last = await bus.last(own);
    // Only a row with the same number may be the last one there.
    const waiting = state().outbox.filter(({ sequence }) => sequence === last?.sequence);
    const plan = planPublish(state().confirmed, waiting.map(getHead), last === null ? null : getHead(last));
    if (plan.kind === 'append') {
      const outbox = state().outbox.filter(({ sequence }) => sequence > plan.after);
      if (last !== null && outbox.length < unsent.length) await keep({ outbox, confirmed: getHead(last) });
      context.noteRead(own, stamp, state().confirmed);
    } else if (plan.kind === 'lost') {
      await bus.drop(state().machine);
      await startOver('lost');
    } else {
      const { machine, keys } = newState(state(), false);
      await startOver('copy', { machine, keys });
    }
  }

  async function send(): Promise<number> {
    let sent = 0;
    while (state().outbox.length > 0) {
      signal.throwIfAborted();
      const batch = state().outbox.slice(0, BATCH);
      await bus.append(state().machine, batch);
      await keep({ outbox: state().outbox.slice(batch.length), confirmed: getHead(batch.at(-1) as Row) });
      sent += batch.length;
    }
    return sent;
  }

  /** Where the last row was erased, the one before it: a log that ends earlier counts as lost. */
  async function confirmedNow(): Promise<Head | null> {
    const { machine, confirmed, erasing } = state();
    if (confirmed === null || !erasing.includes(confirmed.sequence)) return confirmed;
    const last = await bus.last(machine);
    return last === null || last.sequence > confirmed.sequence ? confirmed : getHead(last);
  }

  /** @throws CometError `share_failed` */
  async function push(): Promise<number> {
    await queue(context);
    await reconcile();
    let sent = await send();
    for (let turns = await nextTurns(context); turns.length > 0; turns = await nextTurns(context)) {
      await queueTurns(context, turns);
      sent += await send();
    }
    if (state().erasing.length > 0) {
      await bus.erase(state().machine, state().erasing);
      await keep({ erasing: [], confirmed: await confirmedNow() });
    }
    await keep({ pushed: new Date(context.now()).toISOString() });
    return sent;
  }

  return { pending: () => pending(context), push };
}

/** Changes with all that decides whether a node leaves. */
function getStamp({ looked, memory, rules, state }: ShareContext, removed: number): string {
  const { machine, url } = state();
  const revision = memory.revision();
  if (looked.projects.revision !== revision)
    looked.projects = { revision, names: [...new Set(memory.nodes().map(({ project }) => project))] };
  const { scope, projects, raw, isWaiting, getKey, isForbidden } = rules;
  const places = looked.projects.names.map((each) => [each, getKey(each), isForbidden(each)]);
  const waiting = memory.nodes().filter(isWaiting).length;
  return JSON.stringify([revision, removed, machine, url, scope, projects, raw, waiting, places]);
}

/** What would leave now, what is removed or taken back, and how many nodes stay for which reason. */
async function pending(context: ShareContext, nodes = context.memory.nodes()) {
  const { rules, redactor, state, signal } = context;
  const kept: Partial<Record<KeptReason, number>> = {};
  const changed: Leaving<'node'>[] = [];
  const withdrawn: string[] = [];
  const removed = new Set(await context.removed.load());
  const stay = (reason: KeptReason, id: string): void => {
    kept[reason] = (kept[reason] ?? 0) + 1;
    if ((state().known[id]?.sequences ?? []).length > 0) withdrawn.push(id);
  };
  const pages = rules.scope === 'team' ? await sharedPages(context) : null;
  for (const [at, node] of [...nodes, ...(pages?.nodes ?? [])].entries()) {
    if (at % SLICE === 0) await context.rest();
    signal.throwIfAborted();
    const entry = state().known[node.node_id];
    if (removed.has(node.node_id)) continue;
    const source = `${getDigest(node)} ${rules.getKey(node.project)}`;
    const isUnchanged = entry?.source === source;
    const reason = keptReason(node, rules) ?? (!isUnchanged && isPrivate(node) ? 'private' : null);
    if (reason !== null) {
      stay(reason, node.node_id);
      continue;
    }
    if (isUnchanged) continue;
    const clean = await outgoing(node, rules, redactor);
    const digest = getDigest(clean);
    if (entry?.digest === digest) continue;
    if (JSON.stringify(clean).length > MAX_PAYLOAD_CHARS / 2) kept.size = (kept.size ?? 0) + 1;
    else changed.push({ id: node.node_id, digest, source, said: { kind: 'node', node: clean } });
  }
  withdrawn.push(...(pages?.gone ?? []));
  const tasks = await changedTasks(context, removed, stay);
  const blocks = await changedBlocks(context, stay);
  // Only what the user removed: a memory that cannot be read, or is an old copy, removes nothing elsewhere.
  const { known } = state();
  const removals = [...removed].filter((nodeId) => nodeId in known);
  const raw = [...withUnsentTurns(context).values()].flat().flatMap(({ turns }) => turns);
  const turns = raw.filter((turnId) => !(turnId in state().turns));
  const told = removals.filter((id) => rules.scope === 'me' || known[id]?.owner === OWN);
  return { changed, tasks, blocks, gone: removals, told, withdrawn, kept, turns };
}

/** What people wrote into pages of the team's projects, as memories, and those that left and are no more. */
async function sharedPages({ memory, rules, state }: ShareContext) {
  const { blocks, places } = await memory.blocks(rules.getKey);
  const { known, machine } = state();
  const nodes = pageNodes(blocks, machine);
  const ids = new Set(nodes.map(({ node_id }) => node_id));
  const isGone = ([id, { owner, sequences }]: [string, SharedNode]): boolean =>
    owner === OWN && id.startsWith(PAGE_NODE) && sequences.length > 0 && !ids.has(id);
  const removals = places.pages.isWhole ? Object.entries(known).filter(isGone) : [];
  return { nodes, gone: removals.map(([id]) => id) };
}

/** Signs what changed since the last call into the outbox. */
async function queue(context: ShareContext): Promise<void> {
  const { looked, rules, state, keep } = context;
  const stamp = getStamp(context, (await context.removed.load()).length);
  const { next: first } = state();
  const isLookedAt = first > 0 && looked.stamp === stamp;
  const { changed, tasks, blocks, gone, told, withdrawn } = await pending(context, isLookedAt ? [] : undefined);
  looked.stamp = '';
  // A task that was made again under its name finds it free.
  const left = withoutGone(context, new Set([...gone, ...withdrawn]));
  const lists = [changed, tasks, blocks.leaving, blocks.faded, gone, withdrawn, left.rows];
  if (first > 0 && lists.every((list) => list.length === 0)) {
    looked.stamp = stamp;
    return;
  }
  const payloads: Payload[] = [];
  const add = (payload: Payload): number => first + payloads.push(payload) - 1;
  if (first === 0) add(await getCard(context));
  let entries = { ...state().known };
  const old = [...gone, ...withdrawn].flatMap((nodeId) => entries[nodeId]?.sequences ?? []).concat(left.rows);
  for (const nodeId of told) add({ kind: 'tombstone', nodeId });
  for (const nodeId of gone) delete entries[nodeId];
  for (const nodeId of withdrawn) {
    // The other machines of the user keep it; other people do not.
    if (rules.scope === 'team') add({ kind: 'tombstone', nodeId });
    entries[nodeId] = { ...(entries[nodeId] as SharedNode), ...UNSENT };
  }
  for (const { id, digest, source, said } of [...changed, ...tasks, ...blocks.leaving]) {
    const { owner = OWN, version: last = 0, sequences = [] } = entries[id] ?? {};
    const version = last + 1;
    const sequence = add({ ...said, version });
    const isOut = said.kind === 'block' && said.block === null;
    // A person may have taken out what others should not read.
    const isOver = isOut || (said.kind === 'node' && said.node.author.by === 'user');
    if (isOver) old.push(...sequences);
    const rows = [...(isOver ? [] : sequences), ...(isOut ? [] : [sequence])];
    entries[id] = { owner, version, digest, source, sequences: rows };
  }
  if (blocks.leaving.length > 0) entries = inOrder(entries, blocks.order);
  for (const id of blocks.faded) {
    const { [id]: before } = entries;
    if (before !== undefined && !blocks.order.has(id)) entries[id] = { ...before, source: '' };
  }
  const rows = await signed(context, payloads);
  const taken = new Set(old);
  const outbox = [...state().outbox.filter(({ sequence }) => !taken.has(sequence)), ...rows];
  const next = first + rows.length;
  if (rows.length + old.length + blocks.faded.length > 0)
    await keep({ next, known: entries, outbox, turns: left.turns, erasing: [...state().erasing, ...old] });
  if (blocks.faded.length > 0) await context.memory.dropFaded(blocks.faded);
  looked.stamp = stamp;
}

/** Rows that follow the last one; requests pass between them. */
async function signed(context: ShareContext, payloads: readonly Payload[]): Promise<Row[]> {
  const { next, salt, machine, keys } = context.state();
  const key = salt === null ? null : await ownKey(context, salt);
  const rows: Row[] = [];
  for (const [at, payload] of payloads.entries()) {
    if (at % SIGNED === 0) await context.rest();
    const text = canonicalJson(payload);
    const isPlain = key === null || payload.kind === 'card';
    rows.push(signRow(machine, { sequence: next + at, payload: isPlain ? text : seal(text, key) }, keys.privateKey));
  }
  return rows;
}

async function queueTurns(context: ShareContext, leaving: readonly LeavingTurn[]): Promise<void> {
  const { state, keep } = context;
  const payloads: Payload[] = [];
  const turns = { ...state().turns };
  for (const { turnId, nodeId, payload } of leaving) {
    const sequence = payload === null ? NO_ROW : state().next + payloads.push(payload) - 1;
    turns[turnId] = { sequence, nodeId };
  }
  const rows = await signed(context, payloads);
  await keep({ next: state().next + rows.length, turns, outbox: [...state().outbox, ...rows] });
}

async function getCard(context: ShareContext): Promise<Payload> {
  const { name, keys, salt, scope } = context.state();
  const projects = JSON.stringify(context.rules.projects);
  return {
    ...{ kind: 'card', name, key: keys.publicKey, salt, scope },
    projects: salt === null ? projects : seal(projects, await ownKey(context, salt)),
  };
}

/** @throws CometError `share_failed`: rows of a machine that seals them never leave in the clear */
async function ownKey({ getKey }: ShareContext, salt: string): Promise<Buffer> {
  const key = await getKey(salt);
  if (key === null) throw new CometError('share_failed', 'the passphrase is missing: set COMET_CC_SHARE_PASSPHRASE');
  return key;
}
