import { randomBytes } from 'node:crypto';
import { CometError } from '../../../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../../../common/files.ts';
import type { Log } from '../../../common/log.ts';
import { parseJson } from '../../../common/text.ts';

/** How long the page offers a way back. */
const UNDO_MS = 20_000;

interface RemovalOptions {
  readonly file: string;
  /** Removes every trace; `not_found` where a memory is gone already. */
  readonly remove: (ids: readonly string[]) => Promise<unknown>;
  readonly log: Pick<Log, 'error'>;
  readonly undoMs?: number;
}

export type Removals = ReturnType<typeof createRemovals>;

/**
 * Removals that the page can still take back. Nothing can bring back what is removed, so it is hidden first and removed
 * when the time is over, when the engine ends, or at the next start after a kill.
 */
export function createRemovals({ file, remove, log, undoMs = UNDO_MS }: RemovalOptions) {
  const waiting = new Map<string, { readonly ids: readonly string[]; readonly timer?: NodeJS.Timeout }>();

  const save = (): Promise<void> => writeFileAtomic(file, JSON.stringify([...waiting.values()].map(({ ids }) => ids)));

  /** What fails stays hidden and is tried again. */
  async function carryOut(key: string): Promise<void> {
    const { ids, timer } = waiting.get(key) ?? { ids: [] };
    clearTimeout(timer);
    // There is no way back from here on.
    waiting.set(key, { ids });
    try {
      for (const id of ids) {
        await remove([id]).catch((error: unknown) => {
          if (!(error instanceof CometError && error.code === 'not_found')) throw error;
        });
      }
      waiting.delete(key);
      await save();
    } catch (error) {
      log.error('a memory is not removed yet', { error });
      if (waiting.has(key)) wait(key, ids);
    }
  }

  function wait(key: string, ids: readonly string[]): void {
    waiting.set(key, { ids, timer: setTimeout(() => void carryOut(key), undoMs).unref() });
  }

  return {
    /** @returns what `cancel` is given */
    async add(ids: readonly string[]): Promise<string> {
      const key = randomBytes(16).toString('hex');
      wait(key, ids);
      await save();
      return key;
    },
    /** Their ids; null where there is nothing to take back. */
    async cancel(key: string): Promise<readonly string[] | null> {
      const pending = waiting.get(key);
      if (pending?.timer === undefined) return null;
      clearTimeout(pending.timer);
      waiting.delete(key);
      await save();
      return pending.ids;
    },
    /** Full ids of what no view shows. */
    hidden: (): ReadonlySet<string> => new Set([...waiting.values()].flatMap(({ ids }) => ids)),
    /** Carries out what the last engine left. */
    async begin(): Promise<void> {
      const left = parseJson((await readFileIfPresent(file)) ?? '[]');
      for (const ids of Array.isArray(left) ? (left as string[][]) : []) {
        const key = ids.join();
        waiting.set(key, { ids });
        await carryOut(key);
      }
    },
    async close(): Promise<void> {
      for (const key of [...waiting.keys()]) await carryOut(key);
      for (const { timer } of waiting.values()) clearTimeout(timer);
    },
  };
}
