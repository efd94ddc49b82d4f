import { open } from 'node:fs/promises';
import path from 'node:path';
import { ensureDir, readFileIfPresent } from '../../common/files.ts';
import type { Forgotten } from '../deps.ts';

const HASH = /^[0-9a-f]{64}$/;

/** One `end` a line, append-only, fsynced: Claude Code keeps sending what the user had removed here. */
export function createForgottenFile(file: string): Forgotten {
  return {
    async load() {
      const text = (await readFileIfPresent(file)) ?? '';
      return text.split('\n').filter((line) => HASH.test(line));
    },
    async add(ends) {
      await ensureDir(path.dirname(file));
      const handle = await open(file, 'a', 0o600);
      try {
        await handle.write(ends.map((end) => `${end}\n`).join(''));
        await handle.datasync();
      } finally {
        await handle.close();
      }
    },
  };
}
