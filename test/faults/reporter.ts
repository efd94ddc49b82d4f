import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { faultsPage, footOf, resultIn } from './page.ts';

/** Writes docs/FAULTS.md from what the tests of the rows came to, and says on stdout what each row took. */
export default class FaultsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const results = new Map<number, Set<string>>();
    const tookMs = new Map<number, number>();
    for (const test of modules.flatMap(({ children }) => [...children.allTests()])) {
      const row = Number(/^row (\d\d): /.exec(test.name)?.[1] ?? 0);
      if (row === 0) continue;
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

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
