import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { openHostMark } from '../../../../engine/lifecycle/host.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

test('two machines on one home name each other while both run', async () => {
  const file = path.join(await tempDir(), 'host.json');
  const clock = { nowMs: 1_000, now: () => clock.nowMs };
  const one = await openHostMark(file, 'one', clock);
  expect(one.problems()).toEqual([]);
  const other = await openHostMark(file, 'other', clock);
  expect(other.problems()).toMatchObject([{ file, message: expect.stringContaining('one uses this home too') }]);
  await one.look();
  expect(one.problems()).toMatchObject([{ file, message: expect.stringContaining('other uses this home too') }]);
  await other.close();
  clock.nowMs += 120_000;
  expect(one.problems()).toEqual([]);
  await one.close();
  expect(await readdir(path.dirname(file))).toEqual([]);
});

test('a restart on the same machine, and a damaged mark, are no other machine', async () => {
  const file = path.join(await tempDir(), 'host.json');
  const clock = { now: () => 1_000 };
  const killed = await openHostMark(file, 'one', clock);
  const again = await openHostMark(file, 'one', clock);
  expect(again.problems()).toEqual([]);
  await writeFile(file, '{"host":"oth');
  await again.look();
  await again.look();
  expect(again.problems()).toEqual([]);
  await killed.close();
  await again.close();
});
