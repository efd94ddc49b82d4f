import os from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/helpers/longest-first.ts';
import {
  CORES,
  HEAP_FLAGS,
  keepCertsForNpm,
  plugins,
  SETUP_FILES,
  server,
  systemProjects,
} from './test/helpers/projects.ts';

/** The limits are for a machine that does nothing else; each process that waits for a core adds to them. */
const load = Math.max(1, (os.loadavg()[0] ?? 0) / CORES);

// Threads take them from this process.
for (const flag of HEAP_FLAGS) setFlagsFromString(flag);

keepCertsForNpm();

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    projects: [
      {
        plugins,
        test: {
          server,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles: [...SETUP_FILES, 'test/helpers/temp-in-memory.ts'],
          pool: 'threads',
          isolate: false,
          maxWorkers: CORES,
          sequence: { groupOrder: 0 },
          testTimeout: 20_000 * load,
          hookTimeout: 20_000 * load,
        },
      },
      ...systemProjects(['test/**/*.test.ts'], load, ['test/unit/**']),
    ],
  },
});
