import { localDay, neutralLine } from '../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import { getTeammate, type MemoryNode, type NodeContent, TEAMMATE } from '../model/node.ts';
import { fileMarks } from '../model/turn.ts';
import { terseMeta } from '../text/tags.ts';
import { currentSummary, validityNote } from '../text/validity.ts';
import type { Passage } from './passages.ts';
import type { MemoryLine } from './types.ts';

export const LINE_CHARS = 400;
const WHOLE_CHARS = 700;
export const PASSAGE_CHARS = 420;

export interface Showing {
  readonly note?: string;
  /** Show superseded statements too. */
  readonly past?: boolean;
}

/**
 * Formats a node as `- [mem_…] 2026-03-01 (O:USER I:M S:db.ts) summary`, at most 400 characters, or with the passage of
 * the turn that answers instead of the summary. The origin is that of what the line shows. Superseded statements are
 * left out or marked.
 */
export function memoryLine(node: NodeContent, passage: Passage | null, { note = '', past = false }: Showing = {}) {
  const mark = [validityNote(node), note].map((each) => (each === '' ? '' : ` ${each}`)).join('');
  if (passage === null)
    return getLine(node, past ? node.summary : (currentSummary(node) ?? node.summary), LINE_CHARS, mark);
  const { text, by, origin, asked } = passage;
  const quote = `“${neutralLine(text, PASSAGE_CHARS)}”`;
  const speaker = by === 'user' && origin === 'user' ? 'user: ' : by === 'call' ? 'tool call: ' : '';
  const shown =
    asked === '' ? `${speaker}${quote}` : `asked “${neutralLine(asked, PASSAGE_CHARS)}”, answered: ${quote}`;
  return { nodeId: node.node_id, origin, text: `${getHeader(node, origin)}${shown}${mark}` };
}

/** What a line quotes or summarizes, without id, date, marks and the words that `memoryLine` puts between. */
export function saidIn(line: string): string {
  return line.slice(line.indexOf(') ') + 2).replace(/asked “|”, answered: “/g, ' ');
}

/** Like `memoryLine`, without a quote and with a longer summary. */
export function summaryLine(node: MemoryNode): MemoryLine {
  const note = validityNote(node);
  return getLine(node, currentSummary(node) ?? node.summary, WHOLE_CHARS, note === '' ? '' : ` ${note}`);
}

/** For a quarantined node: only the facts of clean origin. */
export function quarantinedLine(node: MemoryNode): MemoryLine {
  const clean = node.facts.filter(({ origin = node.origin }) => isCleanOrigin(origin));
  const stated = clean.map(({ concept, value }) => (value.startsWith(concept) ? value : `${concept}: ${value}`));
  const values = stated.length === 0 ? '' : `; stated in it: ${stated.join('; ')}`;
  return getLine(node, `quarantined: contains instructions from ${node.origin} text${values}`, LINE_CHARS, '');
}

function getLine(node: NodeContent, summary: string, maxChars: number, mark: string): MemoryLine {
  const head = getHeader(node, node.origin);
  const text = `${head}${neutralLine(summary, maxChars - head.length - mark.length)}${mark}`;
  return { nodeId: node.node_id, origin: node.origin, text };
}

function getHeader(node: NodeContent, origin: Origin): string {
  return `- [${node.node_id}] ${localDay(node.valid_from)} ${terseMeta(node, { origin, source: provenance(node) })} `;
}

const DOCUMENT_LINK = 'document:';
const NAME_CHARS = 24;
const SESSION_CHARS = 8;

/**
 * A node's source in a few safe characters: the teammate whose machine published it, its document, its file (`db.ts`,
 * or `db.ts+2` for several), or the start of its session id.
 */
export function provenance({ source_links, session_id }: Pick<MemoryNode, 'source_links' | 'session_id'>): string {
  const teammate = getTeammate({ source_links });
  if (teammate !== null) return TEAMMATE + plain(teammate, NAME_CHARS);
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
