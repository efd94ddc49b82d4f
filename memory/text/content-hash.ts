import { createHash } from 'node:crypto';
import type { MemoryNode } from '../model/node.ts';
import { contentTags } from './system-tags.ts';

/** Names what the index holds of a node: another digest means other rows. */
export function contentDigest(node: MemoryNode): string {
  const { node_id, session_id, project, origin, valid_from, summary, trigger, topic_tags, facts, turns } = node;
  const detail = node.detailed_summary === null ? [] : [node.detailed_summary];
  const stated = facts.map(({ concept, value }) => [concept, value]);
  const content = [
    node_id,
    session_id,
    project,
    origin,
    valid_from,
    summary,
    trigger,
    contentTags(topic_tags),
    stated,
    turns,
    ...detail,
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 24);
}
