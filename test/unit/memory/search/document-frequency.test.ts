import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CountedRow, createRowCounts } from '../../../../memory/search/in-memory-index.ts';
import { createThesaurus } from '../../../../memory/search/query-expansion.ts';
import { createTermCounter } from '../../../../memory/search/term-counter.ts';

const BOOKED: Pick<
  CountedRow,
  'node_id' | 'turn' | 'origin' | 'created_at_ms' | 'before' | 'sources' | 'timed' | 'digest' | 'pieces'
> = {
  ...{ node_id: 'n', turn: '', origin: 'user', created_at_ms: 0, before: [], sources: [], timed: false, digest: '' },
  pieces: new Uint8Array(0),
};

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
  kind: fc.constantFrom('node' as const, 'turn' as const),
  session_id: fc.constantFrom('s1', 's2'),
  project: fc.constantFrom('one', 'two', ''),
  tokens: fc.array(word, { maxLength: 6 }),
  stays: fc.boolean(),
});

test('weights are those of the rows that stay, for every filter', () => {
  fc.assert(
    fc.property(fc.array(row, { maxLength: 30 }), (drawn) => {
      const { stats, put, remove } = createRowCounts(createThesaurus(1, () => new Float32Array(1)));
      const rows = drawn.map(({ stays, tokens, ...each }, at) => {
        const counted = { ...BOOKED, ...each, row_id: `row ${at}`, tokens: tokens.join(' ') };
        put(counted);
        return { counted, tokens, stays };
      });
      for (const { counted, stays } of rows) if (!stays) remove(counted);
      for (const filter of [{}, { project: 'one' }, { sessionId: 's2' }, { project: 'two', sessionId: 's1' }]) {
        const shown = rows.filter(
          ({ stays, counted: { project, session_id } }) =>
            stays && (filter.project ?? project) === project && (filter.sessionId ?? session_id) === session_id,
        );
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
