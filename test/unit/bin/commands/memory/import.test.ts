import { expect, test } from 'vitest';
import { progressLine } from '../../../../../bin/commands/memory/import.ts';
import { createTerm } from '../../../../../bin/terminal/term.ts';

test.each([
  [{ done: 0, total: 4_000 }, 200, '░░░░░░░░░░░░░░░░░░░░ 0 %  0 turns'],
  [{ done: 1_000, total: 4_000, turns: 300 }, 2_000, '█████░░░░░░░░░░░░░░░ 25 %  300 turns, 150/s, 6 s left'],
  [{ done: 4_000, total: 4_000, turns: 1_200 }, 8_000, '████████████████████ 100 %  1,200 turns, 150/s'],
  [{ done: 0, total: 0 }, 5_000, '████████████████████ 100 %  0 turns'],
])('%o after %i ms', (importing, elapsedMs, line) => {
  expect(progressLine(importing, elapsedMs)).toBe(line);
});

test('a line is overwritten on a terminal, and nothing of it goes anywhere else', () => {
  for (const isTTY of [true, false]) {
    const [out, err]: [string[], string[]] = [[], []];
    const term = createTerm(
      { isTTY: true, write: (text) => out.push(text) },
      { isTTY, write: (text) => err.push(text) },
      {},
    );
    term.progress('half');
    term.progress('');
    expect(out).toEqual([]);
    expect(err).toEqual(isTTY ? ['\r\u001b[2Khalf', '\r\u001b[2K'] : []);
  }
});
