import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTextIds } from '../../../../memory/ingest/text-ids.ts';

const text = fc.oneof(
  fc.string({ maxLength: 4 }),
  fc.string({ unit: 'binary', maxLength: 4 }),
  fc.constantFrom('', 'é', 'ÿ', 'Ā', '포트', '\ud800', 'aĀ'),
);

test('each text keeps the number it was given first, and the number gives the text', () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 60 }), fc.array(text, { maxLength: 20 }), (texts, others) => {
      const ids = createTextIds();
      const given = new Map<string, number>();
      for (const each of texts) {
        const id = ids.of(each);
        expect(id).toBe(given.get(each) ?? given.size);
        given.set(each, id);
      }
      for (const [each, id] of given) expect([ids.find(each), ids.text(id)]).toEqual([id, each]);
      for (const each of others) expect(ids.find(each)).toBe(given.get(each));
      expect(ids.size()).toBe(given.size);
      ids.clear();
      expect([ids.size(), ids.find('é'), ids.of('new')]).toEqual([0, undefined, 0]);
      expect(() => ids.text(1)).toThrow(RangeError);
    }),
  );
});

test('many texts and long ones are told apart', () => {
  const ids = createTextIds();
  const texts = Array.from({ length: 20_000 }, (_, at) => `term${at}`);
  const long = [`${'x'.repeat(70_000)}a`, `${'x'.repeat(70_000)}b`, '포트'.repeat(5_000)];
  expect([...texts, ...long].map(ids.of)).toEqual([...texts, ...long].map((_, at) => at));
  expect([...texts, ...long].map(ids.find)).toEqual([...texts, ...long].map((_, at) => at));
  expect(long.map((each) => ids.text(ids.find(each) as number))).toEqual(long);
});
