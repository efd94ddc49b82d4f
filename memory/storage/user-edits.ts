import { isDraft, isFromText, isRedirect, type MemoryNode } from '../model/node.ts';
import { contentDigest } from '../text/content-hash.ts';

/**
 * The node as it is kept after a person changed it: what they changed of what it says is theirs, so that no model writes
 * something else and no dream merges it away. Pieces of documents and bundles are what their names say whoever edits
 * them; a draft is theirs whatever they changed.
 */
export function keptByHand(edited: MemoryNode, before: MemoryNode): MemoryNode {
  if (!isOwn(edited) || (!isDraft(edited) && contentDigest(edited) === contentDigest(before))) return edited;
  return asUsers(edited);
}

/** Whether it may become a person's own. */
export function isOwn(node: MemoryNode): boolean {
  return !isRedirect(node) && !isFromText(node) && node.kind !== 'tool';
}

export function asUsers(node: MemoryNode): MemoryNode {
  return node.author.by === 'user' ? node : { ...node, author: { by: 'user' }, status: 'current' };
}
