import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createWordIndex as createOver, type WordIndex } from '../../../../memory/search/inverted-index.ts';
import type { Hits } from '../../../../memory/search/node-index.ts';
import { createTextIds } from '../../../../memory/search/string-interner.ts';

interface Scored {
  readonly id: number;
  readonly score: number;
}

/** Its texts by numbers, as the rows' counts give them. */
function createWordIndex(): Omit<WordIndex, 'put'> & {
  put(slot: number, row: { kind: 'turn'; turn: string; before: readonly string[] }, tokens: readonly string[]): void;
} {
  const [ids, names] = [createTextIds(), createTextIds()];
  const index = createOver(ids);
  return {
    ...index,
    put: (slot, { kind, turn, before }, tokens) =>
      index.put(slot, { kind, turn: names.of(turn), before: before.map(names.of) }, tokens.map(ids.of)),
  };
}

const TURNS = ['t0', 't1', 't2', 't3', 't4'];
const WORDS = 'port host cache queue'.split(' ');
const turnRow = fc.record({
  turn: fc.constantFrom(...TURNS),
  before: fc.subarray(TURNS),
  tokens: fc.array(fc.constantFrom(...WORDS), { maxLength: 8 }),
  stays: fc.boolean(),
});
const terms = fc.uniqueArray(fc.tuple(fc.constantFrom(...WORDS, 'nowhere'), fc.constantFrom(1, 0.4)), {
  selector: ([term]) => term,
});

interface Text {
  readonly id: number;
  readonly tokens: readonly string[];
}

function bm25(texts: readonly Text[], asked: readonly (readonly [string, number])[]): Scored[] {
  const mean = texts.reduce((sum, { tokens }) => sum + tokens.length, 0) / texts.length;
  const often = (tokens: readonly string[], term: string): number => tokens.filter((token) => token === term).length;
  return texts
    .map(({ id, tokens }) => {
      const parts = asked.map(([term, weight]) => {
        const df = texts.filter((text) => text.tokens.includes(term)).length;
        const count = often(tokens, term);
        const idf = Math.log(1 + (texts.length - df + 0.5) / (df + 0.5));
        return count === 0 ? 0 : (weight * idf * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * tokens.length) / mean));
      });
      return { id, score: parts.reduce((sum, part) => sum + part, 0) };
    })
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score);
}

function expectSame({ slots, scores }: Hits, exact: readonly Scored[]): void {
  expect(slots.toSorted()).toEqual(exact.map(({ id }) => id).sort());
  for (const [at, score] of scores.entries()) expect(score).toBeCloseTo(exact[at]?.score ?? Number.NaN, 9);
}

test('scores are those of BM25 over the rows that stay, of turns and of their windows', () => {
  fc.assert(
    fc.property(fc.array(turnRow, { maxLength: 14 }), terms, (drawn, asked) => {
      const index = createWordIndex();
      const rows = drawn.map((each, id) => ({
        ...each,
        id,
        before: each.before.filter((turnId) => turnId !== each.turn),
      }));
      for (const { id, tokens, ...row } of rows) index.put(id, { kind: 'turn', ...row }, tokens);
      for (const { id, stays } of rows) if (!stays) index.remove(id);
      const kept = rows.filter(({ stays }) => stays);
      const windows = kept.map(({ id, tokens, before }) => {
        const earlier = before.flatMap((turnId) => kept.find(({ turn }) => turn === turnId)?.tokens ?? []);
        return { id, tokens: [...tokens, ...earlier] };
      });
      const everything = { limit: 100, fits: () => true };
      expectSame(index.search('turn', asked, everything), bm25(kept, asked));
      expectSame(index.searchWindows(asked, everything), bm25(windows, asked));
      expect(index.search('node', asked, everything).slots).toEqual([]);
      index.clear();
      expect(index.searchWindows(asked, everything).slots).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test('of a long turn the windows hold the first words only', () => {
  const index = createWordIndex();
  const long = [...Array.from({ length: 299 }, (_, at) => `filler${at}`), 'early', 'late'];
  index.put(0, { kind: 'turn', turn: 'a', before: [] }, long);
  index.put(1, { kind: 'turn', turn: 'b', before: ['a'] }, ['short']);
  const everything = { limit: 10, fits: () => true };
  const idsOf = (word: string): readonly number[] => index.searchWindows([[word, 1]], everything).slots;
  expect([idsOf('early').toSorted(), idsOf('late')]).toEqual([[0, 1], []]);
  expect(index.search('turn', [['late', 1]], everything).slots).toEqual([0]);
});

test('rows that were removed by the thousand leave no trace in what is found', () => {
  const index = createWordIndex();
  const put = (slot: number): void =>
    index.put(slot, { kind: 'turn', turn: `t${slot}`, before: [`t${slot - 1}`] }, ['common', `own${slot}`]);
  for (let slot = 0; slot < 6_000; slot += 1) put(slot);
  for (let slot = 0; slot < 5_999; slot += 1) index.remove(slot);
  put(6_000);
  const everything = { limit: 10, fits: () => true };
  const idsOf = ({ slots }: Hits): number[] => slots.toSorted();
  expect(idsOf(index.search('turn', [['common', 1]], everything))).toEqual([5_999, 6_000]);
  expect(idsOf(index.searchWindows([['own5999', 1]], everything))).toEqual([5_999, 6_000]);
  expect(idsOf(index.searchWindows([['own5998', 1]], everything))).toEqual([]);
  expect(idsOf(index.search('turn', [['common', 1]], { limit: 10, fits: (slot) => slot === 6_000 }))).toEqual([6_000]);
});
