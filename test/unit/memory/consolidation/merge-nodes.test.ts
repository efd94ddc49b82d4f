import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noQuota } from '../../../../bench/no-files.ts';
import { silentLog } from '../../../../common/log.ts';
import { lowestOrigin } from '../../../../common/turn.ts';
import {
  chooseMerges,
  findClusters,
  isUsers,
  type MergeRule,
  mayMerge,
  mergedNodes,
  type NodePair,
} from '../../../../memory/consolidation/merge-nodes.ts';
import { createMergeWriter, joinTexts } from '../../../../memory/consolidation/merge-writer.ts';
import { type MemoryNode, withoutSuccessor } from '../../../../memory/model/node.ts';
import { makeNode, type NodeFields } from '../../../helpers/nodes.ts';

const RULE: MergeRule = { words: 0.6, isWaiting: () => false };
const getId = (at: number): string => `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`;
const SUMMARIES = [
  'staging Postgres listens on port 5433',
  'Postgres of staging listens on port 5433 now',
  'CI runs on Node 20',
];

const node: fc.Arbitrary<NodeFields> = fc.record({
  summary: fc.constantFrom(...SUMMARIES),
  origin: fc.constantFrom('user', 'assistant', 'tool', 'external'),
  importance: fc.constantFrom('HIGH', 'MED', 'MED', 'LOW'),
  written_by: fc.constantFrom('claude', 'claude', 'local', 'user', 'bundle', 'document'),
  recall_mode: fc.constantFrom('active', 'active', 'both'),
  project: fc.constantFrom('/a', '/a', '/b'),
  superseded_by: fc.constantFrom(null, null, null, getId(0)),
});
const shelf = fc.array(node, { minLength: 2, maxLength: 12 }).map((all) =>
  all.map((over, at) => {
    const created_at = `2026-03-01T10:15:${String(at).padStart(2, '0')}.000Z`;
    return makeNode({ ...over, node_id: getId(at), turns: [`end-${at}`], created_at, valid_from: created_at });
  }),
);
const everyPair = (nodes: readonly MemoryNode[]): NodePair[] =>
  nodes.flatMap((left) => nodes.map((right) => ({ left: left.node_id, right: right.node_id, similarity: 0.9 })));
const getMap = (nodes: readonly MemoryNode[]) => new Map(nodes.map((each) => [each.node_id, each]));

function mergeAll(nodes: readonly MemoryNode[]): MemoryNode[] {
  const after = getMap(nodes);
  for (const { keeper, absorbed } of chooseMerges(after, everyPair(nodes), RULE)) {
    const [first, ...others] = [keeper, ...absorbed].map((id) => after.get(id) as MemoryNode) as [MemoryNode];
    const making = {
      text: joinTexts([first, ...others]),
      author: { by: 'rules' as const },
      at: '2026-04-01T00:00:00.000Z',
    };
    for (const made of mergedNodes(first, others, making)) after.set(made.node_id, made);
  }
  return [...after.values()];
}

describe('merging', () => {
  it('keeps what matters most word for word, what a person wrote, and what is trusted otherwise', () => {
    fc.assert(
      fc.property(shelf, (nodes) => {
        const after = getMap(mergeAll(nodes));
        for (const before of nodes) {
          const now = after.get(before.node_id) as MemoryNode;
          if (isUsers(before)) expect(now.superseded_as).toBeUndefined();
          if (isUsers(before)) expect(now).toEqual(before);
          expect(now.origin).toBe(before.origin);
          const heir = after.get(
            now.superseded_as === 'merged' ? (now.superseded_by as string) : now.node_id,
          ) as MemoryNode;
          if (before.importance === 'HIGH' && !isUsers(before)) expect(heir.importance).toBe('HIGH');
          if (before.importance === 'HIGH') expect(heir.summary).toContain(before.summary);
          expect(heir.turns).toEqual(expect.arrayContaining(before.turns));
          expect(lowestOrigin([heir.origin, before.origin])).toBe(heir.origin);
          expect(heir.created_at <= before.created_at).toBe(true);
          if (now.superseded_as === 'merged') expect(withoutSuccessor(now)).toEqual(withoutSuccessor(before));
        }
      }),
    );
  });

  it('a second time changes nothing', () => {
    fc.assert(
      fc.property(shelf, (nodes) => {
        const taken = (after: readonly MemoryNode[]) => (keeper: string) =>
          after.filter((each) => each.superseded_as === 'merged' && each.superseded_by === keeper).length;
        const once = mergeAll(nodes);
        // The texts as they were: what the vectors of before say of them.
        const asBefore = once.map((each) => ({
          ...each,
          summary: nodes.find(({ node_id }) => node_id === each.node_id)?.summary ?? '',
          author: nodes.find(({ node_id }) => node_id === each.node_id)?.author ?? each.author,
          status: nodes.find(({ node_id }) => node_id === each.node_id)?.status ?? each.status,
        }));
        expect(chooseMerges(getMap(asBefore), everyPair(nodes), RULE, taken(once))).toEqual([]);
      }),
    );
  });

  it('gives a keeper at most five in its life', () => {
    const nodes = Array.from({ length: 9 }, (_, at) =>
      makeNode({
        node_id: getId(at),
        turns: [`end-${at}`],
        written_by: 'claude',
        created_at: `2026-03-01T10:15:0${at}.000Z`,
      }),
    );
    const sizes = (taken: number) =>
      chooseMerges(getMap(nodes), everyPair(nodes), RULE, () => taken).map(({ absorbed }) => absorbed.length);
    expect(sizes(0)).toEqual([5, 2]);
    expect(sizes(5)).toEqual([]);
  });

  it.each([
    ['another figure', 'Postgres of staging listens on port 5432 now'],
    ['another environment', 'PRODUCTION Postgres listens on port 5433'],
    ['a denial', 'staging Postgres does not listen on port 5433'],
    ['another matter', 'the office cat sleeps on the router'],
  ])('keeps %s apart', (_, summary) => {
    const keeper = makeNode({ summary: 'staging Postgres listens on port 5433', turns: ['a'], written_by: 'claude' });
    const other = makeNode({ node_id: getId(9), summary, turns: ['b'], written_by: 'claude' });
    expect(mayMerge(keeper, { ...other, summary: SUMMARIES[1] as string }, RULE)).toBe(true);
    expect(mayMerge(keeper, other, RULE)).toBe(false);
  });

  it('merges nodes of high importance that say the same, and no others', () => {
    const [one, other] = [0, 1].map((at) => makeNode({ node_id: getId(at), turns: [`end-${at}`], importance: 'HIGH' }));
    expect(mayMerge(one as MemoryNode, other as MemoryNode, RULE)).toBe(true);
    const reworded = { ...other, summary: 'the staging database: its port is 5433' } as MemoryNode;
    expect(mayMerge(one as MemoryNode, { ...reworded, importance: 'MED' }, RULE)).toBe(true);
    expect(mayMerge(one as MemoryNode, reworded, RULE)).toBe(false);
  });

  it('without a model, merges the repetitions of a batch and leaves a paraphrase', async () => {
    const options = {
      model: null,
      quota: noQuota,
      log: silentLog,
      signal: new AbortController().signal,
      tokenLimit: 1_000,
      modelCallLimit: 0,
    };
    const writer = createMergeWriter({ ...options, repeated: 0.5 });
    const texts = [...Array.from({ length: 7 }, () => SUMMARIES[0] as string), 'to reach the test data, dial 5433'];
    const nodes = texts.map((summary, at) => makeNode({ node_id: getId(at), turns: [`end-${at}`], summary }));
    const made = await writer.merge(nodes);
    expect(made).toMatchObject({ kind: 'text', text: { summary: SUMMARIES[0] }, nodes: nodes.slice(0, 7) });
    expect(await writer.merge([nodes[0], nodes[7]] as MemoryNode[])).toEqual({ kind: 'apart' });
  });

  it('keeps decisions, open items and values of all', () => {
    const said = (text: string) => ({ text, origin: 'user', turn: 't', by: 'user' }) as const;
    const one = makeNode({ decisions: [said('use pnpm')], open: [said('tell Ann')], values: ['5433'] });
    const other = makeNode({ node_id: getId(9), decisions: [said('use pnpm'), said('squash')], values: ['20'] });
    const text = { summary: 's', trigger: 't' };
    const [merged] = mergedNodes(one, [other], { text, author: { by: 'rules' }, at: one.created_at });
    expect(merged?.decisions?.map((each) => each.text)).toEqual(['use pnpm', 'squash']);
    expect(merged).toMatchObject({ open: [{ text: 'tell Ann' }], values: ['5433', '20'] });
  });

  it('keeps two values of one thing apart', () => {
    const fact = { concept: 'runtime', polarity: 'positive' as const, evidence: [] };
    const one = makeNode({
      summary: 'the runtime was chosen',
      written_by: 'claude',
      facts: [{ ...fact, value: 'Node 20' }],
    });
    const other = makeNode({ ...one, node_id: getId(9), facts: [{ ...fact, value: 'Node 22' }] });
    expect(mayMerge(one, other, RULE)).toBe(false);
  });
});

const letter = fc.constantFrom(...'abcdefghijkl');
const edges: fc.Arbitrary<NodePair[]> = fc.array(
  fc.record({ left: letter, right: letter, similarity: fc.integer({ min: 0, max: 100 }).map((at) => at / 100) }),
  { maxLength: 40 },
);
const GROUP_RULE = { minSize: 2, maxSize: 8 };

it('what hangs together is one cluster', () => {
  const near = (left: string, right: string, similarity: number): NodePair => ({ left, right, similarity });
  expect(
    findClusters([near('a', 'b', 0.9), near('c', 'b', 0.8), near('x', 'y', 0.7), near('z', 'z', 1)], GROUP_RULE),
  ).toEqual([
    ['a', 'b', 'c'],
    ['x', 'y'],
  ]);
});

it('clusters keep to their sizes, share nothing, and every member is near another', () => {
  fc.assert(
    fc.property(edges, (near) => {
      const clusters = findClusters(near, GROUP_RULE);
      const all = clusters.flat();
      expect(new Set(all).size).toBe(all.length);
      for (const members of clusters) {
        expect(members.length).toBeGreaterThanOrEqual(2);
        expect(members.length).toBeLessThanOrEqual(8);
        for (const member of members) {
          const others = new Set(members.filter((each) => each !== member));
          const isNear = ({ left, right }: NodePair) =>
            (left === member && others.has(right)) || (right === member && others.has(left));
          expect(near.some(isNear)).toBe(true);
        }
      }
    }),
  );
});

it('neither the order of the edges nor their sides matter', () => {
  fc.assert(
    fc.property(edges, fc.integer(), (near, seed) => {
      const turned = near.map((pair, at) =>
        (seed >> (at % 30)) & 1 ? { ...pair, left: pair.right, right: pair.left } : pair,
      );
      expect(findClusters(turned.toReversed(), GROUP_RULE)).toEqual(findClusters(near, GROUP_RULE));
    }),
  );
});

it('with room for all, clusters are what can be reached', () => {
  fc.assert(
    fc.property(edges, (near) => {
      const reached = (from: string): string[] => {
        const seen = new Set([from]);
        for (let size = 0; size !== seen.size; ) {
          size = seen.size;
          for (const { left, right } of near) {
            if (seen.has(left)) seen.add(right);
            if (seen.has(right)) seen.add(left);
          }
        }
        return [...seen].sort();
      };
      for (const members of findClusters(near, { minSize: 1, maxSize: 99 }))
        expect(members).toEqual(reached(members[0] ?? ''));
    }),
  );
});
