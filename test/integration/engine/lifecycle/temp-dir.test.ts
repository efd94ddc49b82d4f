import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { connect, Index } from '@lancedb/lancedb';
import { afterEach, expect, test } from 'vitest';
import { useTempDir } from '../../../../engine/lifecycle/temp-dir.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const NAMES = ['TMPDIR', 'TMP', 'TEMP'] as const;
const before = NAMES.map((name) => [name, process.env[name]] as const);

afterEach(() => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

test('what LanceDB leaves of a vector index stays in our own folder and is gone at the next start', async () => {
  const root = await tempDir();
  const own = path.join(root, 'run', 'tmp');
  await useTempDir(process.env, own);
  const rows = Array.from({ length: 300 }, (_, at) => ({ vector: Array.from({ length: 8 }, () => at / 300) }));
  const table = await (await connect(path.join(root, 'index'))).createTable('rows', rows);
  await table.createIndex('vector', { config: Index.ivfRq({ distanceType: 'cosine', numPartitions: 1 }) });
  expect(await readdir(own)).not.toEqual([]);
  expect((await stat(own)).mode & 0o777).toBe(0o700);
  await useTempDir(process.env, own);
  expect(await readdir(own)).toEqual([]);
});
