import type { MemoryNode } from '../model/node.ts';
import { BATCH, digestOf, type ShareContext } from './parts.ts';
import { type Row, rowDigest } from './row.ts';
import { changeOf, checkCard, isContinued, isNewer, OWN, openRow, type Peer } from './state.ts';

/** Takes over what other machines published. */
export function createReader(context: ShareContext) {
  const { bus, state, keep } = context;

  async function pullFrom(machine: string): Promise<void> {
    const [first] = await bus.read(machine, 0, 1);
    if (first === undefined) return;
    const pinned = state().peers[machine] ?? null;
    const card = checkCard(machine, first, pinned?.card ?? null);
    if (typeof card === 'string') return keep({ refused: { ...state().refused, [machine]: card } });
    const head = { sequence: 0, digest: rowDigest(machine, first) };
    let peer: Peer = pinned ?? { machine, card, head };
    const [last] = await bus.read(machine, peer.head.sequence, 1);
    if (!isContinued(peer, last ?? null)) peer = { ...peer, head };
    await keep({ peers: { ...state().peers, [machine]: peer } });
    for (let from = peer.head.sequence + 1; ; ) {
      const rows = await bus.read(machine, from, BATCH);
      await apply(context, peer, rows);
      if (rows.length < BATCH) return;
      from = (rows.at(-1)?.sequence ?? from) + 1;
    }
  }

  return {
    async pull(): Promise<void> {
      for (const machine of await bus.machines()) if (machine !== state().machine) await pullFrom(machine);
    },
  };
}

async function apply(context: ShareContext, peer: Peer, rows: readonly Row[]): Promise<void> {
  const { memory, rules, state, keep, keyOf } = context;
  const known = { ...state().known };
  const removed = new Set(state().removed);
  const saves = new Map<string, MemoryNode>();
  const removals: string[] = [];
  const erasing: number[] = [];
  let refused = state().refused;
  const reader = {
    ...{ scope: rules.scope, projects: rules.projects },
    ownerOf: (nodeId: string) => known[nodeId]?.owner ?? (isHere.has(nodeId) ? OWN : null),
    isRemoved: (nodeId: string) => removed.has(nodeId),
  };
  const isHere = new Set(memory.nodes().map(({ node_id }) => node_id));
  for (const row of rows) {
    const payload = openRow(peer, row, keyOf(peer.card.salt));
    const change = typeof payload === 'string' ? payload : changeOf(peer, payload, reader);
    if (typeof change === 'string') refused = { ...refused, [peer.machine]: change };
    else if (change.kind === 'remove') {
      erasing.push(...(known[change.nodeId]?.sequences ?? []));
      delete known[change.nodeId];
      removed.add(change.nodeId);
      saves.delete(change.nodeId);
      removals.push(change.nodeId);
    } else if (change.kind === 'save' && typeof payload !== 'string' && payload.kind === 'node') {
      const { node } = change;
      const before = known[node.node_id];
      const digest = digestOf(node);
      if (!isNewer({ version: payload.version, digest }, before)) continue;
      const { owner = peer.machine, sequences = [] } = before ?? {};
      known[node.node_id] = { owner, version: payload.version, digest, sequences };
      saves.set(node.node_id, node);
    }
  }
  await memory.remove(removals.filter((nodeId) => isHere.has(nodeId)));
  await memory.save([...saves.values()]);
  const head = rows.at(-1);
  const peers =
    head === undefined
      ? state().peers
      : {
          ...state().peers,
          [peer.machine]: { ...peer, head: { sequence: head.sequence, digest: rowDigest(peer.machine, head) } },
        };
  await keep({ known, removed: [...removed], peers, refused, erasing: [...state().erasing, ...erasing] });
}
