import type { Origin } from '../../common/turn.ts';
import { fileMarks } from './file-link.ts';
import type { MemoryNode } from './node.ts';
import type { TurnText } from './turn.ts';

/** Where something came from, as the user names it. */
export interface Source {
  /** An origin, a tool, an MCP server (`mcp__name`), a host, an address, or a file. */
  readonly name: string;
  /** The absolute path that `name` would be on the user's machine. */
  readonly file?: string;
}

const ORIGINS: readonly Origin[] = ['user', 'assistant', 'tool', 'external'];
const URLS = /\b(?:https?|ftp|wss?):\/\/[^\s"'`<>\\)\]}]+/gi;
const PATH_KEYS = /"(?:file_path|notebook_path|path|filePath)":("(?:[^"\\]|\\.)*")/g;

/** Whether anything of this source entered the turn. */
export function isTurnFrom(turn: TurnText, source: Source): boolean {
  if (isOrigin(source.name)) return turn.origin === source.name;
  if ((turn.files ?? []).some(({ path }) => isFile(path, source))) return true;
  return turn.parts.some(({ kind, tool, text }) => {
    if (kind === 'assistant') return false;
    if (isTool(tool, source.name)) return true;
    // A result quotes whatever it likes: only what was called says where it comes from.
    return kind === 'tool_use' && (urlsIn(text).some((url) => isAddress(url, source.name)) || namesFile(text, source));
  });
}

/** Whether the node says that it is from this source. */
export function isNodeFrom(node: MemoryNode, source: Source): boolean {
  if (isOrigin(source.name)) return node.origin === source.name;
  if (fileMarks(node.source_links).some(({ path }) => isFile(path, source))) return true;
  return node.source_links.some((link) => {
    const [, document] = /^document:(.*)$/s.exec(link) ?? [];
    return document === undefined ? isAddress(link, source.name) : isFile(document, source);
  });
}

function isOrigin(name: string): boolean {
  return ORIGINS.includes(name as Origin);
}

function isTool(tool: string, name: string): boolean {
  return tool !== '' && (tool === name || (/^mcp__[^_]/.test(name) && tool.startsWith(`${name}__`)));
}

/** A URL matches its host, the host's parent domains, and every URL prefix of it. */
function isAddress(address: string, name: string): boolean {
  if (!URL.canParse(address)) return false;
  const { host, hostname, href } = new URL(address);
  const named = name.toLowerCase();
  if (!named.includes('://')) return [host, hostname].some((own) => own === named || own.endsWith(`.${named}`));
  if (!URL.canParse(name)) return false;
  const start = new URL(name).href.replace(/\/$/, '');
  return href === start || ['/', '?', '#'].some((next) => href.startsWith(start + next));
}

function urlsIn(text: string): string[] {
  return text.match(URLS) ?? [];
}

function namesFile(input: string, source: Source): boolean {
  return [...input.matchAll(PATH_KEYS)].some(([, path = '""']) => isFile(String(JSON.parse(path)), source));
}

/** The file itself, or one below the folder; a path of a project is relative to its root. */
function isFile(path: string, { name, file }: Source): boolean {
  const isAt = (folder: string): boolean => path === folder || path.startsWith(`${folder.replace(/\/$/, '')}/`);
  if (file !== undefined && isAt(file)) return true;
  const relative = name.replace(/^\.\//, '');
  return relative !== '' && !relative.startsWith('.') && !path.startsWith('/') && isAt(relative);
}
