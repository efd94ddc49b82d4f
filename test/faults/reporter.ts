import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { faultsPage, footOf, resultIn } from './page.ts';
import { ROWS } from './rows.ts';

/** Writes docs/FAULTS.md from the results of the rows' tests, and prints the time of each row. */
export default class FaultsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const results = new Map<number, Set<string>>();
    const tookMs = new Map<number, number>();
    for (const test of modules.flatMap(({ children }) => [...children.allTests()])) {
      const row = rowOf(test.module.relativeModuleId, test.name);
      if (row === undefined) continue;
      results.set(row, (results.get(row) ?? new Set()).add(test.result().state));
      tookMs.set(row, (tookMs.get(row) ?? 0) + (test.diagnostic()?.duration ?? 0));
    }
    const resultOf = (row: number): string => resultIn(results.get(row) ?? new Set());
    writeFileSync('docs/FAULTS.md', faultsPage(resultOf));
    const slowest = [...tookMs].toSorted(([, a], [, b]) => b - a).map(([row, ms]) => `row ${row}: ${seconds(ms)}`);
    const all = seconds([...tookMs.values()].reduce((sum, ms) => sum + ms, 0));
    process.stdout.write(`\n${slowest.join('\n')}\nall of them ${all}, two files at a time\n${footOf(resultOf)}\n`);
  }
}

/** The id of the row that a test proves. */
function rowOf(file: string, name: string): number | undefined {
  const found = ROWS.find(({ file: own, test = '' }) => {
    // A name that is run once for each case holds the case where the source has a placeholder.
    const pattern = test.split(/%[sij]/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return own === file && new RegExp(`^${pattern.join('.*')}$`, 's').test(name);
  });
  return found?.row;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
