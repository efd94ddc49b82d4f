import { mkdtemp, readdir } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { withTempDir } from '../../../memory/open-memory.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

test('what is left behind stays in our own folder and is gone at the next start', async () => {
  const own = path.join(await tempDir(), 'run', 'tmp');
  const before = process.env['TMPDIR'];
  await withTempDir(process.env, own, () => mkdtemp(path.join(os.tmpdir(), 'left-')));
  expect(await readdir(own)).toHaveLength(1);
  expect(process.env['TMPDIR']).toBe(before);
  expect(await withTempDir(process.env, own, () => readdir(own))).toEqual([]);
});

test('the environment is as it was when the work fails', async () => {
  const env = { TMPDIR: '/somewhere' };
  const dir = path.join(await tempDir(), 'tmp');
  await expect(withTempDir(env, dir, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(env).toEqual({ TMPDIR: '/somewhere' });
});
