import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lowestOrigin, type Origin } from '../../../../common/turn.ts';
import { closeSuperseded, isSameWork, mayRevise, tokenFingerprint } from '../../../../memory/compaction/supersede.ts';
import { parseStatement, revisesStatement } from '../../../../memory/compaction/supersession-patterns.ts';
import { parseSection, renderSection } from '../../../../memory/model/markdown.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { currentSummary, isPast, withoutRevisionsBy } from '../../../../memory/text/validity.ts';
import { anyNode, makeNode } from '../../../helpers/nodes.ts';

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

test('what comes from lower down never closes what comes from further up', () => {
  fc.assert(
    fc.property(origins, origins, fc.boolean(), (from, by, isNamed) => {
      const former = told({ origin: from });
      const named = isNamed ? [{ nodeId: former.node_id, fact: null }] : [];
      const closed = closeSuperseded(former, next({ origin: by }), named);
      expect(isPast(closed)).toBe(lowestOrigin([from, by]) === from);
    }),
  );
});

test('a revision loses no statement, and is read back unchanged', () => {
  fc.assert(
    fc.property(anyNode, fc.array(fc.nat(2)), (any, places) => {
      const former = { ...any, project: 'p', pinned_from: undefined, valid_from: '2020-01-01T00:00:00.000Z' };
      const named = places.map((fact) => ({ nodeId: former.node_id, fact }));
      const closed = closeSuperseded(former, next({ project: 'p' }), named);
      expect(closed.summary).toBe(former.summary);
      expect(closed.turns).toEqual(former.turns);
      for (const [at, { concept, value, polarity, evidence }] of former.facts.entries()) {
        expect(closed.facts[at]).toMatchObject({ concept, value, polarity, evidence });
      }
      expect(isSameWork(former, closed)).toBe(true);
      expect(closeSuperseded(closed, next({ project: 'p' }), [])).toStrictEqual(closed);
      const { pinned_from: _, ...plain } = closed;
      const head = { session_id: plain.session_id, project: plain.project };
      expect(parseSection(renderSection(plain), head)).toEqual({ kind: 'node', node: plain });
    }),
    { numRuns: 60 },
  );
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

const gist = (...texts: readonly string[]): string => tokenFingerprint(texts.map(parseStatement));
const word = fc.constantFrom(
  ...'staging database port queue parser timeout retries jest vitest npm pnpm docs/api.md fooBars 5433 6432 30s'.split(
    ' ',
  ),
);
const joint = fc.constantFrom(' now ', ' instead of ', ' uses ', ' is ', ' moved from ', ' to ', ' no longer ', ' ');
const statement = fc
  .array(fc.tuple(word, joint), { minLength: 1, maxLength: 7 })
  .map((pieces) => pieces.flat().join('').trim());

test('a revision is never missed among other statements', () => {
  let revisions = 0;
  fc.assert(
    fc.property(statement, statement, fc.array(statement, { maxLength: 2 }), (next, former, others) => {
      if (!revisesStatement(parseStatement(next), parseStatement(former))) return;
      revisions += 1;
      expect(mayRevise(gist(next, ...others), gist(former, ...others))).toBe(true);
    }),
    { numRuns: 5_000, seed: 1 },
  );
  expect(revisions).toBeGreaterThan(20);
});

test('statements of other words are told apart', () => {
  const named = (number: number): string =>
    `q${[...String(number)].map((digit) => 'bcdfghjklm'[Number(digit)]).join('')}`;
  const said = Array.from({ length: 60 }, (_, at) =>
    gist([1, 2, 3, 4].map((nth) => named(nth * 100 + at)).join(' now ')),
  );
  const left = said.flatMap((next) => said.filter((former) => former !== next && mayRevise(next, former)));
  expect(left.length).toBeLessThan((said.length * said.length) / 20);
});

test('a text of any length has one', () => {
  const former = parseStatement('the staging port is 5433');
  const others = Array.from({ length: 300_000 }, (_, at) => `word${at}`);
  const long = tokenFingerprint([{ ...former, tokens: new Set([...former.tokens, ...others]) }]);
  expect(mayRevise(gist('the staging port is 6432 now'), long)).toBe(true);
});

test('a word takes two bytes, and without a cue nothing is asked', () => {
  expect(gist('The staging database listens on port 5433').length).toBeLessThan(10);
  expect(mayRevise(gist('the staging database port'), gist('the staging database port'))).toBe(false);
});
