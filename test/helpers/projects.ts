import os from 'node:os';
import path from 'node:path';
import type { Plugin } from 'vitest/config';

export const SETUP_FILES = ['test/helpers/loopback-only.ts', 'test/helpers/fixed-seed.ts'];
export const CORES = os.availableParallelism();
/** Tests make much that dies young. V8 begins with 1 MB for it, so that a good part of their time goes into collections. */
export const HEAP_FLAGS = ['--min-semi-space-size=16', '--max-semi-space-size=32'];

/**
 * Only npm asks the internet, with what the machine trusts beside the public roots. Every other Node that is started with
 * `NODE_EXTRA_CA_CERTS` reads both first, which takes longer than the rest of its start.
 */
export function keepCertsForNpm(): void {
  const { NODE_EXTRA_CA_CERTS: certs } = process.env;
  if (certs !== undefined) process.env['COMET_TEST_EXTRA_CERTS'] = certs;
  delete process.env['NODE_EXTRA_CA_CERTS'];
}

const ROOT = path.join(import.meta.dirname, '..', '..');
const BUILT = /^(bin|certs|common|engine|hooks|install|memory|proxy|redact|test\/mock-anthropic)\/.*\.ts$/;
/** They replace modules below the program's, which needs its source. */
const OF_SOURCE = ['test/faults/kill-points.test.ts', 'test/integration/memory/{tasks,consolidation}/kill.test.ts'];

const plugin: Plugin = {
  name: 'built',
  enforce: 'pre',
  resolveId(source, importer) {
    if (importer === undefined || !source.startsWith('.')) return null;
    const file = path.relative(ROOT, path.resolve(path.dirname(importer), source));
    return BUILT.test(file) ? path.join(ROOT, 'dist/js', file.replace(/ts$/, 'js')) : null;
  },
};
/** Tests import the compiled modules, which Node loads in a tenth of the time of their source. */
export const plugins = [plugin];
export const server = { deps: { external: [/\/dist\/.*\.js$/] } };

/** Tests with processes, files and sockets. Their limits are `patience` times those of a machine of their own. */
export function systemProjects(include: string[], patience: number, exclude: readonly string[] = []) {
  const test = {
    globalSetup: ['test/helpers/shared-certs.ts'],
    setupFiles: [...SETUP_FILES, 'test/helpers/temp-in-memory.ts'],
    pool: 'forks' as const,
    execArgv: HEAP_FLAGS,
    // Most of them wait for processes and timers rather than for a core.
    maxWorkers: 3 * CORES,
    sequence: { groupOrder: 1 },
    testTimeout: 300_000 * patience,
    hookTimeout: 300_000 * patience,
    expect: { poll: { timeout: 40_000 * patience } },
  };
  return [
    // A worker loads the program once for all the files it takes.
    {
      plugins,
      test: { ...test, server, name: 'system', isolate: false, include, exclude: [...exclude, ...OF_SOURCE] },
    },
    { test: { ...test, name: 'source', include: OF_SOURCE } },
  ];
}
