import { rm } from 'node:fs/promises';
import { z } from 'zod';
import type { Clock } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';

const Mark = z.object({ host: z.string(), at_ms: z.number() });
const LOOK_MS = 30_000;
/** A machine that has not marked the home for this long no longer uses it. */
const STALE_MS = 3 * LOOK_MS;

/**
 * Notices another machine that uses the same home, as on a network drive: sockets and locks do not reach it. Each machine
 * writes its name into `file` again and again, and reads the other's.
 */
export async function openHostMark(file: string, host: string, clock: Clock) {
  let other: z.infer<typeof Mark> | null = null;

  async function look(): Promise<void> {
    const mark = Mark.safeParse(JSON.parse((await readFileIfPresent(file)) ?? 'null'));
    if (mark.success && mark.data.host !== host) other = mark.data;
    await writeFileAtomic(file, JSON.stringify({ host, at_ms: clock.now() }));
  }

  // A disk that is full, or half a line: the next look may read more.
  const tryLook = (): Promise<void> => look().catch(() => rm(file, { force: true }).catch(() => {}));
  await tryLook();
  const timer = setInterval(tryLook, LOOK_MS).unref();
  return {
    look: tryLook,
    problems(): readonly Problem[] {
      if (other === null || clock.now() - other.at_ms > STALE_MS) return [];
      const message = `${other.host} uses this home too; two machines overwrite each other's memory: set COMET_CC_HOME on one of them`;
      return [{ file, message }];
    },
    async close(): Promise<void> {
      clearInterval(timer);
      await rm(file, { force: true }).catch(() => {});
    },
  };
}
