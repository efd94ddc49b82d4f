import { defineConfig } from 'vitest/config';
import { ROWS } from './rows.ts';

export default defineConfig({
  test: {
    root: '.',
    include: [...new Set(ROWS.flatMap(({ proofs }) => proofs.map(({ file }) => file)))],
    setupFiles: ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'],
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    globalSetup: ['test/helpers/shared-certs.ts'],
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 80_000 } },
    maxWorkers: 4,
  },
});
