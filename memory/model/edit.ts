import { CometError } from '../../common/errors.ts';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import { readValue } from './front-matter.ts';
import { type FileHead, parseSection } from './markdown.ts';
import { MemoryNode, NODE_FIELDS } from './node-schema.ts';

/** What a person may change; the rest says where the node comes from. */
export const EDITABLE = [
  'summary',
  'trigger',
  'detailed_summary',
  'topic_tags',
  'importance',
  'recall_mode',
  'origin',
  'released',
  'facts',
  'links',
  'source_links',
  'capsule',
  'valid_from',
  'valid_to',
] as const;
type Editable = (typeof EDITABLE)[number];

const TEXTS: readonly Editable[] = ['summary', 'trigger', 'detailed_summary', 'capsule'];

/** The node with these fields set, each given as a text. @throws CometError `node_invalid` */
export function withFields(node: MemoryNode, fields: Readonly<Record<string, string>>): MemoryNode {
  const changed: Record<string, unknown> = { ...node };
  for (const [field, text] of Object.entries(fields)) {
    if (!EDITABLE.includes(field as Editable)) {
      throw new CometError('node_invalid', `${field}: cannot be set; what can be: ${EDITABLE.join(', ')}`);
    }
    changed[field] = asValue(field as Editable, text);
  }
  return notRaised(node, validated(changed));
}

/** The node as its section says after someone edited it. @throws CometError `node_invalid` */
export function fromSection(node: MemoryNode, text: string): MemoryNode {
  const head: FileHead = { session_id: node.session_id, project: node.project };
  const parsed = parseSection(text, head);
  if (parsed.kind === 'problem') throw new CometError('node_invalid', parsed.message);
  const given = parsed.node;
  if (/^## /m.test(text.slice(3))) {
    throw new CometError('node_invalid', `${node.node_id}: expected one section; write \\## for a line that begins so`);
  }
  for (const key of NODE_FIELDS as readonly (keyof MemoryNode)[]) {
    if (EDITABLE.includes(key as Editable)) continue;
    if (JSON.stringify(given[key]) !== JSON.stringify(node[key])) {
      throw new CometError('node_invalid', `${key}: cannot be changed (expected ${JSON.stringify(node[key])})`);
    }
  }
  return notRaised(node, validated(given));
}

/** An edit can only lower the origin; otherwise any program could make text pass as the user's. */
function notRaised(node: MemoryNode, edited: MemoryNode): MemoryNode {
  if (lowestOrigin([node.origin, edited.origin]) === edited.origin) return edited;
  throw new CometError(
    'node_invalid',
    `origin: can be lowered, not raised (it is ${node.origin}); tell Claude in your own words what of it is true`,
  );
}

function asValue(field: Editable, text: string): unknown {
  if (TEXTS.includes(field)) return text === '' && field !== 'summary' && field !== 'trigger' ? null : text;
  const value = readValue(text);
  const isList = field === 'topic_tags' || field === 'links' || field === 'source_links';
  if (isList && typeof value === 'string') {
    const parts = value.split(',').map((part) => part.trim());
    return parts.filter((part) => part !== '');
  }
  return field === 'valid_to' && value === '' ? null : value;
}

function validated(value: unknown): MemoryNode {
  const result = MemoryNode.safeParse(value);
  const [issue] = result.error?.issues ?? [];
  if (!result.success) throw new CometError('node_invalid', `${issue?.path.join('.')}: ${issue?.message}`);
  const { recall_mode, origin } = result.data;
  if (recall_mode !== 'active' && !isCleanOrigin(origin)) {
    throw new CometError('node_invalid', `recall_mode: expected active, because its origin is ${origin}`);
  }
  return result.data;
}
