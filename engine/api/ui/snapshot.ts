import { randomBytes } from 'node:crypto';
import { CometError } from '../../../common/errors.ts';
import type { MemoryNode } from '../../../memory/index.ts';

const UNDO_MS = 10 * 60_000;
const MAX_CHANGES = 100;

export type Undo = ReturnType<typeof createUndo>;

/** Nodes as they were before changes of the page, in memory only, for ten minutes. */
export function createUndo(now: () => number) {
  const changes = new Map<string, { readonly untilMs: number; readonly before: readonly MemoryNode[] }>();
  return {
    /** @returns what `take` is given */
    keep(before: readonly MemoryNode[]): string {
      for (const [id, { untilMs }] of changes) if (untilMs <= now() || changes.size >= MAX_CHANGES) changes.delete(id);
      const id = randomBytes(16).toString('hex');
      changes.set(id, { untilMs: now() + UNDO_MS, before });
      return id;
    },
    /** Once. @throws CometError `not_found` */
    take(id: string): readonly MemoryNode[] {
      const change = changes.get(id);
      changes.delete(id);
      if (change !== undefined && change.untilMs > now()) return change.before;
      throw new CometError('not_found', 'a change can be undone once, within ten minutes and before a restart');
    },
  };
}
