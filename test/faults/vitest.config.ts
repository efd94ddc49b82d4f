import { defineConfig } from 'vitest/config';
import { ROWS } from './rows.ts';

export default defineConfig({
  test: {
    root: '.',
    include: [...new Set(ROWS.flatMap(({ file }) => (file === null ? [] : [file])))],
    setupFiles: ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'],
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
