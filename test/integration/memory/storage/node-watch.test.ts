import fs from 'node:fs';
import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { writeFileAtomic } from '../../../../common/files.ts';
import { createNodeWatch, type NodeWatch } from '../../../../memory/storage/fs/node-watch.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
let watch: NodeWatch | null = null;
afterEach(async () => {
  await watch?.close();
  watch = null;
});

interface Watched {
  readonly nodesDir: string;
  /** Resolves once all of these were told. */
  told(...files: readonly string[]): Promise<void>;
  /** Whatever was told, however often. */
  readonly ever: Set<string>;
}

async function watched(vault = ''): Promise<Watched> {
  const dir = await tempDir();
  const [nodesDir, briefsDir] = [path.join(dir, 'nodes'), path.join(dir, 'briefs')];
  if (vault !== '') await symlink(vault, nodesDir);
  await mkdir(path.join(nodesDir, 'shop'), { recursive: true });
  await mkdir(briefsDir);
  await writeFile(path.join(nodesDir, 'shop', 'old.md'), 'old');
  const [all, ever] = [new Set<string>(), new Set<string>()];
  let look: () => void = () => {};
  watch = createNodeWatch({ nodesDir, briefsDir, report: () => {} });
  await watch.start((files) => {
    for (const file of files) all.add(file) && ever.add(file);
    look();
  });
  const told = (...files: readonly string[]): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (!files.every((file) => all.has(file))) return;
        for (const file of files) all.delete(file);
        resolve();
      };
      look();
    });
  return { nodesDir, told, ever };
}

test('files written in place, replaced, made, moved and removed are told; nothing else is', async () => {
  const { nodesDir, told, ever } = await watched();
  const at = (...names: string[]): string => path.join(nodesDir, ...names);
  await writeFile(at('shop', 'notes.txt'), 'not ours');
  await writeFile(at('shop', 'old.md.invalid-1'), 'set aside');
  await appendFile(at('shop', 'old.md'), ' and more');
  await told(at('shop', 'old.md'));
  await writeFileAtomic(at('shop', 'old.md'), 'replaced as a whole');
  await told(at('shop', 'old.md'));
  await mkdir(at('blog'));
  await writeFile(at('blog', 'new.md'), 'new');
  await told(at('blog', 'new.md'));
  await rename(at('blog'), at('weblog'));
  await told(at('blog', 'new.md'), at('weblog', 'new.md'));
  await rm(at('weblog', 'new.md'));
  await told(at('weblog', 'new.md'));
  expect([...ever].sort()).toEqual([at('blog', 'new.md'), at('shop', 'old.md'), at('weblog', 'new.md')]);
});

test('files behind a link in place of the folder are told by the name that they have here', async () => {
  const vault = await tempDir();
  const { nodesDir, told } = await watched(vault);
  await appendFile(path.join(vault, 'shop', 'old.md'), ' and more');
  await told(path.join(nodesDir, 'shop', 'old.md'));
});

test('a project that begins between listing and watching its directory is followed', async () => {
  const dir = await tempDir();
  const [nodesDir, briefsDir] = [path.join(dir, 'nodes'), path.join(dir, 'briefs')];
  const file = path.join(nodesDir, 'shop', 'new.md');
  await mkdir(nodesDir);
  await mkdir(briefsDir);
  const original = fs.watch;
  const spy = vi.spyOn(fs, 'watch').mockImplementation(((watchedDir: string, ...rest: []) => {
    if (watchedDir === nodesDir) {
      fs.mkdirSync(path.dirname(file));
      fs.writeFileSync(file, 'ours');
    }
    return original(watchedDir, ...rest);
  }) as typeof fs.watch);
  syncBuiltinESMExports();
  const seen = new Set<string>();
  watch = createNodeWatch({ nodesDir, briefsDir, report: () => {} });
  await watch.start((files) => {
    for (const changed of files) seen.add(changed);
  });
  spy.mockRestore();
  syncBuiltinESMExports();
  await appendFile(file, ' and a line');
  await expect.poll(() => seen.has(file)).toBe(true);
});

test('a file made between listing and watching a directory that begins later is told', async () => {
  const { nodesDir, told } = await watched();
  const file = path.join(nodesDir, 'blog', 'new.md');
  const original = fs.watch;
  const spy = vi.spyOn(fs, 'watch').mockImplementation(((watchedDir: string, ...rest: []) => {
    if (watchedDir === path.dirname(file)) fs.writeFileSync(file, 'new');
    return original(watchedDir, ...rest);
  }) as typeof fs.watch);
  syncBuiltinESMExports();
  await mkdir(path.dirname(file));
  await told(file);
  spy.mockRestore();
  syncBuiltinESMExports();
});

test('closing twice, or before anything was started, is no error', async () => {
  await createNodeWatch({ nodesDir: '/nowhere', briefsDir: '/nowhere', report: () => {} }).close();
  const { nodesDir } = await watched();
  await watch?.close();
  await watch?.close();
  expect(nodesDir).not.toBe('');
});
