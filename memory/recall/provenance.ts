import { fileMarks } from '../model/file-link.ts';
import type { MemoryNode } from '../model/node.ts';
import { neutralLine } from '../text/sanitize-line.ts';

const DOCUMENT_LINK = 'document:';
const NAME_CHARS = 24;
const SESSION_CHARS = 8;

/**
 * Where a node comes from, in few characters and none that could pass for words of ours: the document it is a piece of,
 * the file it is about (`db.ts`, with more than one `db.ts+2`), or the beginning of its session's id.
 */
export function provenance({ source_links, session_id }: Pick<MemoryNode, 'source_links' | 'session_id'>): string {
  const document = source_links.find((link) => link.startsWith(DOCUMENT_LINK))?.slice(DOCUMENT_LINK.length);
  const files = document === undefined ? fileMarks(source_links).map(({ path }) => path) : [document];
  const [first] = files;
  if (first === undefined) return plain(session_id, SESSION_CHARS);
  const others = files.length === 1 ? '' : `+${files.length - 1}`;
  return `${plain(first.split(/[\\/]/).at(-1) ?? '', NAME_CHARS)}${others}`;
}

function plain(name: string, maxChars: number): string {
  return neutralLine(name, Number.MAX_SAFE_INTEGER)
    .replace(/[^\p{L}\p{N}._-]/gu, '_')
    .slice(0, maxChars);
}
