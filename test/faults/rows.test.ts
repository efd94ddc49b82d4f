import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { faultsPage } from './page.ts';
import { ROWS } from './rows.ts';

const TITLE = /['"`]row (\d\d): /g;

function named(): { readonly row: number; readonly file: string }[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((name) => path.join('test', name))
    .filter((name) => name.endsWith('.ts') && !name.startsWith(path.join('test', 'faults', 'rows')));
  return files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(TITLE)].map(([, number]) => ({ row: Number(number), file })),
  );
}

it('each row of the fault matrix has one named test, or says why it has none', () => {
  expect(ROWS.map(({ row }) => row)).toEqual(Array.from({ length: 75 }, (_, at) => at + 1));
  const tested = ROWS.flatMap(({ row, file }) => (file === null ? [] : [{ row, file }]));
  expect(named().toSorted((a, b) => a.row - b.row)).toEqual(tested);
  for (const { row, file, note = '' } of ROWS) if (file === null) expect(note, `row ${row}`).not.toBe('');
});

it('what proves a row in place of a test is a line of .ci/run', () => {
  const lines = readFileSync('.ci/run', 'utf8').split('\n');
  const commands = ROWS.flatMap(({ command }) => command ?? []);
  expect(commands).toEqual(['npm run soak -- --seconds 45']);
  expect(lines).toEqual(expect.arrayContaining(commands));
});

it('docs/FAULTS.md is what is printed, whatever the tests came to when it was', async () => {
  const text = readFileSync('docs/FAULTS.md', 'utf8');
  const rows = text.matchAll(/^\| (\d+) \|.* \| ([^|]+) \|$/gm);
  const results = new Map([...rows].map(([, row, result]) => [Number(row), String(result)]));
  const foot = text.trimEnd().split('\n').at(-1);
  const page = faultsPage((row) => results.get(row) ?? '', foot);
  await expect(page).toMatchFileSnapshot(path.resolve('docs/FAULTS.md'));
});
