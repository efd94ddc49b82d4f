import os from 'node:os';
import { defineConfig } from 'vitest/config';

const setupFiles = ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'];

const cores = os.availableParallelism();
/** The limits are for a machine that does nothing else; each process that waits for a core adds to them. */
const load = Math.max(1, (os.loadavg()[0] ?? 0) / cores);

export default defineConfig({
  test: {
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles,
          pool: 'threads',
          isolate: false,
          maxWorkers: cores,
          sequence: { groupOrder: 0 },
          testTimeout: 5_000 * load,
          hookTimeout: 5_000 * load,
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          exclude: ['test/unit/**'],
          globalSetup: ['test/helpers/shared-certs.ts'],
          setupFiles,
          // Each file on its own: without that, files are dealt out to workers beforehand, and the last one works alone.
          pool: 'forks',
          // Most of them wait for processes and timers rather than for a core.
          maxWorkers: 4 * cores,
          sequence: { groupOrder: 1 },
          testTimeout: 120_000 * load,
          hookTimeout: 120_000 * load,
          expect: { poll: { timeout: 40_000 * load } },
        },
      },
    ],
  },
});
