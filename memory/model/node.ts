import { DAY_MS } from '../../common/async.ts';
import { clip, oneLine } from '../../common/text.ts';
import type { Origin } from '../../common/turn.ts';
import type { Author, MemoryNode, RedirectNode } from './node-schema.ts';

export type {
  Author,
  Decision,
  Fact,
  MemoryNode,
  NodeContent,
  RedirectNode,
  StatedItem,
} from './node-schema.ts';

/** Written without a model and not replaced yet. */
export const isDraft = (node: MemoryNode): boolean => node.status === 'draft' && !isRedirect(node);

/** A draft that a model may still replace; after a day its session has spent what such calls may cost. */
export function isWaitingDraft(node: MemoryNode, nowMs: number): boolean {
  return isDraft(node) && Date.parse(node.created_at) > nowMs - DAY_MS;
}

export const isRedirect = (node: MemoryNode): node is RedirectNode => node.kind === 'redirect';

export function redirectTo(node: MemoryNode, target: string, at: string): RedirectNode {
  const was = isRedirect(node) ? node.was : node.kind;
  return { ...node, kind: 'redirect', was, superseded_by: target, valid_to: at };
}

export function followRedirects(id: string, nodes: ReadonlyMap<string, MemoryNode>): MemoryNode | undefined {
  let node = nodes.get(id);
  for (let hops = 0; node !== undefined && isRedirect(node) && hops < 8; hops += 1)
    node = nodes.get(node.superseded_by as string);
  return node !== undefined && isRedirect(node) ? undefined : node;
}

export function withoutSuccessor({ superseded_as: _, ...rest }: MemoryNode): MemoryNode {
  const open = { ...rest, valid_to: null, superseded_by: null };
  if (open.kind !== 'redirect') return open;
  const { was, ...whole } = open;
  return { ...whole, kind: was };
}

/** Rules where there is no model. */
export const getAuthor = (model: string | null): Author => (model === null ? { by: 'rules' } : { by: 'model', model });

/** A chunk of an imported document. */
export const isFromText = (node: MemoryNode): boolean => node.kind === 'document' || node.kind === 'note';

/** Label of a node that another person's machine published: the first of its source links. */
export const TEAMMATE = 'teammate:';

/** Who published a node that came from another person's machine; null for any other node. */
export function getTeammate({ source_links }: Pick<MemoryNode, 'source_links'>): string | null {
  return source_links.find((link) => link.startsWith(TEAMMATE))?.slice(TEAMMATE.length) ?? null;
}

/** Project of what belongs to every project, such as the user's own CLAUDE.md; also the directory that names it. */
export const EVERYWHERE = '*';

/** `mem_YYYYMMDD_HHMMSS_<6 hex>`, UTC. */
export function nodeId(atMs: number, randomHex: string): string {
  const [date, time] = new Date(atMs).toISOString().split('T') as [string, string];
  return `mem_${date.replaceAll('-', '')}_${time.slice(0, 8).replaceAll(':', '')}_${randomHex.slice(0, 6)}`;
}

const TITLE_CHARS = 70;

/** Its own, else the beginning of its summary. */
export function getTitle({ title = '', summary }: Pick<MemoryNode, 'title' | 'summary'>): string {
  return title || clip((oneLine(summary).split('; ')[0] as string).trim(), TITLE_CHARS);
}

/** Of what `getTitle` gives. */
export function getTitleOrigin({ title = '', title_origin, origin }: MemoryNode): Origin {
  return title === '' ? origin : (title_origin ?? origin);
}

export const isGroup = (node: MemoryNode): boolean => (isRedirect(node) ? node.was : node.kind) === 'group';

/** A passive memory is shown in the session context and never searched; one that was pinned is searched as before. */
export function isSearched({ recall_mode, pinned_from = recall_mode }: MemoryNode): boolean {
  return pinned_from !== 'passive';
}

/** Tool rounds below a turn's node; members of a group have depth 1. */
export function isBundled({ parent_node_id, depth_level }: MemoryNode): boolean {
  return parent_node_id !== null && depth_level > 1;
}

/** The same plain value in texts of its own: a part of a text keeps all of the text in memory, a copy does not. */
export function copied<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

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
  const sharedText = shared.get(text);
  if (sharedText !== undefined) return sharedText;
  if (shared.size === MOST_SHARED) shared.clear();
  shared.set(text, text);
  return text;
}

/** One line of the brief with the turns it rests on. */
export interface Claim {
  readonly text: string;
  readonly sources: readonly string[];
  /** Set by rules only, which know what they quote; a model names none. */
  readonly origin?: Origin;
}

/** A statement of a node that someone says is no longer so. */
export interface StatementRef {
  readonly nodeId: string;
  /** Its place in the node's facts; null for the node as a whole. */
  readonly fact: number | null;
}

export interface StoredBrief {
  readonly session_id: string;
  readonly project: string;
  readonly updated_at: string;
  /** Claims with the origin they take from their sources. */
  readonly active: readonly (Claim & { readonly origin: Origin })[];
  readonly hints: readonly (Claim & { readonly origin: Origin })[];
}
