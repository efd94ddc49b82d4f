import path from 'node:path';
import type { Problem } from '../../../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../../../common/files.ts';
import type { HomePaths } from '../../../common/paths.ts';
import type { FactFiles } from '../fact-files.ts';
import { projectSlug } from '../paths.ts';
import { createFileCache, openDir, removeDurably } from './file-cache.ts';
import { openOntologies } from './ontology-files.ts';

const NAME = /^[a-z0-9-]{1,100}\.md$/;
const USER = 'user.md';

/** Files that did not change since the last time are not read again. @param report  gets what cannot be read */
export async function openFactFiles(
  paths: Pick<HomePaths, 'factsDir' | 'ontologyFile' | 'ontologyConsentsFile'>,
  report: (problem: Problem) => void,
): Promise<FactFiles> {
  const { factsDir: dir } = paths;
  await openDir(dir);
  const getPath = (name: string): string => path.join(dir, name);
  const cache = createFileCache(dir, (file, text): readonly [string, string] => {
    if (text === null) report({ file, message: 'is empty or no UTF-8 text' });
    return [path.basename(file), text ?? ''];
  });
  return {
    getName: (scope) => (scope === '' ? USER : `${projectSlug(scope)}.md`),
    getPath,
    texts: async () => new Map((await cache.read()).filter(([name]) => NAME.test(name))),
    async replace({ name, before, after }) {
      if (!NAME.test(name) || (await readFileIfPresent(getPath(name))) !== before) return false;
      if (after !== null) await writeFileAtomic(getPath(name), after);
      else await removeDurably(getPath(name));
      return true;
    },
    ontology: openOntologies(paths),
  };
}
