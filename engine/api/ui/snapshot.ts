import { randomBytes } from 'node:crypto';
import { CometError } from '../../../common/errors.ts';
import type { EditedNode } from '../../../memory/index.ts';

const UNDO_MS = 10 * 60_000;
const MAX_CHANGES = 100;

export type Undo = ReturnType<typeof createUndo>;

/** Nodes before and after changes of the page, in memory only, for ten minutes. */
export function createUndo(now: () => number) {
  const changes = new Map<string, { readonly untilMs: number; readonly edits: readonly EditedNode[] }>();
  return {
    /** @returns what `take` is given */
    keep(edits: readonly EditedNode[]): string {
      for (const [id, { untilMs }] of changes) if (untilMs <= now() || changes.size >= MAX_CHANGES) changes.delete(id);
      const id = randomBytes(16).toString('hex');
      changes.set(id, { untilMs: now() + UNDO_MS, edits });
      return id;
    },
    /** Once. @throws CometError `not_found` */
    take(id: string): readonly EditedNode[] {
      const change = changes.get(id);
      changes.delete(id);
      if (change !== undefined && change.untilMs > now()) return change.edits;
      throw new CometError('not_found', 'a change can be undone once, within ten minutes and before a restart');
    },
  };
}
