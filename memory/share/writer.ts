import type { MemoryNode } from '../model/node.ts';
import { type Kept, keptReason, outgoing } from './filter.ts';
import { BATCH, digestOf, type Known, newState, type ShareContext, type ShareState } from './parts.ts';
import { canonicalJson, type Payload, type Row, rowDigest, signRow } from './row.ts';
import { seal } from './seal.ts';
import { type Head, OWN, planPublish } from './state.ts';

/** Puts into the machine's own log what changed since the last time; the state is on disk before a row leaves. */
export function createWriter(context: ShareContext) {
  const { bus, state, keep } = context;
  const headOf = (row: Row): Head => ({ sequence: row.sequence, digest: rowDigest(state().machine, row) });

  /** As another machine, or from the beginning: everything that leaves is queued once more. */
  async function startOver(identity: Partial<ShareState>): Promise<void> {
    const known = Object.entries(state().known).map(([id, each]) => [id, { ...each, digest: '', sequences: [] }]);
    await keep({ ...identity, next: 0, confirmed: null, outbox: [], erasing: [], known: Object.fromEntries(known) });
    await queue(context);
  }

  async function push(): Promise<number> {
    await queue(context);
    const last = await bus.last(state().machine);
    const plan = planPublish(state().confirmed, state().outbox.map(headOf), last === null ? null : headOf(last));
    if (plan.kind === 'lost') {
      await bus.drop(state().machine);
      await startOver({});
    } else if (plan.kind === 'diverged') {
      const { machine, keys: fresh } = newState(state().name, false);
      await startOver({ machine, keys: fresh });
    } else {
      await keep({ outbox: state().outbox.filter(({ sequence }) => sequence > plan.after) });
    }
    let sent = 0;
    while (state().outbox.length > 0) {
      const batch = state().outbox.slice(0, BATCH);
      await bus.append(state().machine, batch);
      await keep({ outbox: state().outbox.slice(BATCH), confirmed: headOf(batch.at(-1) as Row) });
      sent += batch.length;
    }
    if (state().erasing.length > 0) await bus.erase(state().machine, state().erasing);
    if (state().erasing.length > 0) await keep({ erasing: [] });
    return sent;
  }

  return { pending: () => pending(context), push };
}

/** What would leave now, what is removed or taken back, and how many nodes stay for which reason. */
async function pending(context: ShareContext) {
  const { memory, rules, redactor, state } = context;
  const kept: Partial<Record<Kept, number>> = {};
  const changed: { node: MemoryNode; digest: string }[] = [];
  const withdrawn: string[] = [];
  const removed = new Set(state().removed);
  for (const node of memory.nodes()) {
    if (removed.has(node.node_id)) continue;
    const reason = keptReason(node, rules);
    if (reason !== null) {
      kept[reason] = (kept[reason] ?? 0) + 1;
      if ((state().known[node.node_id]?.sequences ?? []).length > 0) withdrawn.push(node.node_id);
      continue;
    }
    const clean = await outgoing(node, rules.scope, redactor);
    const digest = digestOf(clean);
    if (state().known[node.node_id]?.digest !== digest) changed.push({ node: clean, digest });
  }
  // Only what the user removed: a memory that cannot be read, or is an old copy, removes nothing elsewhere.
  const gone = Object.keys(state().known).filter((nodeId) => removed.has(nodeId));
  return { changed, gone, withdrawn, kept };
}

/** Signs what changed since the last call into the outbox. */
async function queue(context: ShareContext): Promise<void> {
  const { rules, state, keep } = context;
  const { changed, gone, withdrawn } = await pending(context);
  const rows: Row[] = [];
  const known = { ...state().known };
  let { next } = state();
  const add = (payload: Payload): number => {
    rows.push(rowOf(context, next, payload));
    next += 1;
    return next - 1;
  };
  const { machine: _, name, keys: own, salt } = state();
  if (next === 0) add({ kind: 'card', name, key: own.publicKey, salt });
  for (const { node, digest } of changed) {
    const { owner = OWN, version = 0, sequences = [] } = known[node.node_id] ?? {};
    const sequence = add({ kind: 'node', version: version + 1, node });
    known[node.node_id] = { owner, version: version + 1, digest, sequences: [...sequences, sequence] };
  }
  const old = [...gone, ...withdrawn].flatMap((nodeId) => known[nodeId]?.sequences ?? []);
  for (const nodeId of gone) {
    if (rules.scope === 'me' || known[nodeId]?.owner === OWN) add({ kind: 'tombstone', nodeId });
    delete known[nodeId];
  }
  for (const nodeId of withdrawn) known[nodeId] = { ...(known[nodeId] as Known), digest: '', sequences: [] };
  if (rows.length + old.length === 0) return;
  const outbox = [...state().outbox.filter(({ sequence }) => !old.includes(sequence)), ...rows];
  await keep({
    ...{ next, known, outbox, erasing: [...state().erasing, ...old] },
  });
}

function rowOf({ state, keyOf }: ShareContext, sequence: number, payload: Payload): Row {
  const text = canonicalJson(payload);
  const key = payload.kind === 'card' ? null : keyOf(state().salt);
  return signRow(
    state().machine,
    { sequence, payload: key === null ? text : seal(text, key) },
    state().keys.privateKey,
  );
}
