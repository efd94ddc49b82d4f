import { open } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ensureDir, readFileIfPresent } from '../../common/files.ts';
import type { Closings } from '../deps.ts';

const Closing = z.object({ session_id: z.string().min(1), closed_at: z.iso.datetime() });

/** One close a line, append-only, fsynced; the latest of a session counts. */
export function createClosingsFile(file: string): Closings {
  return {
    async load() {
      const text = (await readFileIfPresent(file)) ?? '';
      const closings = text.split('\n').flatMap(parsed);
      return new Map(closings.map(({ session_id, closed_at }) => [session_id, Date.parse(closed_at)]));
    },
    async add(sessionId, atMs) {
      await ensureDir(path.dirname(file));
      const handle = await open(file, 'a', 0o600);
      try {
        const closing = { session_id: sessionId, closed_at: new Date(atMs).toISOString() };
        // A line that a power cut tore before this one must not take it along.
        await handle.write(`\n${JSON.stringify(closing)}\n`);
        await handle.datasync();
      } finally {
        await handle.close();
      }
    },
  };
}

function parsed(line: string): z.infer<typeof Closing>[] {
  try {
    const closing = Closing.safeParse(JSON.parse(line));
    return closing.success ? [closing.data] : [];
  } catch {
    // Empty, or torn by a power cut: that session merely counts as open.
    return [];
  }
}
