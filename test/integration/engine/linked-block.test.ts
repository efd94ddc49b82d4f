import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLog } from '../../../common/log.ts';
import { homePaths } from '../../../common/paths.ts';
import { createLinkedBlock } from '../../../engine/linked-block.ts';
import { installEntries } from '../../../install/claude-code/index.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

beforeEach(() => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => vi.useRealTimers());

it('follows the library from the start on, by itself too, and names what keeps it from doing so', async () => {
  const dir = await tempDir();
  const paths = homePaths(path.join(dir, 'home'));
  const file = path.join(dir, 'CLAUDE.md');
  let said = async (): Promise<string> => 'one';
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const linked = createLinkedBlock({ paths, library: { linkedBlock: () => said() }, log });
  await mkdir(paths.home);
  await writeFile(file, 'Mine.\n');
  expect(await linked.text()).toBe('');
  await installEntries(paths, 'library', file, { block: 'zero' });
  const text = () => readFile(file, 'utf8');
  linked.refreshSoon();
  await expect.poll(text).toMatch(/^Mine\.\n\n<!--.*-->\none\n<!--/);
  said = async () => 'two';
  vi.advanceTimersByTime(20_000);
  await expect.poll(text).toContain('\ntwo\n');
  expect(await linked.text()).toBe('\ntwo\n');

  const broken = (await text()).replace('<!-- comet-cc library: end -->', '');
  await writeFile(file, broken);
  said = async () => 'three';
  linked.refreshSoon();
  await expect.poll(linked.problems).toEqual([{ file, message: expect.stringContaining('no end') }]);
  expect([await text(), await linked.text()]).toEqual([broken, '']);

  said = async () => Promise.reject(new Error('closed'));
  for (const _ of [1, 2]) linked.refreshSoon();
  await expect.poll(() => warnings).toHaveLength(1);
  await linked.close();
});
