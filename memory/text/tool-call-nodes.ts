import { lowestOrigin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import { type Action, groupActions, groupLine } from './actions.ts';

const MOST = 12;
/** With fewer calls its capsule says all there is. */
const LEAST_CALLS = 4;

/** A child that stands for calls of its parent's turns: in the files, never in the index, one step from its parent. */
export function isCall(node: MemoryNode): boolean {
  return node.kind === 'tool' && node.turns.length === 0;
}

/** The tool calls of a node's turns as its children, at most twelve: calls of one kind on one thing are one. */
export function callNodes(parent: MemoryNode, actions: readonly Action[], newId: () => string): MemoryNode[] {
  const groups = groupActions(actions);
  if (actions.length < LEAST_CALLS || groups.length < 2) return [];
  const { pinned_from: _, modality: __, superseded_as: ___, ...base } = parent;
  return groups.slice(0, MOST).map((group): MemoryNode => {
    const line = groupLine(group);
    return {
      ...base,
      kind: 'tool',
      author: { by: 'rules' },
      status: 'current',
      node_id: newId(),
      parent_node_id: parent.node_id,
      depth_level: parent.depth_level + 1,
      modality: 'execution_trace',
      recall_mode: 'active',
      topic_tags: [`FLAG:ACT_${group.act}`],
      importance: 'LOW',
      summary: line,
      detailed_summary: null,
      trigger: `When I need what came of it: ${line}`,
      capsule: line,
      origin: lowestOrigin([parent.origin, group.origin]),
      links: [],
      source_links: [],
      valid_to: null,
      superseded_by: null,
      turns: [],
      facts: [],
    };
  });
}
