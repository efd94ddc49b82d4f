import { mkdir, realpath, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { ensureDir, readFileIfPresent, writeFileAtomic } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';

type Paths = Pick<HomePaths, 'home' | 'foldersFile'>;

/** Makes `dir`, somebody else's place, and its missing parents; notes which, so that no more than they is removed. */
export async function makeFolder(paths: Paths, dir: string, mode?: number): Promise<void> {
  const top = await mkdir(dir, { recursive: true, ...(mode === undefined ? {} : { mode }) });
  if (top === undefined) return;
  const made = foldersUp(await realpath(dir), await realpath(top));
  await ensureDir(paths.home);
  await write(paths, [...(await read(paths)), ...made]);
}

/** Removes `dir` and what is above it, as far as `makeFolder` made it and nothing is in there. */
export async function removeMadeFolder(paths: Paths, dir: string): Promise<void> {
  const made = await read(paths);
  const gone: string[] = [];
  let at = await realpath(dir).catch(() => path.resolve(dir));
  for (; made.includes(at) && (await isRemoved(at)); at = path.dirname(at)) gone.push(at);
  if (gone.length > 0)
    await write(
      paths,
      made.filter((each) => !gone.includes(each)),
    );
}

function foldersUp(from: string, top: string): string[] {
  return from === top ? [top] : [from, ...foldersUp(path.dirname(from), top)];
}

const isRemoved = (dir: string): Promise<boolean> =>
  rmdir(dir).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );

/** A note that is damaged knows of no folder: then all of them stay. */
async function read({ foldersFile }: Paths): Promise<readonly string[]> {
  try {
    const noted: unknown = JSON.parse((await readFileIfPresent(foldersFile)) ?? '[]');
    return Array.isArray(noted) ? noted.filter((each) => typeof each === 'string') : [];
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

async function write({ foldersFile }: Paths, made: readonly string[]): Promise<void> {
  if (made.length === 0) await rm(foldersFile, { force: true });
  else await writeFileAtomic(foldersFile, `${JSON.stringify([...new Set(made)], null, 2)}\n`);
}
