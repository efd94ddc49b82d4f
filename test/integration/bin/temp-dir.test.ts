import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { withTempDir } from '../../../bin/temp-dir.ts';
import { createHashEmbedder } from '../../../memory/adapters/hash-embedder.ts';
import { openLanceIndex } from '../../../memory/adapters/lance-index.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

test('what the index leaves behind stays in our own folder and is gone at the next start', async () => {
  const home = await tempDir();
  const own = path.join(home, 'run', 'tmp');
  const before = process.env['TMPDIR'];
  const open = () =>
    openLanceIndex({
      dir: path.join(home, 'index'),
      embedder: createHashEmbedder(),
      now: Date.now,
      report: () => {},
    });
  const { index } = await withTempDir(process.env, own, open);
  await index.close();
  expect(await readdir(own)).not.toEqual([]);
  expect(process.env['TMPDIR']).toBe(before);

  await writeFile(path.join(own, 'left'), '');
  expect(await withTempDir(process.env, own, () => readdir(own))).toEqual([]);
});

test('the environment is as it was when the work fails', async () => {
  const env = { TMPDIR: '/somewhere' };
  const dir = path.join(await tempDir(), 'tmp');
  await expect(withTempDir(env, dir, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(env).toEqual({ TMPDIR: '/somewhere' });
});
