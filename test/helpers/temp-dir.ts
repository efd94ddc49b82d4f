import { lstat, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach } from 'vitest';

/** Gives fresh directories of this test file, removed after each test. */
export function tempDirs(): () => Promise<string> {
  const made: string[] = [];
  afterEach(async () => {
    await Promise.all(made.splice(0).map((dir) => rm(dir, { recursive: true, force: true })));
  });
  return async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'comet-test-'));
    made.push(dir);
    return dir;
  };
}

/** Every file and folder below `dir`: its mode, and of files the bytes. */
export async function readFolder(dir: string): Promise<Record<string, string>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const found = entries.map(async (entry): Promise<[string, string]> => {
    const place = path.join(entry.parentPath, entry.name);
    const mode = (await lstat(place)).mode.toString(8);
    return [path.relative(dir, place), entry.isFile() ? `${mode} ${await readFile(place, 'base64')}` : mode];
  });
  return Object.fromEntries(await Promise.all(found));
}
