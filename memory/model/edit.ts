import { CometError } from '../../common/errors.ts';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import { parseSection, readValue } from './markdown.ts';
import { redirectTo } from './node.ts';
import { MemoryNode, NODE_FIELDS, type StatedItem } from './node-schema.ts';

/** What a person may change; the rest says where the node comes from. */
export const EDITABLE = [
  ...(['title', 'summary', 'outcome', 'decisions', 'open', 'trigger', 'detailed_summary'] as const),
  ...(['topic_tags', 'importance', 'recall_mode', 'origin', 'released', 'facts', 'values'] as const),
  ...(['links', 'source_links', 'capsule', 'valid_from', 'valid_to'] as const),
] as const;
type Editable = (typeof EDITABLE)[number];

const TEXTS: readonly Editable[] = ['title', 'summary', 'outcome', 'trigger', 'detailed_summary', 'capsule'];
const OPTIONAL: readonly Editable[] = ['title', 'outcome'];

/** The node with these fields set, each given as a text. @throws CometError `node_invalid` */
export function withFields(node: MemoryNode, fields: Readonly<Record<string, string>>): MemoryNode {
  const changed: Record<string, unknown> = { ...node };
  for (const [field, text] of Object.entries(fields)) {
    if (!EDITABLE.includes(field as Editable))
      throw new CometError('node_invalid', `${field}: cannot be set; what can be: ${EDITABLE.join(', ')}`);
    changed[field] = asValue(field as Editable, text);
  }
  return notRaised(node, validated(changed));
}

/** The node as its section says after someone edited it. @throws CometError `node_invalid` */
export function fromSection(node: MemoryNode, text: string): MemoryNode {
  const parsed = parseSection(text, { session_id: node.session_id, project: node.project });
  if (parsed.kind === 'problem') throw new CometError('node_invalid', parsed.message);
  const given = parsed.node;
  if (/^## /m.test(text.slice(3)))
    throw new CometError('node_invalid', `${node.node_id}: expected one section; write \\## for a line that begins so`);
  for (const key of NODE_FIELDS as readonly (keyof MemoryNode)[]) {
    if (EDITABLE.includes(key as Editable)) continue;
    if (JSON.stringify(given[key]) !== JSON.stringify(node[key]))
      throw new CometError('node_invalid', `${key}: cannot be changed (expected ${JSON.stringify(node[key])})`);
  }
  return notRaised(node, validated(given));
}

/** An edit can only lower the origin; otherwise any program could make text pass as the user's. */
function notRaised(node: MemoryNode, edited: MemoryNode): MemoryNode {
  const getItems = ({ decisions = [], open = [] }: MemoryNode): readonly StatedItem[] => [...decisions, ...open];
  const isRaised = ({ origin, turn }: Pick<StatedItem, 'origin'> & Partial<StatedItem>): boolean => {
    const before = [node, ...getItems(node).filter((item) => item.turn === turn)];
    return before.every((each) => lowestOrigin([each.origin, origin]) !== origin);
  };
  if (![{ origin: edited.origin }, ...getItems(edited)].some(isRaised)) return edited;
  throw new CometError(
    'node_invalid',
    `origin: can be lowered, not raised (it is ${node.origin}); tell Claude in your own words what of it is true`,
  );
}

function asValue(field: Editable, text: string): unknown {
  if (OPTIONAL.includes(field)) return text === '' ? undefined : text;
  if (TEXTS.includes(field)) return text === '' && field !== 'summary' && field !== 'trigger' ? null : text;
  const value = readValue(text);
  const isList = field === 'topic_tags' || field === 'values' || field === 'links' || field === 'source_links';
  if (isList && !Array.isArray(value)) {
    const parts = (typeof value === 'string' ? value : text).split(',').map((part) => part.trim());
    return parts.filter((part) => part !== '');
  }
  return field === 'valid_to' && value === '' ? null : value;
}

function validated(value: unknown): MemoryNode {
  const result = MemoryNode.safeParse(value);
  const [issue] = result.error?.issues ?? [];
  if (!result.success) throw new CometError('node_invalid', `${issue?.path.join('.')}: ${issue?.message}`);
  const { recall_mode, origin } = result.data;
  if (recall_mode !== 'active' && !isCleanOrigin(origin))
    throw new CometError('node_invalid', `recall_mode: expected active, because its origin is ${origin}`);
  return result.data;
}

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
export function findPinned(node: MemoryNode, project: string): MemoryNode {
  if (project === node.project || project === '') return pinned(node);
  const { pinned_in = [] } = node;
  if (pinned_in.includes(project)) return node;
  pinned(node);
  return { ...node, pinned_in: [...pinned_in, project] };
}

/** @param project  null: wherever it is pinned */
export function unpinnedIn(node: MemoryNode, project: string | null): MemoryNode {
  const { pinned_in = [], ...rest } = node;
  if (project === null) return unpinned(pinned_in.length === 0 ? node : rest);
  if (project === node.project || project === '') return unpinned(node);
  if (!pinned_in.includes(project)) return node;
  const left = pinned_in.filter((key) => key !== project);
  return left.length === 0 ? rest : { ...rest, pinned_in: left };
}

export function unpinned(node: MemoryNode): MemoryNode {
  const { pinned_from: before, ...rest } = node;
  return before === undefined ? node : { ...rest, recall_mode: before };
}

/** A pin stays with what takes the node's place, where its origin allows. */
export function pinnedLike(heir: MemoryNode, former: MemoryNode): MemoryNode {
  return former.pinned_from === undefined || !isCleanOrigin(heir.origin) ? heir : pinned(heir);
}

/**
 * Puts the model's nodes in the place of the drafts for the same turns. A draft's id goes to the node that has
 * its first turn; where that node has an id already, the draft stays as a pointer to it, so no id is ever lost.
 * @param fresh  nodes of the model, covering every turn of the drafts
 * @returns      all nodes to save, the drafts that became pointers included
 */
export function replaceDrafts(drafts: readonly MemoryNode[], fresh: readonly MemoryNode[], at: string): MemoryNode[] {
  const idByNode = new Map<MemoryNode, string>();
  const pointers: { readonly from: MemoryNode; readonly to: MemoryNode }[] = [];
  for (const draft of drafts) {
    const heir = fresh.find((node) => node.turns.includes(draft.turns[0] ?? '')) ?? fresh[0];
    if (heir === undefined) continue;
    if (idByNode.has(heir)) pointers.push({ from: draft, to: heir });
    else idByNode.set(heir, draft.node_id);
  }
  const withClosed = (heir: MemoryNode): MemoryNode => {
    const own = drafts.filter(({ turns }) => turns.some((turnId) => heir.turns.includes(turnId)));
    const closed = own.flatMap(({ open = [] }) => open.filter((item) => item.closed !== undefined));
    return closed.length === 0 ? heir : { ...heir, open: [...(heir.open ?? []), ...closed] };
  };
  const getPin = (heir: MemoryNode): MemoryNode | undefined =>
    drafts.find(
      (draft) => draft.pinned_from !== undefined && heir.turns.some((turnId) => draft.turns.includes(turnId)),
    );
  const named = new Map(
    fresh.map((node) => {
      const former = getPin(node);
      const heir = { ...withClosed(node), node_id: idByNode.get(node) ?? node.node_id };
      return [node, former === undefined ? heir : pinnedLike(heir, former)];
    }),
  );
  return [...named.values(), ...pointers.map(({ from, to }) => redirectTo(from, (named.get(to) ?? to).node_id, at))];
}
