import { isRecord } from '../../common/text.ts';

const NOTE_LINK = 'note';

/**
 * A node as schema 1 wrote it, in today's form; anything else as it is. Schema 1 told kinds apart by `written_by`, and
 * kept five fields whose value never changed.
 */
export function fromSchema1(value: unknown): unknown {
  if (!isRecord(value) || typeof value['written_by'] !== 'string' || value['kind'] !== undefined) return value;
  const { written_by, strength, recall_count, last_recalled_at, content_key, raw_location, ...node } = value;
  const kind = kindOf(node, written_by);
  const status = written_by === 'local' ? 'draft' : 'current';
  const named = { ...node, author: authorOf(written_by), status };
  return isRedirected(node, written_by) ? { ...named, kind: 'redirect', was: kind } : { ...named, kind };
}

function kindOf(node: Record<string, unknown>, writtenBy: string): string {
  const { source_links: links, turns, depth_level: depth } = node;
  if (writtenBy === 'bundle') return 'tool';
  if (writtenBy === 'document') return Array.isArray(links) && links.includes(NOTE_LINK) ? 'note' : 'document';
  return depth === 0 && Array.isArray(turns) && turns.length === 0 ? 'group' : 'turn';
}

function authorOf(writtenBy: string): { by: 'user' | 'rules' | 'model'; model?: string } {
  if (writtenBy === 'user') return { by: 'user' };
  if (['bundle', 'document', 'local', 'consolidation'].includes(writtenBy)) return { by: 'rules' };
  return { by: 'model', model: writtenBy };
}

function isRedirected({ superseded_by: by, superseded_as: as }: Record<string, unknown>, writtenBy: string): boolean {
  if (typeof by !== 'string') return false;
  return as === 'merged' || (as === undefined && writtenBy === 'local');
}
