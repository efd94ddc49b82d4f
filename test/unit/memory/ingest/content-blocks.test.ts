import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stripOwnBlocks } from '../../../../memory/ingest/content-blocks.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import {
  type Line,
  renderPreamble,
  renderRetrieval,
  renderRoundsPreamble,
  renderSystemBlock,
} from '../../../../proxy/rewrite/render.ts';
import { getTurn, message, toolRound } from '../../../helpers/turns.ts';

/** Words of memory: nothing that is captured may hold one. */
const word = fc.constantFrom('quillback', 'ombersley', 'tarnhelm', 'vexillum');
const line = fc
  .tuple(
    word,
    fc.constantFrom('the port is 5433', 'never <b>retry</b>', 'Human: stop', '“quoted” — "raw line"', '# no title'),
    fc.boolean(),
  )
  .map(([own, text, clean]): Line => {
    const nodeId = 'mem_20260301_101500_a1b2c3';
    return { nodeId, clean, text: `- [${nodeId}] 2026-03-01 (user) ${own} ${text}` };
  });
const lines = fc.array(line, { minLength: 1, maxLength: 6 });
const fence = fc.constantFrom('9f31', 'a0', 'ffffffffffffffff');

/** Each way in which text of ours stands in a conversation. */
const ours: fc.Arbitrary<string> = fc
  .tuple(lines, fence, fc.constantFrom('preamble', 'rounds', 'system', 'system-message', 'user-block'))
  .chain(([some, mark, channel]) => {
    const options = { takesSystemMessages: true, budgetTokens: 5_000, fence: mark, anchor: 'x' };
    if (channel === 'preamble')
      return fc.constant(renderPreamble(some, { budgetTokens: 5_000, absorbedTokens: 0 }, mark).text);
    if (channel === 'rounds') return fc.constant(renderRoundsPreamble(some, 5_000, mark).text);
    if (channel === 'system') {
      const brief = ['## Active Work Context', `- ${some[0]?.text.slice(-30)} tarnhelm`];
      return fc.constant(renderSystemBlock({ brief, lines: some, budgetTokens: 5_000 })?.text ?? '');
    }
    const mode = channel === 'user-block' ? channel : 'system-message';
    return fc.constant(
      renderRetrieval(some, { ...options, mode })
        .map(({ text }) => text)
        .join('\n\n'),
    );
  });

const said = fc.constantFrom(
  'Use port 7000.',
  'What does comet-cc do?',
  'Read [mem_20260301_101500_a1b2c3] again.',
  'a\n\nb',
  '',
);

test('no injected text is captured again from any author, and nothing else is lost', () => {
  fc.assert(
    fc.property(ours, said, said, fc.nat(6), (own, before, after, place) => {
      const text = [before, own, after].filter((part) => part !== '').join('\n\n');
      const block = [{ type: 'text', text }];
      const turns = [
        getTurn(text, []),
        getTurn(block, []),
        getTurn(
          [
            { type: 'text', text: before },
            { type: 'text', text: own },
            { type: 'text', text: after },
          ],
          [],
        ),
        getTurn('hello', [message('assistant', block)]),
        getTurn('hello', toolRound('Bash', { command: 'cat log' }, text)),
        getTurn('hello', toolRound('Bash', { command: 'cat log' }, block)),
        getTurn('hello', [
          message('system', own),
          message('assistant', [{ type: 'text', text: `${before}\n\n${after}` }]),
        ]),
      ];
      const read = JSON.stringify(readTurn(turns[place] as never));
      expect(read).not.toMatch(/quillback|ombersley|tarnhelm|vexillum/);
      for (const part of [before, after]) expect(read).toContain(JSON.stringify(part).slice(1, -1));
    }),
    { numRuns: 500 },
  );
});

test('a text without injections is unchanged, and stripping is idempotent', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string(), ours, said), { maxLength: 5 }), (parts) => {
      const text = parts.join('\n');
      const once = stripOwnBlocks(text);
      expect(stripOwnBlocks(once)).toBe(once);
      if (!/comet-cc|\[mem_/.test(text)) expect(once).toBe(text);
    }),
  );
});

test('text between two injected blocks is the user’s', () => {
  const block = (mark: string) => `<comet-cc-memory fence="${mark}">\nold\n</comet-cc-memory fence="${mark}">`;
  expect(stripOwnBlocks(`${block('a')}\nkeep this\n${block('b')}\nand this`)).toBe('keep this\nand this');
  expect(stripOwnBlocks('<comet-cc-memory fence="a">\nnever closed')).toBe('');
});
