import { copied } from './detach-strings.ts';
import type { MemoryNode } from './node.ts';

const MOST_SHARED = 1_000;
const shared = new Map<string, string>();

/** The node as it stays in memory: in texts of its own, but for those that it has in common with its neighbours. */
export function internNode(node: MemoryNode): MemoryNode {
  const held = copied(node);
  held.session_id = once(held.session_id);
  held.project = once(held.project);
  return held;
}

function once(text: string): string {
  const known = shared.get(text);
  if (known !== undefined) return known;
  if (shared.size === MOST_SHARED) shared.clear();
  shared.set(text, text);
  return text;
}
