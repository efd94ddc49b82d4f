import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { reportFaults } from '../faults/reporter.ts';

/** Closes the run with one plain line, so that any machine can read how it went. */
export default class SummaryReporter implements Reporter {
  #isWhole = true;

  onInit({ config }: Vitest): void {
    this.#isWhole = config.testNamePattern === undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      if (module.errors().length > 0) count.failed += 1;
      // A hook that throws fails its suite and leaves the tests in it unrun.
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) count.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') count.passed += 1;
        else if (state === 'failed') count.failed += 1;
        else count.skipped += 1;
      }
    }
    const different = this.#isWhole ? reportFaults(modules) : [];
    if (different.length > 0) {
      count.failed += 1;
      process.exitCode = 1;
      const lines = ['docs/FAULTS.md differs from this run; npm run docs:faults writes it', ...different];
      process.stdout.write(`\n${lines.join('\n')}\n`);
    }
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`);
  }
}
