import type { MemoryNode } from './node.ts';
import { isPointer } from './replace-drafts.ts';

/** Written without a model and not replaced yet. */
export function isDraft(node: MemoryNode): boolean {
  return node.written_by === 'local' && !isPointer(node);
}
