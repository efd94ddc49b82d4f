import { z } from 'zod';
import { isRecord } from '../../common/text.ts';
import { ORIGINS } from '../../common/turn.ts';

const iso = z.iso.datetime();
const origin = z.enum(ORIGINS);
/**
 * Where a statement goes: `skip`, `episode`, `topic:<name>`, `task` for a new one or `task:<id>` for an open one. A model
 * always chooses; rules decide where it is not given.
 */
export const BUCKET = /^(?:skip|episode|task(?::[\da-f]{6})?|topic:[^\n]{1,60})$/;
const bucket = z.string().regex(BUCKET).optional();

/** A statement with the turns it rests on. */
export const Fact = z.object({
  concept: z.string().min(1),
  value: z.string().min(1),
  polarity: z.enum(['positive', 'negative']),
  /** Id of each source turn. */
  evidence: z.array(z.string()),
  /** Who says so; of the node's origin where it is not given. */
  origin: origin.optional(),
  valid_from: iso.optional(),
  /** From when it was no longer so; open where it is not given. */
  valid_to: iso.nullable().optional(),
  /** The node that says what is so instead. */
  superseded_by: z.string().nullable().optional(),
  bucket,
});
export type Fact = z.infer<typeof Fact>;

/** Something that was said in a turn, as it was said. */
export const StatedItem = z.object({
  text: z.string().min(1),
  origin,
  turn: z.string(),
  /** That it is over, by the user's word or what a model read in later turns. */
  closed: z.object({ at: iso, as: z.enum(['done', 'dropped']) }).optional(),
  bucket,
});
export type StatedItem = z.infer<typeof StatedItem>;

/** An option that was taken, or rejected. */
export const Decision = StatedItem.extend({ by: z.enum(['user', 'assistant']) });
export type Decision = z.infer<typeof Decision>;

const Author = z.object({
  by: z.enum(['user', 'rules', 'model']),
  /** Name of the model; there only where `by` is `model`. */
  model: z.string().optional(),
});
export type Author = z.infer<typeof Author>;

/** What a node is made of: turns, tool calls, a piece of a document, a note, or other nodes. */
const Kind = z.enum(['turn', 'tool', 'document', 'note', 'group']);
export type Kind = z.infer<typeof Kind>;

const Common = z.object({
  node_id: z.string().regex(/^mem_\d{8}_\d{6}_[0-9a-f]{6}$/),
  session_id: z.string().min(1),
  project: z.string(),
  author: Author,
  /** `draft`: written by rules until a model answers. Whether it is past or quarantined follows from other fields. */
  status: z.enum(['draft', 'current']).default('current'),
  depth_level: z.int().nonnegative().default(1),
  recall_mode: z.enum(['passive', 'active', 'both']).default('active'),
  /** The recall mode that `unpin` gives back; there only while the node is pinned. */
  pinned_from: z.enum(['passive', 'active', 'both']).optional(),
  /** Keys of other projects in which it is always shown too. */
  pinned_in: z.array(z.string()).optional(),
  /** What its turns are: decides how they are remembered. */
  modality: z.enum(['dialog', 'artifact_code', 'artifact_image', 'execution_trace', 'external']).optional(),
  topic_tags: z.array(z.string()).default([]),
  importance: z.enum(['HIGH', 'MED', 'LOW']).default('MED'),
  summary: z.string().min(1),
  title: z.string().optional(),
  /** There only where it differs from `origin`. */
  title_origin: origin.optional(),
  /** What was done or answered. */
  outcome: z.string().optional(),
  decisions: z.array(Decision).optional(),
  /** To-dos and unanswered questions. */
  open: z.array(StatedItem).optional(),
  /** Figures, names, paths and identifiers as written. */
  values: z.array(z.string()).optional(),
  detailed_summary: z.string().nullable().default(null),
  /** Who wrote `detailed_summary`; there only where memory did, on request. */
  detailed_by: z.string().optional(),
  /** The lowest of the turns it was made from; there with `detailed_by`. */
  detailed_origin: origin.optional(),
  trigger: z.string(),
  parent_node_id: z.string().nullable().default(null),
  links: z.array(z.string()).default([]),
  source_links: z.array(z.string()).default([]),
  capsule: z.string().nullable().default(null),
  origin,
  /** The user lets it be recalled although it gives orders. */
  released: z.boolean().optional(),
  valid_from: iso,
  valid_to: iso.nullable().default(null),
  superseded_by: z.string().nullable().default(null),
  /**
   * `revised`: it was true until `valid_to`. `merged`: its turns and facts stand under the node that superseded it, and
   * its id leads there. Without it, `superseded_by` tells only that another node took its place.
   */
  superseded_as: z.enum(['revised', 'merged']).optional(),
  compaction_reason: z.enum(['topic_shift', 'high_load', 'buffer_overflow', 'forced', 'external']),
  created_at: iso,
  /** Ids of the turns it covers, oldest first. */
  turns: z.array(z.string()).default([]),
  facts: z.array(Fact).default([]),
});

const OwnNode = Common.extend({ kind: Kind });
/** Only points to the node that took its place: a draft that was replaced, or a node merged into another. */
const RedirectNode = Common.extend({ kind: z.literal('redirect'), was: Kind });
type OwnNode = z.infer<typeof OwnNode>;
export type RedirectNode = z.infer<typeof RedirectNode>;

/** The unit of memory; field names are CoMeT's. */
export type MemoryNode = OwnNode | RedirectNode;

/** What a node says, whatever its state. */
export type NodeContent = Omit<MemoryNode, 'status'>;

export const NODE_FIELDS = [...Object.keys(Common.shape), 'kind', 'was'] as readonly (keyof RedirectNode)[];

/** Also reads what versions before 0.2 wrote. */
export const MemoryNode: z.ZodType<MemoryNode> = z.preprocess(
  (value) => {
    const node = fromSchema1(value);
    return isRecord(node) && node['kind'] === undefined ? { ...node, kind: 'turn' } : node;
  },
  z.discriminatedUnion('kind', [OwnNode, RedirectNode]),
);

const NOTE_LINK = 'note';

/**
 * A node as schema 1 wrote it, in today's form; anything else as it is. Schema 1 told kinds apart by `written_by`, and
 * kept five fields whose value never changed.
 */
export function fromSchema1(value: unknown): unknown {
  if (!isRecord(value) || typeof value['written_by'] !== 'string' || value['kind'] !== undefined) return value;
  const { written_by, strength, recall_count, last_recalled_at, content_key, raw_location, ...node } = value;
  const kind = getKind(node, written_by);
  const status = written_by === 'local' ? 'draft' : 'current';
  const named = { ...node, author: getAuthor(written_by), status };
  return isRedirected(node, written_by) ? { ...named, kind: 'redirect', was: kind } : { ...named, kind };
}

function getKind(node: Record<string, unknown>, writtenBy: string): string {
  const { source_links: links, turns, depth_level: depth } = node;
  if (writtenBy === 'bundle') return 'tool';
  if (writtenBy === 'document') return Array.isArray(links) && links.includes(NOTE_LINK) ? 'note' : 'document';
  return depth === 0 && Array.isArray(turns) && turns.length === 0 ? 'group' : 'turn';
}

function getAuthor(writtenBy: string): { by: 'user' | 'rules' | 'model'; model?: string } {
  if (writtenBy === 'user') return { by: 'user' };
  if (['bundle', 'document', 'local', 'consolidation'].includes(writtenBy)) return { by: 'rules' };
  return { by: 'model', model: writtenBy };
}

function isRedirected({ superseded_by: by, superseded_as: as }: Record<string, unknown>, writtenBy: string): boolean {
  if (typeof by !== 'string') return false;
  return as === 'merged' || (as === undefined && writtenBy === 'local');
}
