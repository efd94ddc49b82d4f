import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTermCounter } from '../../../../memory/core/term-counter.ts';
import { type CountedRow, createTermStats } from '../../../../memory/core/term-stats.ts';

test('a counter counts like a map, whatever is added and taken away', () => {
  const step = fc.tuple(fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 4_000_000_000 })), fc.constantFrom(1, 1, 2, -1));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const counter = createTermCounter();
      const counts = new Map<number, number>();
      for (const [id, by] of steps) {
        counter.add(id, by);
        counts.set(id, Math.max(0, (counts.get(id) ?? 0) + by));
      }
      for (const [id, count] of counts) expect(counter.get(id)).toBe(count);
      expect(counter.get(4_100_000_000)).toBe(0);
    }),
  );
});

const word = fc.constantFrom(...'port host cache queue constructor __proto__ 데이'.split(' '));
const row = fc.record({
  row: fc.record({
    kind: fc.constantFrom('node' as const, 'turn' as const),
    session_id: fc.constantFrom('s1', 's2'),
    project: fc.constantFrom('one', 'two', ''),
  }),
  tokens: fc.array(word, { maxLength: 6 }),
  stays: fc.boolean(),
});

test('weights are those of the rows that stay, for every filter', () => {
  fc.assert(
    fc.property(fc.array(row, { maxLength: 30 }), (rows) => {
      const stats = createTermStats();
      for (const { row: each, tokens } of rows) stats.add(each, tokens);
      for (const { row: each, tokens, stays } of rows) if (!stays) stats.remove(each, tokens);
      const kept = rows.filter(({ stays }) => stays);
      for (const filter of [{}, { project: 'one' }, { sessionId: 's2' }, { project: 'two', sessionId: 's1' }]) {
        const fits = ({ project, session_id }: CountedRow): boolean =>
          (filter.project ?? project) === project && (filter.sessionId ?? session_id) === session_id;
        const shown = kept.filter((each) => fits(each.row));
        expect(stats.rowsIn(filter)).toBe(shown.length);
        for (const token of ['port', 'constructor', 'nowhere']) {
          const df = shown.filter(({ tokens }) => tokens.includes(token)).length;
          const idf = Math.log(1 + (shown.length - df + 0.5) / (df + 0.5));
          expect(stats.weights([token], filter).get(token)).toBe(idf);
          expect(stats.knownWeights([token], filter).get(token)).toBe(df === 0 ? undefined : idf);
        }
      }
    }),
  );
});
