import { isGroup, isRedirect, type MemoryNode } from '../model/node.ts';

/** A conversation may still show the id of a redirect. */
const REDIRECT_AGE_MS = 30 * 86_400_000;
const MIN_MEMBERS = 2;

export interface Pruned {
  readonly changed: readonly MemoryNode[];
  /** Ids of old redirects and small groups. */
  readonly removed: readonly string[];
}

/**
 * Removes broken, circular and duplicate links, resolves links to redirects, and removes groups of fewer than two
 * members and old redirects of drafts. Every turn stays covered.
 */
export function prune(nodes: ReadonlyMap<string, MemoryNode>, nowMs: number): Pruned {
  const membersOf = new Map<string, number>();
  for (const node of nodes.values()) {
    const parent = node.parent_node_id;
    if (parent !== null && !isRedirect(node)) membersOf.set(parent, (membersOf.get(parent) ?? 0) + 1);
  }
  const held = new Set([...nodes.values()].flatMap((node) => (isRedirect(node) ? [] : node.turns)));
  const isOver = (node: MemoryNode): boolean =>
    isGroup(node) ? (membersOf.get(node.node_id) ?? 0) < MIN_MEMBERS : isOldPointer(node, nodes, held, nowMs);
  const removed = new Set([...nodes.values()].filter(isOver).map(({ node_id }) => node_id));
  const pointedTo = new Set(
    [...nodes.values()].flatMap((node) => (isRedirect(node) ? [node.superseded_by ?? ''] : [])),
  );
  for (const id of pointedTo)
    if (nodes.get(id) !== undefined && isRedirect(nodes.get(id) as MemoryNode)) removed.delete(id);
  const target = (id: string): string | null => {
    let node = nodes.get(id);
    for (let hops = 0; node !== undefined && isRedirect(node) && hops < 8; hops += 1) {
      node = nodes.get(node.superseded_by as string);
    }
    return node === undefined || isRedirect(node) || removed.has(node.node_id) ? null : node.node_id;
  };
  const changed: MemoryNode[] = [];
  for (const node of nodes.values()) {
    if (removed.has(node.node_id) || isRedirect(node)) continue;
    const links = [...new Set(node.links.flatMap((id) => target(id) ?? []))].filter((id) => id !== node.node_id);
    const parent = node.parent_node_id === null ? null : target(node.parent_node_id);
    const isSame = links.length === node.links.length && links.every((id, at) => id === node.links[at]);
    if (!isSame || parent !== node.parent_node_id) changed.push({ ...node, links, parent_node_id: parent });
  }
  return { changed, removed: [...removed].sort() };
}

/** Redirects of drafts only: a merged node keeps its text. */
function isOldPointer(
  node: MemoryNode,
  nodes: ReadonlyMap<string, MemoryNode>,
  held: ReadonlySet<string>,
  nowMs: number,
): boolean {
  return (
    isRedirect(node) &&
    node.superseded_as !== 'merged' &&
    node.valid_to !== null &&
    nowMs - Date.parse(node.valid_to) > REDIRECT_AGE_MS &&
    nodes.has(node.superseded_by as string) &&
    node.turns.every((turnId) => held.has(turnId))
  );
}
