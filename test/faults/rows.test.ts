import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { faultsPage } from './page.ts';
import { ROWS } from './rows.ts';

it('each row of the fault matrix has a test of that name, or says why it has none', () => {
  expect(ROWS.map(({ row }) => row)).toEqual(ROWS.map((_, at) => at + 1));
  for (const { row, file, test = '', note = '' } of ROWS) {
    if (file === null) expect(note, `row ${row}`).not.toBe('');
    else expect(readFileSync(file, 'utf8').split(`'${test}'`), `row ${row} in ${file}`).toHaveLength(2);
  }
});

it('a command that replaces a test is a line of .ci/run', () => {
  const lines = readFileSync('.ci/run', 'utf8').split('\n');
  const commands = ROWS.flatMap(({ command }) => command ?? []);
  expect(commands).toEqual(['npm run soak -- --seconds 45']);
  expect(lines).toEqual(expect.arrayContaining(commands));
});

it('docs/FAULTS.md has the printed rows', async () => {
  const text = readFileSync('docs/FAULTS.md', 'utf8');
  const rows = text.matchAll(/^\| (\d+) \|.* \| ([^|]+) \|$/gm);
  const results = new Map([...rows].map(([, row, result]) => [Number(row), String(result)]));
  const foot = text.trimEnd().split('\n').at(-1);
  // `npm run docs:faults` writes the results; what it wrote must add up.
  expect(ROWS.map(({ row }) => row)).toEqual([...results.keys()]);
  const known = ['holds', '**fails**', 'not run', 'in CI'];
  expect([...results.values()].filter((result) => !known.includes(result))).toEqual([]);
  const held = [...results.values()].filter((result) => result === 'holds').length;
  expect(foot).toMatch(new RegExp(`^${held} of ${ROWS.length} rows hold here \\(`));
  const page = faultsPage((row) => results.get(row) ?? '', foot);
  await expect(page).toMatchFileSnapshot(path.resolve('docs/FAULTS.md'));
});
