import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPostings } from '../../../../memory/search/postings.ts';

const listOf = (postings: ReturnType<typeof createPostings>, list: number): number[] => {
  const { values, count } = postings.read(list);
  return [...values.slice(0, count)];
};

test('every list gives what was added to it, in order, whatever was added to others between', () => {
  const step = fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 4_294_967_295 }), fc.integer({ min: 1, max: 700 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const postings = createPostings();
      const expected = Array.from({ length: 6 }, (): number[] => []);
      for (const [list, value, times] of steps) {
        for (let nth = 0; nth < times; nth += 1) {
          postings.add(list * 1_000, value);
          expected[list]?.push(value);
        }
      }
      for (const [list, values] of expected.entries()) expect(listOf(postings, list * 1_000)).toEqual(values);
      postings.retain((value) => value % 2 === 0);
      for (const [list, values] of expected.entries()) {
        const kept = values.filter((value) => value % 2 === 0);
        expect(listOf(postings, list * 1_000)).toEqual(kept);
        postings.add(list * 1_000, 7);
        expect(listOf(postings, list * 1_000)).toEqual([...kept, 7]);
      }
    }),
    { numRuns: 60 },
  );
});

test('long lists go on over many blocks, and a cleared one is empty', () => {
  const postings = createPostings();
  for (let value = 0; value < 200_000; value += 1) postings.add(value % 3 === 0 ? 9 : 2, value);
  expect(listOf(postings, 9)).toEqual(Array.from({ length: 66_667 }, (_, at) => at * 3));
  postings.clear();
  expect([listOf(postings, 9), listOf(postings, 2), listOf(postings, 123_456)]).toEqual([[], [], []]);
  postings.add(9, 1);
  expect(listOf(postings, 9)).toEqual([1]);
});
