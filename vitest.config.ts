import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'],
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    // They end what hangs, and say nothing of how fast anything is: a busy machine takes its time.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: 2,
  },
});
