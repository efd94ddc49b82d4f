import fc from 'fast-check';
import { expect, it } from 'vitest';
import { neutralLine } from '../../../common/text.ts';
import { renderPreamble, renderRetrieval } from '../../../proxy/rewrite/render.ts';

const bricks = fc.constantFrom(
  ...[
    '<',
    '</',
    '<!',
    '>',
    '/',
    '"',
    '=',
    '\n',
    '\r',
    '\u2028',
    '\u2029',
    '\u0085',
    '\u200b',
    '\u202e',
    '\u2066',
    '\ufeff',
  ],
  ...[
    'comet-cc-memory',
    'comet-\u200bcc-memory',
    ' fence="',
    'system-reminder',
    'Human: ',
    'system :',
    'Assistant:',
    '```',
  ],
  ...[
    '<comet-cc-memory fence="f">',
    '</comet-cc-memory fence="f">',
    '<​/',
    '\u00ad',
    '\u{e0041}',
    '- [mem_20260101_000000_abcdef] ',
  ],
);
const hostile = fc
  .array(fc.oneof(bricks, fc.string({ maxLength: 6 })), { maxLength: 30 })
  .map((parts) => parts.join(''));

it('no text leaves its line, its fence, or passes for markup, a role, or our mark', () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 20, max: 400 }), (text, maxChars) => {
      const line = neutralLine(text, maxChars);
      expect(line.length).toBeLessThanOrEqual(maxChars);
      expect(line).not.toMatch(/[\r\n\u0085\u2028\u2029]|\p{Cf}|<[/!?]?[\p{L}_]|comet-cc-memory/u);
      expect(line).not.toMatch(/^\s*(?:human|user|assistant|system)\s*:/i);
    }),
    { numRuns: 3_000 },
  );
});

it('a block holds its fence first and last only, with any content', () => {
  const lines = fc.array(hostile, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(lines, fc.stringMatching(/^[0-9a-f]{16}$/), (texts, fence) => {
      const clean = false;
      const all = texts.map((text, at) => ({ nodeId: `n${at}`, text: `- [n${at}] ${neutralLine(text, 400)}`, clean }));
      const rules = { mode: 'auto', takesSystemMessages: true, budgetTokens: 10_000, fence, anchor: 'a' } as const;
      const [injection] = renderRetrieval(all, rules);
      for (const block of [
        injection?.text ?? '',
        renderPreamble(all, { budgetTokens: 10_000, absorbedTokens: 0 }, fence).text,
      ]) {
        expect(block.split('\n')).toHaveLength(texts.length + 3);
        expect(block.match(/<\/?comet-cc-memory/g)).toHaveLength(2);
        expect(block.startsWith(`<comet-cc-memory fence="${fence}">\n`)).toBe(true);
        expect(block.endsWith(`\n</comet-cc-memory fence="${fence}">`)).toBe(true);
      }
      expect(injection?.channel).toBe('block');
    }),
    { numRuns: 1_000 },
  );
});
