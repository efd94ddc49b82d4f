import { defineConfig } from 'vitest/config';

const setupFiles = ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'];

export default defineConfig({
  test: {
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles,
          pool: 'threads',
          isolate: false,
          testTimeout: 5_000,
          hookTimeout: 5_000,
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          exclude: ['test/unit/**'],
          setupFiles,
          pool: 'forks',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 20_000 } },
        },
      },
    ],
  },
});
