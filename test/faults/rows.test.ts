import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { differences, faultsPage, resultOf } from './page.ts';
import { ROWS, type Row } from './rows.ts';

it('each row of the fault matrix has tests of these names, or a command of .ci/run', () => {
  expect(ROWS.map(({ row }) => row)).toEqual(ROWS.map((_, at) => at + 1));
  for (const { row, proofs } of ROWS) {
    for (const { file, test } of proofs) {
      expect(readFileSync(file, 'utf8').split(`'${test}'`), `row ${row} in ${file}`).toHaveLength(2);
    }
  }
  const commands = ROWS.filter(({ proofs }) => proofs.length === 0).map(({ command }) => command);
  expect(commands).toEqual(['npm run soak -- --seconds 45']);
  // The script would build again, below the checks that run beside it.
  expect(readFileSync('.ci/run', 'utf8').split('\n')).toContain('node dist/js/bench/soak.js --seconds 45');
});

const row: Row = { row: 1, fault: '', promise: '', proofs: [{ file: 'a', test: 'holds for %s' }] };
const ended = (...states: string[]) => new Map([['a', states.map((state) => ({ name: `holds for ${state}`, state }))]]);

it.each([
  ['holds', ended('passed', 'passed')],
  ['**fails**', ended('passed', 'failed')],
  ['not run', ended('passed', 'skipped')],
  ['not run', ended()],
  ['not run', new Map()],
] as const)('a row %s where its tests ended so', (result, states) => {
  expect(resultOf(row, states)).toBe(result);
});

it('a page that says more than the tests show, or has another text, is named', () => {
  const page = faultsPage(() => 'holds', 'linux-x64');
  const [first = '', ...more] = differences(page, new Map());
  expect(first).toBe('row 1: not run, the page says holds');
  expect(more).toHaveLength(ROWS.length - 1);
  expect(differences(page.replace('rewriter throws', 'nothing fails'), new Map())).toContain(
    'its text is not that of test/faults/rows.ts',
  );
});
