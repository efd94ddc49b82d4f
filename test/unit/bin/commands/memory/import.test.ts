import { expect, test } from 'vitest';
import { claudeLines, progressLine } from '../../../../../bin/commands/memory/import.ts';
import { createTerm } from '../../../../../bin/terminal/term.ts';

test.each([
  [{ done: 0, total: 4_000 }, 200, '░░░░░░░░░░░░░░░░░░░░ 0 %  0 turns'],
  [{ done: 1_000, total: 4_000, turns: 300 }, 2_000, '█████░░░░░░░░░░░░░░░ 25 %  300 turns, 150/s, 6 s left'],
  [{ done: 4_000, total: 4_000, turns: 1_200 }, 8_000, '████████████████████ 100 %  1,200 turns, 150/s'],
  [{ done: 0, total: 0 }, 5_000, '████████████████████ 100 %  0 turns'],
])('%o after %i ms', (importing, elapsedMs, line) => {
  expect(progressLine(importing, elapsedMs)).toBe(line);
});

test('one of each is not said as several', () => {
  const report = {
    ...{ dry_run: false, transcripts: 1, unchanged: 0, sessions: 1, turns: 1, added: 1, known: 0, skipped: 0 },
    ...{ agents: 1, agents_left_out: 0, tokens: 1, documents: { files: 1, added: 1, unchanged: 0 } },
    ...{ model: { tokens: 1, batches: 1, left: 0 }, lines_skipped: { side: 0, summary: 0, broken: 0, other: 0 } },
  };
  for (const dry_run of [true, false]) {
    const lines = claudeLines({ ...report, dry_run } as unknown as Parameters<typeof claudeLines>[0]);
    expect(lines.join('\n')).not.toMatch(/\b1 (?:[a-z]+ )?[a-z]+(?:s|es)\b/);
  }
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
