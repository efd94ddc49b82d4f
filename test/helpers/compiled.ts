import { fileURLToPath } from 'node:url';

/** What `npm run build:test` made of a module, for a thread or a process of its own; `source` is without its ending. */
export function getCompiled(source: string): string {
  return fileURLToPath(new URL(`../../dist/js/${source}.js`, import.meta.url));
}

/** One of `test/fixtures/programs`. */
export function getProgram(name: 'dream' | 'write-until-killed'): string {
  return getCompiled(`test/fixtures/programs/${name}`);
}
