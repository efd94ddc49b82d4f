import { type MemoryNode, redirectTo } from './node.ts';
import { pinnedLike } from './pin.ts';

/**
 * Puts the model's nodes in the place of the drafts for the same turns. A draft's id goes to the node that has
 * its first turn; where that node has an id already, the draft stays as a pointer to it, so no id is ever lost.
 *
 * @param fresh  nodes of the model, covering every turn of the drafts
 * @returns      all nodes to save, the drafts that became pointers included
 */
export function replaceDrafts(drafts: readonly MemoryNode[], fresh: readonly MemoryNode[], at: string): MemoryNode[] {
  const idOf = new Map<MemoryNode, string>();
  const pointers: { readonly from: MemoryNode; readonly to: MemoryNode }[] = [];
  for (const draft of drafts) {
    const heir = fresh.find((node) => node.turns.includes(draft.turns[0] ?? '')) ?? fresh[0];
    if (heir === undefined) continue;
    if (idOf.has(heir)) pointers.push({ from: draft, to: heir });
    else idOf.set(heir, draft.node_id);
  }
  const pinOf = (heir: MemoryNode): MemoryNode | undefined =>
    drafts.find(
      (draft) => draft.pinned_from !== undefined && heir.turns.some((turnId) => draft.turns.includes(turnId)),
    );
  const named = new Map(
    fresh.map((node) => {
      const former = pinOf(node);
      const heir = { ...node, node_id: idOf.get(node) ?? node.node_id };
      return [node, former === undefined ? heir : pinnedLike(heir, former)];
    }),
  );
  return [...named.values(), ...pointers.map(({ from, to }) => redirectTo(from, (named.get(to) ?? to).node_id, at))];
}
