import { createHash } from 'node:crypto';
import { isFromText, isRedirect, type MemoryNode } from './model/node.ts';
import { isQuarantined } from './recall/quarantine.ts';
import type { RecallHit } from './recall/types.ts';
import { journalLocation } from './storage/paths.ts';
import { isPast } from './text/validity.ts';

/** What programs are given of a node beside its own fields: those of CoMeT that follow from others, or never change. */
interface DerivedFields {
  readonly status: 'draft' | 'current' | 'superseded' | 'quarantined';
  readonly written_by: string;
  readonly content_key: string;
  readonly raw_location: string;
  readonly strength: number;
  readonly recall_count: number;
  readonly last_recalled_at: string | null;
}

export type Public<T> = T extends MemoryNode ? Omit<T, 'status'> & DerivedFields : never;
export type PublicNode = Public<MemoryNode>;
export type PublicHit = Omit<RecallHit, 'node'> & { readonly node: PublicNode };

export function publicNode<T extends MemoryNode>(node: T): Public<T> {
  const parts = node.kind === 'group' ? node.links : node.turns;
  const derived: DerivedFields = {
    status: statusOf(node),
    written_by: writtenBy(node),
    content_key: createHash('sha256').update(parts.join('\n')).digest('hex'),
    raw_location: journalLocation(node.session_id),
    strength: 1,
    recall_count: 0,
    last_recalled_at: null,
  };
  return { ...node, ...derived } as unknown as Public<T>;
}

/** One word for kind and author, as the first version had it. */
export function writtenBy(node: MemoryNode): string {
  if (node.kind === 'tool') return 'bundle';
  if (isFromText(node)) return 'document';
  const { author, status } = node;
  if (author.by === 'rules') return status === 'draft' ? 'local' : 'consolidation';
  return author.by === 'user' ? 'user' : (author.model ?? 'model');
}

function statusOf(node: MemoryNode): DerivedFields['status'] {
  if (isRedirect(node) || isPast(node)) return 'superseded';
  return isQuarantined(node) ? 'quarantined' : node.status;
}
