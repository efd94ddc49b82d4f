import fc from 'fast-check';
import { expect, it } from 'vitest';
import { getSequences, hashText } from '../../../../memory/text/repetition.ts';

it('hashes each five words in a row as the words joined by blanks', () => {
  const unit = fc.oneof(
    fc.constantFrom(' ', ' ', ', ', '_', 'a', 'é', '\ud800', '\udc00', '字', '\u{10400}', '\u{1f600}'),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
      const text = units.join('');
      const words = [...text.matchAll(/[\p{L}\p{N}_]+/gu)].map(([word]) => word);
      const expected = words.slice(4).map((_, at) => hashText(words.slice(at, at + 5).join(' ')));
      expect([...getSequences(text)]).toEqual(expected);
    }),
  );
});
