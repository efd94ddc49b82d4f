import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CometError } from '../../../../common/errors.ts';
import { silentLog } from '../../../../common/log.ts';
import { localDay } from '../../../../common/text.ts';
import { getCosts } from '../../../../engine/api/cost.ts';
import { uiOperations } from '../../../../engine/api/ui/contract.ts';
import { trimmed } from '../../../../engine/api/ui/conversation.ts';
import { createRemovals } from '../../../../engine/api/ui/forget.ts';
import { createUndo } from '../../../../engine/api/ui/snapshot.ts';
import { memoryGraph } from '../../../../memory/graph.ts';
import type { RecallHit, SearchOptions } from '../../../../memory/index.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { EMPTY_TOTALS } from '../../../../proxy/ledger/store.ts';
import { engineServices } from '../../../helpers/engine-services.ts';
import { makeNode } from '../../../helpers/nodes.ts';

it('shows an empty store as empty', async () => {
  const library = { list: () => [], listSessions: async () => [], graph: () => memoryGraph([]) };
  const services = engineServices({ library });
  expect(await uiOperations['ui/overview'].run(services, {})).toMatchObject({ sessions: [] });
  expect(await uiOperations['ui/savings'].run(services, {})).toEqual({ days: [], sessions: [], projects: [] });
  expect(await uiOperations['ui/graph'].run(services, {})).toEqual({ nodes: [], links: [], left_out: 0 });
  const search = { query: '', limit: 50 };
  expect(await uiOperations['ui/search'].run(services, search)).toEqual({ total: 0, hits: [], projects: [] });
});

it('says that the store opens, without waiting for it', async () => {
  const services = engineServices({});
  expect(await uiOperations['ui/overview'].run(services, {})).toMatchObject({
    sessions: [],
    problems: [{ file: 'memory', message: 'the store is still opening' }],
  });
});

it('limits the graph of 50,000 memories to 10,000 nodes, says how many it leaves out, and links places in the list', () => {
  const nodes = Array.from({ length: 50_000 }, (_, at): MemoryNode => {
    const links = at === 0 ? [] : [`m${at - 1}`];
    return makeNode({ node_id: `m${at}`, links, topic_tags: ['ports'] });
  });
  const graph = memoryGraph(nodes);
  expect(graph.nodes).toHaveLength(10_000);
  expect(graph.left_out).toBe(40_001);
  for (const [from, to] of graph.links) expect(Math.max(from, to)).toBeLessThan(10_000);
  expect(graph.nodes.at(-1)?.kind).toBe('topic');
  expect(graph.links).toHaveLength(9_998 + 9_999);
});

it('lists the first of 50,000 memories with their number, and without those that are being forgotten', async () => {
  const nodes = Array.from({ length: 50_000 }, (_, at) =>
    makeNode({ node_id: `m${at}`, project: at < 1 ? '/a' : '/b' }),
  );
  const removals = { ...engineServices({}).removals, hidden: () => new Set(['m0']) };
  const services = engineServices({ library: { list: () => nodes } }, { removals });
  const { hits, total, projects } = await uiOperations['ui/search'].run(services, { query: '', limit: 500 });
  expect([hits[0]?.node_id, hits.length, total, projects]).toEqual(['m1', 500, 49_999, ['/b']]);
});

it('ranks only what passes the filters, and says whether there is more', async () => {
  const nodes = Array.from({ length: 60 }, (_, at) => makeNode({ node_id: `m${at}`, project: at < 51 ? '/a' : '/b' }));
  const search = async (_: string, { top, project, skips = () => false }: SearchOptions): Promise<RecallHit[]> => {
    const found = nodes.filter((node) => node.project === (project ?? node.project) && !skips(node)).slice(0, top);
    return found.map((node) => ({ node, score: 1, line: { nodeId: '', text: '' } as never, raw: null, lanes: {} }));
  };
  const services = engineServices({ library: { list: () => nodes }, recall: { search } });
  const find = async (over: object) => {
    const input = { query: 'port', limit: 50, ...over };
    const { total, hits } = await uiOperations['ui/search'].run(services, input);
    return [hits.length, total > hits.length];
  };
  expect(await find({})).toEqual([50, true]);
  expect(await find({ project: '/b' })).toEqual([9, false]);
  nodes.splice(0, 1);
  expect(await find({ project: '/a' })).toEqual([50, false]);
  expect(await find({ project: '/a', kind: 'note' })).toEqual([0, false]);
});

it('lists the results of tools by their kind and words', async () => {
  const call = makeNode({ node_id: 'm1', kind: 'tool', title: 'Tests', summary: 'ran npm test' });
  const list = ({ all }: { all?: boolean | undefined }) => (all === true ? [call, makeNode({})] : []);
  const services = engineServices({ library: { list } });
  for (const [query, found] of [
    ['', 1],
    ['npm tests', 1],
    ['cargo', 0],
  ] as const) {
    const input = { query, limit: 50, kind: 'tool' };
    expect((await uiOperations['ui/search'].run(services, input)).total).toBe(found);
  }
});

it('names topics and files that two memories share', () => {
  const [one, other] = ['a', 'b'].map((id) =>
    makeNode({ node_id: id, topic_tags: ['ports', id], source_links: [`file:src/${id}.ts`, 'file:src/main.ts'] }),
  ) as [MemoryNode, MemoryNode];
  const { nodes, links } = memoryGraph([one, other]);
  expect(nodes.slice(2).map(({ kind, title }) => [kind, title])).toEqual([
    ['topic', 'ports'],
    ['file', 'src/main.ts'],
  ]);
  expect(links.filter(([, , kind]) => kind === 'tag')).toEqual([
    [0, 2, 'tag'],
    [1, 2, 'tag'],
  ]);
});

it('trims only as many messages as the request left out', () => {
  const message = (seq: number, nodes: string[]) => ({
    ...{ seq, role: 'user', content: 'x', sha256: '', turn: 't', at: '', nodes },
  });
  const messages = [message(0, ['m1']), message(1, ['m1']), message(2, ['m1']), message(3, [])];
  const dropped = [{ from: 0, to: 1, messages: 2, tokens: 9, nodes: ['m1'] }];
  const added = [
    {
      channel: 'preamble',
      position: 'messages.0',
      text: 'Memory:\n- [m1] the port is 4711',
      nodes: ['m1'],
      reason: '',
    },
  ] as const;
  const { lines, lineOf } = trimmed(messages, { dropped, added });
  expect(lines).toEqual([{ text: '- [m1] the port is 4711', nodes: ['m1'] }]);
  expect([...lineOf.keys()].map(({ seq }) => seq)).toEqual([0, 1]);
});

it('undoes once, and not after ten minutes', () => {
  let now = 0;
  const undo = createUndo(() => now);
  const [early, late] = [undo.keep([[makeNode({}), makeNode({})]]), undo.keep([])];
  expect(undo.take(early)).toHaveLength(1);
  expect(() => undo.take(early)).toThrow('can be undone once');
  now += 10 * 60_000;
  expect(() => undo.take(late)).toThrow('within ten minutes');
});

describe('a removal with a way back', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'cc-removals-'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  const removals = (removed: string[], undoMs: number) =>
    createRemovals({
      ...{ file: path.join(dir, 'removals.json'), log: silentLog, undoMs },
      async remove([id = '']) {
        if (id === 'gone') throw new CometError('not_found', 'no memory begins with "gone"');
        removed.push(id);
      },
    });

  it('is carried out when its time is over', async () => {
    const removed: string[] = [];
    const { add, hidden } = removals(removed, 1);
    await add(['gone', 'one']);
    await expect.poll(() => hidden().size).toBe(0);
    expect(removed).toEqual(['one']);
  });

  it('cannot be taken back while it is carried out', async () => {
    let begin = (): void => {};
    let end = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const remove = async (): Promise<void> => {
      begin();
      await ended;
    };
    const { add, cancel, hidden } = createRemovals({ file: path.join(dir, 'slow'), log: silentLog, undoMs: 1, remove });
    const key = await add(['one']);
    await begun;
    expect(await cancel(key)).toBeNull();
    end();
    await expect.poll(() => hidden().size).toBe(0);
  });

  it('is not carried out once it was taken back', async () => {
    const removed: string[] = [];
    const { add, cancel, close, hidden } = removals(removed, 60_000);
    const key = await add(['one']);
    expect([...hidden()]).toEqual(['one']);
    expect(await cancel(key)).toEqual(['one']);
    expect(await cancel(key)).toBeNull();
    await close();
    expect(removed).toEqual([]);
    expect(await readFile(path.join(dir, 'removals.json'), 'utf8')).toBe('[]');
  });

  it('is carried out when the engine ends, and at the next start after a kill', async () => {
    const [removed, later]: [string[], string[]] = [[], []];
    const killed = removals(removed, 60_000);
    await killed.add(['one', 'two']);
    await removals(later, 60_000).begin();
    expect(later).toEqual(['one', 'two']);
    await killed.close();
    expect(removed).toEqual(['one', 'two']);
  });
});

it('counts today and the seven days of a week in the zone of the machine, also where one of them has 25 hours', () => {
  vi.stubEnv('TZ', 'America/New_York');
  onTestFinished(() => void vi.unstubAllEnvs());
  const asked: string[] = [];
  const totals = (sinceMs: number) => {
    asked.push(sinceMs === 0 ? 'ever' : localDay(sinceMs));
    return EMPTY_TOTALS;
  };
  // Half past eleven in the evening there; its clocks went back on November 1.
  getCosts({ days: () => [], disabledConversations: () => [], totals }, Date.parse('2026-11-03T04:30:00Z'));
  expect(asked).toEqual(['ever', '2026-11-02', '2026-10-27']);
});
