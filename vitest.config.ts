import os from 'node:os';
import { defineConfig } from 'vitest/config';

const setupFiles = ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'];

const cores = os.availableParallelism();
/** Most tests wait for processes and timers rather than for a core. */
const WORKERS = 4 * cores;
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
          maxWorkers: WORKERS,
          testTimeout: 30_000 * load,
          hookTimeout: 30_000 * load,
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
          maxWorkers: WORKERS,
          testTimeout: 120_000 * load,
          hookTimeout: 120_000 * load,
          expect: { poll: { timeout: 40_000 * load } },
        },
      },
    ],
  },
});
