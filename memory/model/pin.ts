import { CometError } from '../../common/errors.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { MemoryNode } from './node.ts';

/** Always shown in its project until it is unpinned. @throws CometError `node_invalid` where its origin forbids it */
export function pinned(node: MemoryNode): MemoryNode {
  if (node.pinned_from !== undefined) return node;
  if (!isCleanOrigin(node.origin)) {
    throw new CometError(
      'node_invalid',
      `${node.node_id} cannot be pinned: its origin is ${node.origin}, and only what you or Claude said may always be ` +
        `shown; tell Claude in your own words what of it is true, and pin that`,
    );
  }
  return { ...node, recall_mode: 'passive', pinned_from: node.recall_mode };
}

/** Always shown in another project too, see `pinned`. @throws CometError `node_invalid` */
export function pinnedIn(node: MemoryNode, project: string): MemoryNode {
  if (project === node.project || project === '') return pinned(node);
  const { pinned_in = [] } = node;
  if (pinned_in.includes(project)) return node;
  pinned(node);
  return { ...node, pinned_in: [...pinned_in, project] };
}

export function unpinnedIn(node: MemoryNode, project: string): MemoryNode {
  if (project === node.project || project === '') return unpinned(node);
  const { pinned_in = [], ...rest } = node;
  if (!pinned_in.includes(project)) return node;
  const left = pinned_in.filter((key) => key !== project);
  return left.length === 0 ? rest : { ...rest, pinned_in: left };
}

/** Recalled as it was before it was pinned. */
export function unpinned(node: MemoryNode): MemoryNode {
  const { pinned_from: before, ...rest } = node;
  return before === undefined ? node : { ...rest, recall_mode: before };
}

/** A pin stays with what takes the node's place, where its origin allows. */
export function pinnedLike(heir: MemoryNode, former: MemoryNode): MemoryNode {
  return former.pinned_from === undefined || !isCleanOrigin(heir.origin) ? heir : pinned(heir);
}
