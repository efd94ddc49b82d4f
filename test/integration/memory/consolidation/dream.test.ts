import { describe, expect, it, vi } from 'vitest';
import { Config } from '../../../../common/config.ts';
import type { DreamReport, Memory } from '../../../../memory/index.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import type { MergeInput, MergeResult } from '../../../../memory/models/model.ts';
import { dreamNodes } from '../../../helpers/dream-nodes.ts';
import { createDisk, type Disk, openRig, type RigOptions } from '../../../helpers/memory-rig.ts';
import { scriptedModel } from '../../../helpers/scripted-model.ts';

const id = (day: number): string => `mem_202603${String(day).padStart(2, '0')}_101500_00000a`;
const calm = { dryRun: false } as const;
const GROUPS = [
  [id(1), id(4), id(5)],
  [id(6), id(7), id(8)],
];

async function sleeping(
  options: RigOptions = {},
): Promise<{ disk: Disk; memory: Memory; node: (day: number) => MemoryNode }> {
  const disk = createDisk();
  await disk.nodeFiles.save(dreamNodes());
  const memory = await openRig(disk, { llm: 'local', ...options });
  await memory.maintenance.flush(10_000);
  return { disk, memory, node: (day) => disk.nodes.get(id(day)) as MemoryNode };
}

const told = (report: DreamReport) => ({
  merged: report.merged.map(({ keeper, merged }) => [keeper, ...merged]),
  groups: report.groups.map(({ members }) => members),
});

describe('a dream', () => {
  it('merges what says the same, groups what belongs together, tidies tags, links and pointers', async () => {
    const { disk, memory, node } = await sleeping();
    const report = await memory.maintenance.dream(calm);
    expect(told(report)).toEqual({ merged: [[id(1), id(2)]], groups: GROUPS });
    expect(node(1)).toMatchObject({
      turns: ['end-1', 'end-2'],
      origin: 'user',
      superseded_by: null,
      topic_tags: ['database', 'staging'],
    });
    expect(node(1).summary).toContain('5433');
    expect(node(2)).toMatchObject({ superseded_by: id(1), superseded_as: 'merged', turns: ['end-2'] });
    expect(memory.library.list({ all: true }).map(({ node_id }) => node_id)).not.toContain(id(2));
    expect((await memory.library.show(id(2), 0)).node_id).toBe(id(1));
    expect(memory.recall.nodesCovering(['end-2']).get('end-2')).toEqual([id(1)]);
    for (const day of [3, 4, 5]) expect(node(day)).toMatchObject({ superseded_by: null, turns: [`end-${day}`] });
    expect(node(5).topic_tags).toEqual(['databases']);
    expect(disk.nodes.has(id(10))).toBe(false);
    const parent = disk.nodes.get(report.groups[1]?.parent ?? '') as MemoryNode;
    expect(parent).toMatchObject({
      turns: [],
      origin: 'user',
      depth_level: 0,
      links: [id(6), id(7), id(8)],
      topic_tags: ['invoice'],
    });
    expect([6, 7, 8].map((day) => node(day).parent_node_id)).toEqual(Array(3).fill(parent.node_id));
    // Members stand for themselves: what was listed stays listed.
    expect(memory.library.list({}).map(({ node_id }) => node_id)).toEqual(
      expect.arrayContaining([id(6), id(7), id(8), parent.node_id]),
    );
    expect(memory.maintenance.status().dream).toMatchObject({ merged: 1, groups: 2, running: false });
    await memory.maintenance.close();
  });

  it('a second time changes nothing, over a restart too, until something is new', async () => {
    const { disk, memory } = await sleeping();
    await memory.maintenance.dream(calm);
    const after = await memory.library.exportAll('jsonl');
    expect(await memory.maintenance.dream(calm)).toMatchObject({
      snapshot: null,
      looked_at: 0,
      merged: [],
      groups: [],
    });
    await memory.maintenance.close();
    const again = await openRig(disk, { llm: 'local' });
    await again.maintenance.flush(10_000);
    expect(await again.maintenance.dream(calm)).toMatchObject({ snapshot: null, looked_at: 0 });
    expect(await again.library.exportAll('jsonl')).toBe(after);
    await again.library.edit(id(9), { set: { summary: 'the office tea machine is descaled on Tuesdays' } });
    expect(await again.maintenance.dream(calm)).toMatchObject({ looked_at: 1, merged: [] });
    await again.maintenance.close();
  });

  it('lets what is new join the group that is there, and leaves alone what a person wrote', async () => {
    const disk = createDisk();
    const nodes = dreamNodes();
    const late = nodes.filter(({ node_id: name }) => name === id(8));
    await disk.nodeFiles.save(nodes.filter((each) => !late.includes(each)));
    const first = await openRig(disk, { llm: 'local' });
    await first.maintenance.flush(10_000);
    const made = (await first.maintenance.dream(calm)).groups.find(({ members }) => members.includes(id(6)));
    expect(made?.members).toEqual([id(6), id(7)]);
    await first.maintenance.close();
    await disk.nodeFiles.save(late);
    const memory = await openRig(disk, { llm: 'local' });
    await memory.maintenance.flush(10_000);
    const joined = await memory.maintenance.dream(calm);
    expect(joined.groups).toMatchObject([{ parent: made?.parent, members: [id(6), id(7), id(8)] }]);
    const parent = disk.nodes.get(made?.parent as string);
    expect(parent).toMatchObject({ links: [id(6), id(7), id(8)], summary: expect.stringContaining('3 memories') });
    expect(disk.nodes.get(id(8))?.parent_node_id).toBe(parent?.node_id);
    expect(await memory.maintenance.dream(calm)).toMatchObject({ groups: [], snapshot: null });

    await memory.library.edit(made?.parent as string, { set: { summary: 'invoices, as I see them' } });
    const another = { ...(late[0] as MemoryNode), node_id: id(12), turns: ['end-12'] };
    await memory.maintenance.close();
    await disk.nodeFiles.save([another]);
    const after = await openRig(disk, { llm: 'local' });
    await after.maintenance.flush(10_000);
    await after.maintenance.dream(calm);
    expect(disk.nodes.get(made?.parent as string)?.summary).toBe('invoices, as I see them');
    await after.maintenance.close();
  });

  it('takes no member of a group out of what a session starts with', async () => {
    const { memory } = await sleeping();
    const before = await memory.recall.sessionContext('new', '/home/dev/shop');
    expect(before.lines.map(({ nodeId }) => nodeId)).toContain(id(4));
    await memory.maintenance.dream(calm);
    expect((await memory.recall.sessionContext('new', '/home/dev/shop')).lines.map(({ nodeId }) => nodeId)).toContain(
      id(4),
    );
    await memory.maintenance.close();
  });

  it('is only told of in a dry run', async () => {
    const { disk, memory } = await sleeping();
    const before = await memory.library.exportAll('jsonl');
    expect(told(await memory.maintenance.dream({ dryRun: true })).merged).toEqual([[id(1), id(2)]]);
    expect(await memory.library.exportAll('jsonl')).toBe(before);
    expect(await disk.snapshots.list()).toEqual([]);
    expect(memory.maintenance.status().dream).toBeNull();
    await memory.maintenance.close();
  });

  it('keeps to one project where it is told to', async () => {
    const { memory } = await sleeping();
    expect(await memory.maintenance.dream({ dryRun: false, projectDir: '/elsewhere' })).toMatchObject({
      looked_at: 0,
      merged: [],
      groups: [],
      tags: [],
      pruned: { nodes: [] },
    });
    await memory.maintenance.close();
  });

  it('is taken back by its snapshot', async () => {
    const { memory } = await sleeping();
    const before = await memory.library.exportAll('jsonl');
    const { snapshot } = await memory.maintenance.dream(calm);
    expect((await memory.maintenance.listSnapshots()).map(({ reason }) => reason)).toEqual(['consolidate']);
    await memory.maintenance.rollback(snapshot ?? '');
    expect(await memory.library.exportAll('jsonl')).toBe(before);
    await memory.maintenance.close();
  });

  it('leaves nothing of a memory that is removed in the group that quoted it', async () => {
    const { memory, node } = await sleeping();
    const { groups } = await memory.maintenance.dream(calm);
    await memory.library.remove([id(8)]);
    expect(memory.library.list({ all: true }).map(({ node_id }) => node_id)).not.toContain(groups[1]?.parent);
    expect([6, 7].map((day) => node(day).parent_node_id)).toEqual([null, null]);
    expect(await memory.library.exportAll('jsonl')).not.toContain('has a logo');
    await memory.maintenance.close();
  });

  it('leaves all as it was when the disk fails in the middle', async () => {
    const disk = createDisk();
    await disk.nodeFiles.save(dreamNodes());
    let failing = false;
    const save = disk.nodeFiles.save;
    const nodeFiles: Disk['nodeFiles'] = {
      ...disk.nodeFiles,
      save: async (nodes) => {
        if (!failing) return save(nodes);
        failing = false;
        await save(nodes.slice(0, 2));
        throw new Error('no space left');
      },
    };
    const memory = await openRig(disk, { llm: 'local', nodeFiles });
    await memory.maintenance.flush(10_000);
    const before = await memory.library.exportAll('jsonl');
    failing = true;
    await expect(memory.maintenance.dream(calm)).rejects.toMatchObject({
      code: 'unsafe_file',
      message: expect.stringContaining('no space left): nothing was changed'),
    });
    expect(await memory.library.exportAll('jsonl')).toBe(before);
    expect((await memory.maintenance.dream(calm)).merged).toHaveLength(1);
    await memory.maintenance.close();
  });
});

describe('with a model', () => {
  const text = {
    summary: 'staging Postgres is on port 5433, 5432 is held by the legacy CRM',
    trigger: 'When I connect to staging',
  };
  const NO = { fits: false, summary: '', trigger: '' };
  /** Has its own word about the port, and about groups. */
  const getModel = (merged: Partial<MergeResult>, group: Partial<MergeResult>) => ({
    ...scriptedModel({}),
    merge: async ({ kind, notes }: MergeInput): Promise<MergeResult> => {
      if (kind === 'group') return { ...NO, ...group };
      return notes.every(({ summary }) => summary.includes('Postgres')) ? { ...NO, ...merged } : NO;
    },
  });

  it('its text takes the place of both, its no is heard, and what it invents is not', async () => {
    const answers = [
      { merge: text, summary: text.summary },
      { merge: { ...text, summary: 'staging Postgres is on port 5433' }, summary: expect.stringContaining('5432') },
      {
        merge: { ...text, summary: `${text.summary}, see ticket OPS-12` },
        summary: expect.not.stringContaining('OPS-12'),
      },
    ];
    for (const { merge, summary } of answers) {
      const model = getModel({ fits: true, ...merge }, NO);
      const { memory, node } = await sleeping({ model, llm: 'claude' });
      expect(told(await memory.maintenance.dream(calm))).toEqual({ merged: [[id(1), id(2)]], groups: [] });
      expect(node(1).summary).toEqual(summary);
      await memory.maintenance.close();
    }
    const { memory } = await sleeping({
      model: getModel(NO, NO),
      llm: 'claude',
    });
    expect(told(await memory.maintenance.dream(calm))).toEqual({ merged: [], groups: [] });
    await memory.maintenance.close();
  });

  it('that may not be asked leaves its share for the next dream', async () => {
    let deferred = true;
    const model = getModel({ fits: true, ...text }, { fits: true, summary: 'one subject', trigger: '' });
    const quota = {
      decide: () =>
        deferred ? ({ kind: 'defer', untilMs: 1, because: 'limits' } as const) : ({ kind: 'allow' } as const),
    };
    const { memory } = await sleeping({ model, quota, llm: 'claude' });
    expect(await memory.maintenance.dream(calm)).toMatchObject({ groups: [], left: 6, without_model: 'limits' });
    deferred = false;
    expect(told(await memory.maintenance.dream(calm)).groups).toEqual(GROUPS);
    await memory.maintenance.close();
  });

  it('that fails is named with what it failed of', async () => {
    const merge = () => Promise.reject(new Error('claude was not found; install it'));
    const { memory } = await sleeping({ model: { ...scriptedModel({}), merge }, llm: 'claude' });
    const report = await memory.maintenance.dream(calm);
    expect(report).toMatchObject({ groups: [], without_model: 'claude was not found; install it' });
    await memory.maintenance.close();
  });

  it('is not called any more once the tokens of a pass are used up; rules and the next pass do the rest', async () => {
    const model = getModel({ fits: true, ...text }, { fits: true, summary: 'one subject', trigger: '' });
    let [calls, mergeTokens] = [0, 0];
    const counted = {
      ...model,
      async merge(...args: Parameters<NonNullable<typeof model.merge>>) {
        calls += 1;
        mergeTokens += 60_000;
        return await (model.merge as NonNullable<typeof model.merge>)(...args);
      },
      // What others use of the model does not count.
      health: () => ({ callsToday: 0, tokensToday: 1_000_000 * calls, lastError: '', mergeTokens }),
    };
    const config = Config.parse({ llm: 'claude', dream: { tokens: 60_000 } });
    const { memory } = await sleeping({ model: counted, config, llm: 'claude' });
    const reports = [await memory.maintenance.dream(calm)];
    while ((reports.at(-1)?.left ?? 0) > 0 && reports.length < 9) reports.push(await memory.maintenance.dream(calm));
    expect([reports.length, calls]).toEqual([4, 4]);
    const because = 'dream.tokens (60000) are used up';
    expect(reports.slice(0, -1).map(({ without_model: why }) => why)).toEqual([because, because, because]);
    expect(reports.flatMap((report) => told(report).groups)).toEqual(GROUPS);
    await memory.maintenance.close();
  });
});

it('runs by itself after a long enough idle time, and not before', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const dream = { idleMinutes: 30 };
    const { memory } = await sleeping({ config: Config.parse({ llm: 'local', dream }) });
    vi.advanceTimersByTime(29 * 60_000);
    memory.capture.captureTurns([]);
    vi.advanceTimersByTime(29 * 60_000);
    expect(memory.maintenance.status().dream).toBeNull();
    vi.advanceTimersByTime(2 * 60_000);
    await vi.waitUntil(() => memory.maintenance.status().dream !== null, { timeout: 60_000 });
    expect(memory.maintenance.status().dream).toMatchObject({ merged: 1, groups: 2 });
    await memory.maintenance.close();
  } finally {
    vi.useRealTimers();
  }
});
