import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FENCE } from '../../../../common/text.ts';
import {
  countHeldTurns,
  type Line,
  type RetrievalMode,
  renderPreamble,
  renderRetrieval,
  renderSystemBlock,
} from '../../../../proxy/rewrite/render.ts';

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
const getTokens = (texts: readonly string[]): number =>
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
        expect(getTokens([...new Set(texts(shown))])).toBeLessThanOrEqual(budget);
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
        expect(getTokens(before)).toBeLessThanOrEqual(budgetTokens);
        expect(getTokens(after)).toBeLessThanOrEqual(recallTokens);
        const allowed = new Set([...brief, ...texts([...standing, ...recalled].filter(({ clean }) => clean))]);
        expect([...before, ...after].filter((row) => !allowed.has(row))).toEqual([]);
        expect(before.length + after.length).toBeGreaterThan(0);
      }),
    );
  });
});

describe('the preamble', () => {
  const of = (budgetTokens: number, absorbedTokens = 0) => ({ budgetTokens, absorbedTokens });

  it('keeps the newest lines that fit, in order, and says how many it leaves out', () => {
    fc.assert(
      fc.property(lines, budgets, (given, budget) => {
        const { text, nodeIds } = renderPreamble(given, of(budget), 'f00');
        const kept = given.slice(given.length - nodeIds.length);
        expect(kept.map(({ nodeId }) => nodeId)).toEqual(nodeIds);
        expect(text.split('\n').slice(2, -1)).toEqual(texts(kept));
        expect(getTokens(texts(kept))).toBeLessThanOrEqual(budget);
        const older = given.length - kept.length;
        expect(text.includes(`${older} older entries are not listed`)).toBe(older > 0);
      }),
    );
  });

  const words = fc.string({ unit: fc.constantFrom(...'abc -'), minLength: 1, maxLength: 60 });
  const items = fc.array(
    words.map((text) => `- ${text}`),
    { maxLength: 3 },
  );
  const values = fc.array(fc.stringMatching(/^[a-c]{1,3}\d{0,4}$/), { maxLength: 4 });
  const kept = fc.record({ decisions: items, open: items, values });
  const turns = fc.array(
    fc.record({
      tokens: fc.integer({ min: 1, max: 800 }),
      lines: fc.array(
        fc.record({ nodeId: fc.uuid(), text: words.map((text) => `- ${text}`), clean: fc.boolean(), kept }),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 12 },
  );

  it('has each decision, open item and value of the turns that it stands for; the other turns stay', () => {
    fc.assert(
      fc.property(turns, budgets, (given, budget) => {
        const held = countHeldTurns(given, budget);
        const absorbed = given.slice(0, held.turns);
        const { text } = renderPreamble(
          absorbed.flatMap(({ lines: each }) => each),
          of(budget),
          'f00',
        );
        const rows = text.split('\n');
        for (const { decisions, open, values: named } of absorbed.flatMap((turn) =>
          turn.lines.map((each) => each.kept),
        )) {
          for (const item of [...decisions, ...open]) expect(rows).toContain(item);
          const said = new Set(rows.flatMap((row) => row.split(/[^a-c\d]+/)));
          expect(named.filter((value) => !said.has(value))).toEqual([]);
        }
        const tokens = absorbed.reduce((sum, turn) => sum + turn.tokens, 0);
        expect(held.tokens).toBeLessThanOrEqual(Math.max(budget, tokens / 4));
      }),
    );
  });

  it('stands for a turn only if its state fits the budget or a quarter of the tokens of the turns', () => {
    const state = { decisions: ['- x'.repeat(400)], open: [], values: [] };
    const turn = (tokens: number) => ({ tokens, lines: [{ ...line(`of ${tokens}`, true), kept: state }] });
    expect(countHeldTurns([turn(100)], 200)).toEqual({ turns: 0, tokens: 0 });
    expect(countHeldTurns([turn(100)], 301)).toEqual({ turns: 1, tokens: 301 });
    expect(countHeldTurns([turn(4_000)], 0)).toMatchObject({ turns: 1 });
    expect(countHeldTurns([turn(100), turn(4_000)], 0)).toMatchObject({ turns: 2, tokens: 602 });
    expect(countHeldTurns([turn(1_300), turn(101)], 0)).toMatchObject({ turns: 1 });
    const shared = turn(100);
    expect(countHeldTurns([shared, shared], 301)).toMatchObject({ turns: 2, tokens: 301 });
  });

  it('quotes the newest turns as far as there is room, and shows the lines of the others', () => {
    const said = (text: string, quotes: readonly string[]) => ({ ...line(text, true), quotes });
    const lines = [said('first', ['- quote one']), line('second', true), said('third', ['- quote 3', '- quote 4'])];
    const rows = (budgetTokens: number, absorbedTokens: number) =>
      renderPreamble(lines, of(budgetTokens, absorbedTokens), 'f00').text.split('\n').slice(2, -1);
    expect(rows(1_000, 1_000)).toEqual(['- quote one', '- second', '- quote 3', '- quote 4']);
    expect(rows(1_000, 40)).toEqual(['- first', '- second', '- quote 3', '- quote 4']);
    expect(rows(1_000, 31)).toEqual(['- first', '- second', '- third']);
    expect(rows(1, 1_000)).toEqual([]);
    expect(rows(2, 1_000)).toEqual(['- quote 3', '- quote 4']);
  });

  it('shows decisions, then open items, then values that are named nowhere, then the newest lines', () => {
    const kept = { decisions: ['- decided: pg-boss'], open: ['- open: ask Mara'], values: ['300', '30', 'retry'] };
    const lines = [line('old', true), { ...line('waits 300 ms before a retry', true), kept }];
    const { text } = renderPreamble(lines, of(1_000), 'f00');
    expect(text.split('\n').slice(2, -1)).toEqual([
      '- decided: pg-boss',
      '- open: ask Mara',
      '- [mem_waits 300 ms before a retry] also named: 30',
      '- old',
      '- waits 300 ms before a retry',
    ]);
    const [, head, ...rows] = renderPreamble(lines, of(0), 'f00').text.split('\n');
    expect(head).toContain('2 older entries are not listed');
    expect(rows.slice(0, -1)).toEqual([
      '- decided: pg-boss',
      '- open: ask Mara',
      '- [mem_waits 300 ms before a retry] also named: 300, 30, retry',
    ]);
  });
});
