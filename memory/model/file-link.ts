import type { FileMark } from './turn.ts';

const SCHEME = 'file:';

/** `file:src/db.ts#sha256=0123456789abcdef&commit=0123456789ab`: how a node's `source_links` name a file. */
export function formatFileLink({ path, sha256, commit }: FileMark): string {
  const known = Object.entries({ sha256, commit }).filter(([, value]) => value !== '');
  const marks = known.map(([key, value]) => `${key}=${value}`).join('&');
  return `${SCHEME}${escapePath(path)}${marks === '' ? '' : `#${marks}`}`;
}

/** Null for a link to something else, and for one that names no file inside a project. */
export function parseFileLink(link: string): FileMark | null {
  if (!link.startsWith(SCHEME)) return null;
  const [escaped = '', marks = ''] = link.slice(SCHEME.length).split('#', 2);
  const path = unescapePath(escaped);
  if (path === null || !isProjectPath(path)) return null;
  const markOf = (key: string): string => new RegExp(`(?:^|&)${key}=([0-9a-f]+)(?:&|$)`).exec(marks)?.[1] ?? '';
  return { path, sha256: markOf('sha256'), commit: markOf('commit') };
}

/** What the links say of files; the last word on each path counts. */
export function fileMarks(links: readonly string[]): FileMark[] {
  return latestMarks(links.flatMap((link) => parseFileLink(link) ?? []));
}

/** One mark for each path, in order of first mention; one that knows the content is not replaced by one that does not. */
export function latestMarks(marks: readonly FileMark[]): FileMark[] {
  const latest = new Map<string, FileMark>();
  for (const mark of marks) {
    const before = latest.get(mark.path);
    if (before === undefined || mark.sha256 !== '') latest.set(mark.path, mark);
  }
  return [...latest.values()];
}

/** Relative, with forward slashes, and never out of the project. */
export function isProjectPath(path: string): boolean {
  if (path === '' || path.includes('\0') || path.includes('\\') || /^[a-z]:/i.test(path)) return false;
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

function escapePath(path: string): string {
  return path.replace(/[%#\s\p{Cc}\p{Cf}]/gu, encodeURIComponent);
}

function unescapePath(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray % of a hand edit: no path that could be meant.
    return null;
  }
}

/** A file that a node is about and that is no longer what it was. */
export interface FileChange {
  readonly path: string;
  readonly state: 'changed' | 'deleted';
}
