import fc from 'fast-check';

const [FIRST_SURROGATE, SURROGATES] = [0xd800, 0x800];

/**
 * The same characters in the same order as fast-check's `unit: 'binary'`, which fills a table of all million code points
 * before the first text.
 */
export const CODE_POINT: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff - SURROGATES }).map(
  (at) => String.fromCodePoint(at < FIRST_SURROGATE ? at : at + SURROGATES),
  (text) => {
    const point = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1;
    const isSurrogate = point >= FIRST_SURROGATE && point < FIRST_SURROGATE + SURROGATES;
    if (point < 0 || isSurrogate || String.fromCodePoint(point) !== text) throw new Error('not one code point');
    return point < FIRST_SURROGATE ? point : point - SURROGATES;
  },
);
