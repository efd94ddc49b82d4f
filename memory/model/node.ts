import { z } from 'zod';

const iso = z.iso.datetime();

/** A statement with the turns it rests on. */
export const Fact = z.object({
  concept: z.string().min(1),
  value: z.string().min(1),
  polarity: z.enum(['positive', 'negative']),
  /** Id of each source turn. */
  evidence: z.array(z.string()),
  /** Who says so; of the node's origin where it is not given. */
  origin: z.enum(['user', 'assistant', 'tool', 'external']).optional(),
  valid_from: iso.optional(),
  /** From when it was no longer so; open where it is not given. */
  valid_to: iso.nullable().optional(),
  /** The node that says what is so instead. */
  superseded_by: z.string().nullable().optional(),
});
export type Fact = z.infer<typeof Fact>;

/** The unit of memory; field names are CoMeT's. */
export const MemoryNode = z.object({
  node_id: z.string().regex(/^mem_\d{8}_\d{6}_[0-9a-f]{6}$/),
  session_id: z.string().min(1),
  project: z.string(),
  depth_level: z.int().nonnegative(),
  recall_mode: z.enum(['passive', 'active', 'both']),
  /** The recall mode that `unpin` gives back; there only while the node is pinned. */
  pinned_from: z.enum(['passive', 'active', 'both']).optional(),
  /** Keys of other projects in which it is always shown too. */
  pinned_in: z.array(z.string()).optional(),
  /** What its turns are: decides how they are remembered. */
  modality: z.enum(['dialog', 'artifact_code', 'artifact_image', 'execution_trace', 'external']).optional(),
  topic_tags: z.array(z.string()),
  importance: z.enum(['HIGH', 'MED', 'LOW']),
  summary: z.string().min(1),
  detailed_summary: z.string().nullable(),
  /** Who wrote `detailed_summary`; there only where memory did, on request. */
  detailed_by: z.string().optional(),
  /** The lowest of the turns it was made from; there with `detailed_by`. */
  detailed_origin: z.enum(['user', 'assistant', 'tool', 'external']).optional(),
  trigger: z.string(),
  /** sha256 over the ids of the turns it stands for: the same turns give the same key. */
  content_key: z.string(),
  /** Journal file, relative to the home. */
  raw_location: z.string(),
  parent_node_id: z.string().nullable(),
  links: z.array(z.string()),
  source_links: z.array(z.string()),
  capsule: z.string().nullable(),
  origin: z.enum(['user', 'assistant', 'tool', 'external']),
  /** The user lets it be recalled although it gives orders, see `core/quarantine.ts`. */
  released: z.boolean().optional(),
  valid_from: iso,
  valid_to: iso.nullable(),
  superseded_by: z.string().nullable(),
  /**
   * `revised`: it was true until `valid_to`. `merged`: its turns and facts stand under the node that superseded it, and
   * its id leads there. Without it, `superseded_by` tells only that another node took its place.
   */
  superseded_as: z.enum(['revised', 'merged']).optional(),
  compaction_reason: z.enum(['topic_shift', 'high_load', 'buffer_overflow', 'forced', 'external']),
  created_at: iso,
  strength: z.number(),
  recall_count: z.int().nonnegative(),
  last_recalled_at: iso.nullable(),
  /** Id of each turn it stands for, oldest first. */
  turns: z.array(z.string()),
  /** Who wrote it: `local` is a draft until the model answers. */
  written_by: z.string(),
  facts: z.array(Fact),
});
export type MemoryNode = z.infer<typeof MemoryNode>;

/** `mem_YYYYMMDD_HHMMSS_<6 hex>`, UTC. */
export function nodeId(atMs: number, randomHex: string): string {
  const [date, time] = new Date(atMs).toISOString().split('T') as [string, string];
  return `mem_${date.replaceAll('-', '')}_${time.slice(0, 8).replaceAll(':', '')}_${randomHex.slice(0, 6)}`;
}
