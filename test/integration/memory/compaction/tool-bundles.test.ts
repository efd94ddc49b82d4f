import { afterEach, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { createDisk, type Disk, openRig } from '../../../helpers/memory-rig.ts';
import { getTurn, message, toolRound } from '../../../helpers/turns.ts';

const open: Memory[] = [];
async function start(disk: Disk): Promise<Memory> {
  const memory = await openRig(disk, { llm: 'local' });
  open.push(memory);
  return memory;
}
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const rounds = Array.from({ length: 20 }, (_, at) =>
  toolRound('Edit', { file_path: `/home/dev/shop/src/part-${at}.ts` }, 'ok', `toolu_${at}`),
);
const TURN = getTurn('Rename the billing client in every file of the shop.', [
  ...rounds.flat(),
  ...toolRound('Bash', { command: 'npm test' }, 'exit code 1', 'toolu_t'),
  message('assistant', [
    { type: 'text', text: 'Renamed BillingClient to InvoiceClient in src/part-0.ts and 19 more files.' },
  ]),
]);

async function told(disk: Disk): Promise<Memory> {
  const memory = await start(disk);
  memory.capture.captureTurns([TURN]);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  return memory;
}

test('a turn of tool calls has at most twelve children, listed with --all alone', async () => {
  const disk = createDisk();
  const memory = await told(disk);
  const [parent, ...others] = memory.library.list({});
  expect(others).toEqual([]);
  const children = memory.library.list({ all: true }).filter((node) => node.parent_node_id !== null);
  expect(children).toHaveLength(12);
  for (const child of children) {
    expect(child).toMatchObject({ parent_node_id: parent?.node_id, depth_level: 2, importance: 'LOW', turns: [] });
  }
  expect(parent?.capsule).toContain('edited src/part-0.ts');
  const shown = await memory.library.show(parent?.node_id as string, 1);
  expect(shown.children?.map(({ node_id }) => node_id)).toEqual(children.map(({ node_id }) => node_id));
  const raw = await memory.library.show(children[0]?.node_id as string, 2);
  expect(raw.raw).toHaveLength(TURN.messages.length);
});

test('children are not searched, stand for no turn, and are the same after a restart', async () => {
  const disk = createDisk();
  const memory = await told(disk);
  const [parent] = memory.library.list({});
  expect([...memory.recall.nodesCovering([TURN.turnId]).values()]).toEqual([[parent?.node_id]]);
  expect(new Set((await disk.index.entries()).keys())).toEqual(new Set([parent?.node_id]));
  const hits = await memory.recall.search('part-3.ts', { top: 5 });
  expect(hits.every((hit) => hit.node.node_id === parent?.node_id)).toBe(true);
  const before = memory.library
    .list({ all: true })
    .map(({ node_id }) => node_id)
    .sort();
  await memory.maintenance.close();
  const again = await start(disk);
  expect(await again.maintenance.flush(60_000)).toBe(true);
  expect(
    again.library
      .list({ all: true })
      .map(({ node_id }) => node_id)
      .sort(),
  ).toEqual(before);
  expect(new Set((await disk.index.entries()).keys())).toEqual(new Set([parent?.node_id]));
});

test('what is removed takes its children with it', async () => {
  const disk = createDisk();
  const memory = await told(disk);
  const [parent] = memory.library.list({});
  await memory.library.remove([parent?.node_id as string]);
  expect(memory.library.list({ all: true })).toEqual([]);
  expect(disk.nodes.size).toBe(0);
});

test('a turn and its children are written in one step: no end in between leaves one without the other', async () => {
  const disk = createDisk();
  const writes: (readonly number[])[] = [];
  const save: Disk['nodeFiles']['save'] = async (nodes) => {
    writes.push(nodes.map((node) => node.depth_level));
    await disk.nodeFiles.save(nodes);
  };
  const memory = await openRig(disk, { llm: 'local', nodeFiles: { ...disk.nodeFiles, save } });
  open.push(memory);
  memory.capture.captureTurns([TURN]);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  expect(writes.filter((depths) => depths.includes(2))).toEqual([[1, ...Array(12).fill(2)]]);
});
