import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lowestOrigin, type Origin } from '../../../../common/turn.ts';
import { closeSuperseded, createRevisions, isSameWork } from '../../../../memory/compaction/supersede.ts';
import { parseSection, renderSection } from '../../../../memory/model/markdown.ts';
import type { MemoryNode, StatementRef } from '../../../../memory/model/node.ts';
import { currentSummary, isPast, withoutRevisionsBy } from '../../../../memory/text/validity.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { anyNode } from '../../../helpers/random-nodes.ts';

const NEXT_ID = 'mem_20260401_101500_00000b';
const origins = fc.constantFrom<Origin>('user', 'assistant', 'tool', 'external');
const told = (over: Partial<MemoryNode>): MemoryNode => makeNode({ written_by: 'claude', ...over });
const next = (over: Partial<MemoryNode> = {}): MemoryNode =>
  told({
    node_id: NEXT_ID,
    summary: 'from now on the staging database listens on port 6432 instead',
    valid_from: '2026-04-01T10:15:00.000Z',
    turns: ['end-2'],
    ...over,
  });
const naming = (...refs: readonly StatementRef[]) => ({ refs, userTopics: new Set<string>() });

test('what comes from lower down never closes what comes from further up', () => {
  fc.assert(
    fc.property(origins, origins, fc.boolean(), (from, by, isNamed) => {
      const former = told({ origin: from });
      const named = naming(...(isNamed ? [{ nodeId: former.node_id, fact: null }] : []));
      const closed = closeSuperseded(former, next({ origin: by }), named);
      const mayEnd = isNamed || by === 'user' || by === 'assistant';
      expect(isPast(closed)).toBe(mayEnd && lowestOrigin([from, by]) === from);
    }),
  );
});

test('a revision loses no statement, and is read back unchanged', () => {
  fc.assert(
    fc.property(anyNode, fc.array(fc.nat(2)), (any, places) => {
      const former = { ...any, project: 'p', pinned_from: undefined, valid_from: '2020-01-01T00:00:00.000Z' };
      const named = naming(...places.map((fact) => ({ nodeId: former.node_id, fact })));
      const closed = closeSuperseded(former, next({ project: 'p' }), named);
      expect(closed.summary).toBe(former.summary);
      expect(closed.turns).toEqual(former.turns);
      for (const [at, { concept, value, polarity, evidence }] of former.facts.entries()) {
        expect(closed.facts[at]).toMatchObject({ concept, value, polarity, evidence });
      }
      expect(isSameWork(former, closed)).toBe(true);
      expect(closeSuperseded(closed, next({ project: 'p' }))).toStrictEqual(closed);
      const { pinned_from: _, ...plain } = closed;
      const head = { session_id: plain.session_id, project: plain.project };
      expect(parseSection(renderSection(plain), head)).toEqual({ kind: 'node', node: plain });
    }),
    { numRuns: 60 },
  );
});

test('what was said later is no known statement that a turn may end', () => {
  const fact = (port: number) => ({
    concept: 'staging database',
    value: `the staging database listens on port ${port}`,
    polarity: 'positive' as const,
    evidence: ['e1'],
    origin: 'user' as const,
  });
  const [before, after] = [told({ facts: [fact(5432)] }), next({ facts: [fact(6432)] })];
  const revisions = createRevisions({ all: () => [after, before] }, { areAbandoned: () => false });
  const turn = { turnId: 't', origin: 'user' as const, user: 'The staging database has a new port', parts: [] };
  const known = (at: string) => revisions.knownFacts(before.project, [{ ...turn, atMs: Date.parse(at) }]);
  expect(known('2026-03-20T08:00:00.000Z').map(({ text }) => text)).toEqual([fact(5432).value]);
  expect(known('2026-05-01T08:00:00.000Z')).toHaveLength(2);
});

test('removing what revised a node opens it again', () => {
  const former = told({});
  const closed = closeSuperseded(former, next());
  expect(closed).toMatchObject({ superseded_by: NEXT_ID, valid_to: '2026-04-01T10:15:00.000Z' });
  const open = withoutRevisionsBy(closed, new Set([NEXT_ID]));
  expect(isPast(open)).toBe(false);
  expect(currentSummary(open)).toBe(former.summary);
});

test.each([
  ['it is pinned', { pinned_from: 'active' }, {}],
  ['it is of another project', { project: '/elsewhere' }, {}],
  ['it stands for the same turns', {}, { turns: ['end-1'] }],
  ['it is newer', { valid_from: '2026-05-01T10:15:00.000Z' }, {}],
] as const)('a node stays as it is when %s', (_, former, later) => {
  const node = told(former as Partial<MemoryNode>);
  expect(closeSuperseded(node, next(later as Partial<MemoryNode>))).toBe(node);
});

test('what a writer names counts as the user’s where the user spoke of it', () => {
  const former = told({ origin: 'user' });
  const refs = [{ nodeId: former.node_id, fact: null }];
  const heir = next({ origin: 'tool', summary: 'staging database port 6432' });
  const spoken = { refs, userTopics: new Set(['staging', 'databas', 'port']) };
  expect(isPast(closeSuperseded(former, heir, spoken))).toBe(true);
  expect(closeSuperseded(former, heir, { refs, userTopics: new Set(['invoic']) })).toBe(former);
});

test('the assistant ends what it said itself, where it names what it replaced and by what, or the figure that holds now', () => {
  const former = told({ origin: 'assistant', summary: 'The client uses axios.' });
  const by = (summary: string): MemoryNode => closeSuperseded(former, next({ origin: 'assistant', summary }));
  expect(isPast(by('I replaced axios with ky.'))).toBe(true);
  expect(by('I would use ky instead of axios.')).toBe(former);
  expect(by('I removed axios.')).toBe(former);
  const figure = { ...former, summary: 'The request timeout is 10 seconds.' };
  const timed = (summary: string): MemoryNode => closeSuperseded(figure, next({ origin: 'assistant', summary }));
  expect(isPast(timed('The request timeout is 30 seconds now.'))).toBe(true);
  expect(timed('The request timeout is 30 seconds.')).toBe(figure);
  expect(timed('The request timeout is now: 1. read from the file; 2. checked')).toBe(figure);
  expect(timed('The connect timeout is 30 seconds now.')).toBe(figure);
  const users = { ...former, origin: 'user' } as const;
  expect(closeSuperseded(users, next({ origin: 'assistant', summary: 'I replaced axios with ky.' }))).toBe(users);
});
