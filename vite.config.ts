import { rmSync } from 'node:fs';
import path from 'node:path';
import { defineConfig, type Plugin } from 'vite';

const ENTRIES = [
  'bin/comet-cc',
  'bin/engine',
  'bin/guard',
  'hooks/compact',
  'hooks/session-end',
  'hooks/session-start',
  'hooks/subagents',
  'hooks/user-prompt-submit',
  'memory/facts/index',
];

/** The names of chunks hold a hash, so those of the last build would stay. */
const freshChunks: Plugin = {
  name: 'fresh-chunks',
  buildStart: () => rmSync(path.join(import.meta.dirname, 'dist/chunks'), { recursive: true, force: true }),
};

export default defineConfig({
  plugins: [freshChunks],
  ssr: {
    // One file loads faster than the hundreds of small ones in packages. LanceDB and Arrow are one native unit.
    noExternal: true,
    external: ['@lancedb/lancedb', 'apache-arrow'],
  },
  build: {
    ssr: true,
    outDir: 'dist',
    emptyOutDir: false,
    target: 'node20.19',
    license: { fileName: 'chunks/licenses.md' },
    rolldownOptions: {
      input: Object.fromEntries(ENTRIES.map((entry) => [entry, `./${entry}.ts`])),
      output: {
        entryFileNames: '[name].js',
        chunkFileNames: 'chunks/[name]-[hash].js',
        comments: { legal: true, annotation: false, jsdoc: false },
      },
    },
  },
});
