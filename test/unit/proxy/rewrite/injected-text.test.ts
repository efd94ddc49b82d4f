import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  FENCE,
  type Line,
  type RetrievalMode,
  renderPreamble,
  renderRetrieval,
  renderSystemBlock,
} from '../../../../proxy/rewrite/injected-text.ts';

const lines: fc.Arbitrary<Line[]> = fc.array(
  fc.record({
    nodeId: fc.uuid(),
    text: fc.string({ minLength: 1, maxLength: 200 }).map((text) => `- ${text.replaceAll('\n', ' ')}`),
    clean: fc.boolean(),
  }),
  { maxLength: 12 },
);
const modes = fc.constantFrom<RetrievalMode>('auto', 'system-message', 'user-block', 'system-field', 'off');
const budgets = fc.integer({ min: 0, max: 300 });

/** The estimate of the budgets: a token for four bytes, and one for the line's end. */
const tokensOf = (texts: readonly string[]): number =>
  texts.reduce((total, text) => total + Math.ceil(Buffer.byteLength(text) / 4) + 1, 0);

const line = (text: string, clean: boolean): Line => ({ nodeId: `mem_${text}`, text: `- ${text}`, clean });

function placed(given: readonly Line[], mode: RetrievalMode, takesSystemMessages: boolean, budgetTokens = 600) {
  return renderRetrieval(given, { mode, takesSystemMessages, budgetTokens, fence: 'f00', anchor: 'h1' });
}

const texts = (of: readonly { readonly text: string }[]): string[] => of.map(({ text }) => text);
const shows = (given: readonly Line[], text: string): Line[] =>
  given.filter((one) => text.split('\n').includes(one.text));

describe('what is recalled for a prompt', () => {
  it('says once that an exact value should be read in full, within the budget, and how each line was found', () => {
    const found = { score: 0.9, lanes: { raw: { rank: 1, score: 12 } } };
    const exact = ['one', 'two'].map((text) => ({ ...line(text, true), found, isExact: true }));
    const [injection] = placed(exact, 'auto', true);
    expect(injection?.text.match(/memory show ID --depth 2/g)).toHaveLength(1);
    expect(injection?.found).toEqual([
      { nodeId: 'mem_one', ...found },
      { nodeId: 'mem_two', ...found },
    ]);
    expect(placed(exact, 'auto', true, 20)).toEqual([]);
    expect(placed([line('one', true)], 'auto', true)[0]?.text).not.toContain('memory show');
  });

  const both = [line('said by the user', true), line('read on a page', false)];
  const channels = (mode: RetrievalMode, takes: boolean) =>
    placed(both, mode, takes).map(({ channel, nodeIds }) => [channel, ...nodeIds]);

  it.each([
    [
      'auto',
      true,
      [
        ['system', 'mem_said by the user'],
        ['block', 'mem_read on a page'],
      ],
    ],
    ['auto', false, [['block', 'mem_said by the user', 'mem_read on a page']]],
    ['user-block', true, [['block', 'mem_said by the user', 'mem_read on a page']]],
    ['system-message', true, [['system', 'mem_said by the user']]],
    ['system-message', false, []],
    ['system-field', true, [['block', 'mem_read on a page']]],
    ['off', true, []],
  ] as const)('goes in by %s, with system messages: %s', (mode, takes, expected) => {
    expect(channels(mode, takes)).toEqual(expected);
  });

  it('never lets a line that is not clean speak as system, keeps to its budget, and fences every block', () => {
    fc.assert(
      fc.property(lines, modes, fc.boolean(), budgets, (given, mode, takes, budget) => {
        const injections = placed(given, mode, takes, budget);
        const shown = injections.flatMap(({ channel, text }) => {
          const here = shows(given, text);
          if (channel === 'system') expect(here.every(({ clean }) => clean)).toBe(true);
          else expect([text.startsWith(`<${FENCE} `), text.endsWith(`</${FENCE} fence="f00">`)]).toEqual([true, true]);
          expect(here.length).toBeGreaterThan(0);
          return here;
        });
        expect(tokensOf([...new Set(texts(shown))])).toBeLessThanOrEqual(budget);
        if (mode === 'off' || given.length === 0 || budget < 2) expect(injections).toEqual([]);
      }),
    );
  });
});

describe('the system block', () => {
  it('is not there when nothing is worth saying', () => {
    expect(renderSystemBlock({ brief: [], lines: [], budgetTokens: 900 })).toBeNull();
    expect(renderSystemBlock({ brief: [], lines: [line('a page', false)], budgetTokens: 900 })).toBeNull();
    expect(renderSystemBlock({ brief: ['- too long for it'], lines: [], budgetTokens: 2 })).toBeNull();
  });

  it('holds whole clean lines only, and keeps the brief, standing lines and recalled lines to their budgets', () => {
    fc.assert(
      fc.property(lines, lines, budgets, budgets, (standing, recalled, budgetTokens, recallTokens) => {
        const brief = texts(standing.slice(0, 3));
        const block = renderSystemBlock({
          brief,
          lines: standing.slice(3),
          budgetTokens,
          recalled: { lines: recalled, budgetTokens: recallTokens },
        });
        if (block === null) return;
        const [, ...rows] = block.text.split('\n');
        const at = rows.indexOf('Recalled for the newest prompt:');
        const heads = new Set(['Brief:', 'Remembered:', 'Recalled for the newest prompt:']);
        const body = (from: number, to?: number) => rows.slice(from, to).filter((row) => !heads.has(row));
        const [before, after] = at < 0 ? [body(0), []] : [body(0, at), body(at)];
        expect(tokensOf(before)).toBeLessThanOrEqual(budgetTokens);
        expect(tokensOf(after)).toBeLessThanOrEqual(recallTokens);
        const allowed = new Set([...brief, ...texts([...standing, ...recalled].filter(({ clean }) => clean))]);
        expect([...before, ...after].filter((row) => !allowed.has(row))).toEqual([]);
        expect(before.length + after.length).toBeGreaterThan(0);
      }),
    );
  });
});

describe('the preamble', () => {
  it('keeps the newest lines that fit, in order, and says how many it leaves out', () => {
    fc.assert(
      fc.property(lines, budgets, (given, budget) => {
        const { text, nodeIds } = renderPreamble(given, budget, 'f00');
        const kept = given.slice(given.length - nodeIds.length);
        expect(kept.map(({ nodeId }) => nodeId)).toEqual(nodeIds);
        expect(text.split('\n').slice(2, -1)).toEqual(texts(kept));
        expect(tokensOf(texts(kept))).toBeLessThanOrEqual(budget);
        const older = given.length - kept.length;
        expect(text.includes(`${older} older entries are not listed`)).toBe(older > 0);
      }),
    );
  });
});
