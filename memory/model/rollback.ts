import type { MemoryNode } from './node.ts';

export interface Rollback {
  readonly save: readonly MemoryNode[];
  readonly remove: readonly string[];
}

/**
 * From the nodes of today to those of a snapshot. What was remembered from conversations since then stays, as long as
 * nothing in the snapshot stands for the same turns.
 */
export function planRollback(today: readonly MemoryNode[], snapshot: readonly MemoryNode[], atMs: number): Rollback {
  const then = new Set(snapshot.map((node) => node.node_id));
  const covered = new Set(snapshot.flatMap((node) => node.turns));
  const isNew = ({ created_at, turns }: MemoryNode): boolean =>
    Date.parse(created_at) > atMs && turns.some((turnId) => !covered.has(turnId));
  return {
    save: snapshot,
    remove: today.filter((node) => !then.has(node.node_id) && !isNew(node)).map((node) => node.node_id),
  };
}
