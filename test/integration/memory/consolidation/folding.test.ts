import { afterEach, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { talk } from '../../../helpers/turns.ts';

const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const TURNS = 330;
const STAY = 3;
const at = (index: number): number => 1_800_000_000_000 + index * 60_000;
const port = (index: number): string => `The service qz${index}x listens on port ${20_000 + index}.`;
const turns = Array.from({ length: TURNS }, (_, index) =>
  talk(index % 100 === STAY ? `We decided: ${port(index)}` : port(index), `Noted, number ${index}.`, {
    sessionId: 's-long',
    atMs: at(index),
  }),
);

test('a session of any length has at most 200 nodes: older ones are folded, no turn and no id is lost', async () => {
  const disk = createDisk();
  let nth = 0;
  const memory = await openRig(disk, { llm: 'local', randomHex: () => (nth++).toString(16).padStart(6, '0') });
  open.push(memory);
  const seen = new Map<string, string>();
  let most = 0;
  for (const [index, turn] of turns.entries()) {
    disk.nowMs = at(index);
    memory.capture.captureTurns([turn]);
    // Each turn is to be cut, so that each gets a node of its own.
    memory.capture.prepareNodes('s-long', [turn.turnId]);
    if (index % 10 === 9) expect(await memory.maintenance.flush(60_000)).toBe(true);
    for (const [turnId, ids] of memory.recall.nodesCovering([turn.turnId])) seen.set(turnId, ids[0] as string);
    most = Math.max(most, memory.library.list({ all: true, limit: 1_000 }).length);
  }
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  // Some more while one waits to be folded.
  expect(most).toBeLessThanOrEqual(210);

  const nodes = memory.library.list({ all: true, limit: 1_000 });
  expect(nodes.length).toBeGreaterThan(140);
  expect(nodes.length).toBeLessThanOrEqual(200);
  const standing = memory.recall.nodesCovering(turns.map(({ turnId }) => turnId));
  expect(standing.size).toBe(TURNS);
  for (const ids of standing.values()) expect(ids).toHaveLength(1);
  for (const node of nodes) expect(node.summary.length).toBeLessThanOrEqual(2_000);
  const newest = turns.slice(-100).map(({ turnId }) => nodes.find((node) => node.turns.includes(turnId))?.turns.length);
  expect(newest).toEqual(newest.map(() => 1));

  expect(seen.size).toBeGreaterThan(20);
  for (const [turnId, id] of seen) expect((await memory.library.show(id, 1)).turns).toContain(turnId);
  expect(await memory.library.restoreSession('s-long')).toHaveLength(2 * TURNS);

  const folded = nodes.filter((node) => node.turns.length > 1);
  expect(folded.length).toBeGreaterThan(40);
  const decided = turns.filter((_, index) => index % 100 === STAY).map(({ turnId }) => standing.get(turnId)?.[0]);
  expect(nodes.filter(({ node_id }) => decided.includes(node_id))).toMatchObject(
    decided.map(() => ({ importance: 'HIGH', turns: [expect.any(String)] })),
  );
  for (const index of [0, 20, 60, 103, TURNS - 1]) {
    const [best] = await memory.recall.search(`which port does the service qz${index}x listen on?`, { top: 1 });
    const ids = standing.get(turns[index]?.turnId as string);
    expect({ index, found: best?.node.node_id }).toEqual({ index, found: ids?.[0] });
  }
});
