import { sha256 } from '../../common/text.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { Redactor } from '../../redact/index.ts';
import { EVERYWHERE, getTeammate, isRedirect, type MemoryNode, TEAMMATE } from '../model/node.ts';
import { MemoryNode as NodeSchema } from '../model/node-schema.ts';
import { hasInstructions, isQuarantined } from '../recall/quarantine.ts';
import { withoutUserMark } from '../text/validity.ts';
import { canonicalJson } from './row.ts';

/** `me`: the user's own machines get everything. `team`: other people get the nodes of named projects. */
export type ShareScope = 'me' | 'team';

export interface ShareRules {
  readonly scope: ShareScope;
  /** Keys of the projects that may leave (normalized remote URLs); for `me`, none means all. */
  readonly projects: readonly string[];
  /** Whether verbatim turns leave, and are taken over, too; in scope `me` alone. */
  readonly raw: boolean;
  /** Whether a `.comet-cc.json` keeps this project on the machine. */
  readonly isForbidden: (project: string) => boolean;
  /** Key of a project on every machine: its remote, where a folder joined one. */
  readonly getKey: (project: string) => string;
  /** Whether a draft stays until a model has rewritten it. */
  readonly isWaiting: (node: MemoryNode) => boolean;
}

/** Why a node stays on the machine. */
export type KeptReason = 'draft' | 'received' | 'quarantined' | 'forbidden' | 'project' | 'scope' | 'private' | 'size';

const PRIVATE_TAG = /<[\s/]{0,16}private\b/i;

/** Null for a node that may leave, where it holds nothing private. */
export function keptReason(node: MemoryNode, rules: ShareRules): KeptReason | null {
  if (rules.isWaiting(node) || (rules.scope === 'team' && isRedirect(node))) return 'draft';
  if (getTeammate(node) !== null) return 'received';
  if (isQuarantined(node)) return 'quarantined';
  return keptPlace(node.project, rules.getKey(node.project), rules);
}

/** Null for a project of which things may leave. @param key  of it on every machine */
export function keptPlace(project: string, key: string, rules: ShareRules): KeptReason | null {
  const { scope, projects, isForbidden } = rules;
  if (isForbidden(project)) return 'forbidden';
  if (scope === 'team' && project === EVERYWHERE) return 'scope';
  return (scope === 'team' || projects.length > 0) && !projects.includes(key) ? 'project' : null;
}

/** Redaction takes out what the tags enclose; a tag that is left says that it could not. */
export const isPrivate = (node: MemoryNode): boolean => isPrivateText(JSON.stringify(node));

export const isPrivateText = (text: string): boolean => PRIVATE_TAG.test(text);

/** The node as it leaves: redacted again, for others without what names the user's turns, pins and files elsewhere. */
export async function outgoing(
  { project, ...own }: MemoryNode,
  { scope, getKey }: Pick<ShareRules, 'scope' | 'getKey'>,
  redactor: Redactor,
): Promise<MemoryNode> {
  const node = { ...own, project: getKey(project) };
  const clean = NodeSchema.parse(JSON.parse(await redactor.inSlices.json(JSON.stringify(node))));
  if (scope === 'me') return clean;
  const { pinned_from = clean.recall_mode, pinned_in: _, ...rest } = clean;
  return {
    ...rest,
    recall_mode: pinned_from === 'both' ? 'active' : pinned_from,
    turns: [],
    capsule: null,
    facts: clean.facts.map((fact) => ({ ...fact, evidence: [] })),
    ...(clean.decisions === undefined ? {} : { decisions: clean.decisions.map(withoutTurn) }),
    ...(clean.open === undefined ? {} : { open: clean.open.map(withoutTurn) }),
    source_links: clean.source_links.filter((link) => !/^(?:file|document):?\//.test(link)),
  };
}

function withoutTurn<T extends { readonly turn: string }>(item: T): T {
  return { ...item, turn: '' };
}

/** Who published a node: a machine, and the name that its nodes are labelled with here. */
export interface Publisher {
  readonly machine: string;
  readonly name: string;
  /** The user trusts it: what it says counts as what an assistant said, and may be pinned here. */
  readonly isTrusted: boolean;
}

/** Nothing of it counts as more than `highest`, as said by the user, or as released from quarantine. */
export function cappedNode(node: MemoryNode, highest: Origin): MemoryNode {
  const { released: _, detailed_origin: __, title_origin: ___, ...rest } = node;
  const capped = <T extends { readonly origin?: Origin }>(item: T) => ({
    ...item,
    origin: lowestOrigin([item.origin ?? node.origin, highest]),
    ...('by' in item ? { by: 'assistant' as const } : {}),
  });
  return {
    ...capped(rest),
    summary: withoutUserMark(node.summary),
    facts: node.facts.map(capped),
    ...(node.decisions === undefined ? {} : { decisions: node.decisions.map(capped) }),
    ...(node.open === undefined ? {} : { open: node.open.map(capped) }),
  };
}

/**
 * A teammate's node as it is stored here. Nothing in it raises its own origin, pins or releases it, points to other
 * nodes, joins a session of the user's, or passes for what another teammate said.
 */
export function fromTeammate(node: MemoryNode, { machine, name, isTrusted }: Publisher): MemoryNode {
  const outside = cappedNode(node, 'external');
  // A trusted machine may have been tricked: orders stay in quarantine.
  const isClean = isTrusted && !isQuarantined(outside);
  const { pinned_from: _, pinned_in: __, ...rest } = isClean ? cappedNode(node, 'assistant') : outside;
  return {
    ...rest,
    session_id: `teammate-${sha256(canonicalJson([machine, node.session_id])).slice(0, 32)}`,
    recall_mode: 'active',
    parent_node_id: null,
    links: [],
    turns: [],
    source_links: [TEAMMATE + name, ...withoutLabels(node)],
  };
}

/** The user's own node from another machine: its origin holds, a label of a teammate in it does not. */
export const fromOwnMachine = (node: MemoryNode): MemoryNode => ({ ...node, source_links: withoutLabels(node) });

function withoutLabels({ source_links }: MemoryNode): string[] {
  return source_links.filter((link) => !link.startsWith(TEAMMATE));
}

/** Whether a text gives orders that `isQuarantined` does not read: such a node of a teammate is refused. */
export function hidesOrders({ title, outcome, values, decisions, open }: MemoryNode): boolean {
  const stated = [...(decisions ?? []), ...(open ?? [])].map(({ text }) => text);
  return [title ?? '', outcome ?? '', ...(values ?? []), ...stated].some(hasInstructions);
}
