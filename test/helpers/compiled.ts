import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Compiles sources of the project (paths from its root) into `out`, so that a thread or child runs this very source. */
export async function compileInto(out: string, sources: readonly string[]): Promise<void> {
  await mkdir(out, { recursive: true });
  const compilerOptions = {
    rootDir: root,
    outDir: out,
    noEmit: false,
    typeRoots: [path.join(root, 'node_modules/@types')],
  };
  const config = {
    extends: path.join(root, 'tsconfig.json'),
    compilerOptions,
    files: sources.map((source) => path.join(root, source)),
    include: [],
  };
  await writeFile(path.join(out, 'tsconfig.json'), JSON.stringify(config));
  for (const name of ['package.json', 'node_modules', 'dist'])
    await symlink(path.join(root, name), path.join(out, name));
  await execa(path.join(root, 'node_modules/.bin/tsc'), ['-p', path.join(out, 'tsconfig.json')]);
}
