import type { MemoryNode } from '../../memory/model/node.ts';
import { fromSchema1 } from '../../memory/model/node-schema.ts';

/** A node that validates, with what a test says about it. */
/** Author, kind and status as one word, as schema 1 had them. */
export type NodeFields = Partial<MemoryNode> & { readonly written_by?: string };

export function makeNode({ written_by = 'local', ...over }: NodeFields = {}): MemoryNode {
  const fields = {
    node_id: 'mem_20260301_101500_00000a',
    session_id: 's-1',
    project: '/home/dev/shop',
    depth_level: 1,
    recall_mode: 'active',
    topic_tags: ['database', 'FLAG:decision'],
    importance: 'MED',
    summary: 'staging database listens on port 5433',
    detailed_summary: null,
    trigger: 'When I connect to the staging database',
    parent_node_id: null,
    links: [],
    source_links: [],
    capsule: null,
    origin: 'user',
    valid_from: '2026-03-01T10:15:00.000Z',
    valid_to: null,
    superseded_by: null,
    compaction_reason: 'topic_shift',
    created_at: '2026-03-01T10:15:00.000Z',
    turns: ['end-1'],
    facts: [],
    ...over,
  };
  if (over.kind !== undefined) return fields as MemoryNode;
  return { ...(fromSchema1({ ...fields, written_by }) as MemoryNode), ...over } as MemoryNode;
}
