import { neutralLine } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { MemoryNode, NodeContent } from '../model/node.ts';
import { fileMarks } from '../model/turn.ts';
import { terseMeta } from '../text/system-tags.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import { currentSummary, validityNote } from '../text/validity.ts';
import type { MemoryLine } from './types.ts';

export const LINE_CHARS = 400;
/** Maximum summary length without a quote. */
const WHOLE_CHARS = 700;
/** Minimum summary length beside a quote. */
const STUMP_CHARS = 90;

export interface RawLine {
  readonly text: string;
  /** Id of its turn. */
  readonly turn: string;
  readonly origin: Origin;
}

export interface Showing {
  /** Appended to the line. */
  readonly note?: string;
  /** Show superseded statements too. */
  readonly past?: boolean;
}

/** Maximum quote length, which leaves room for `STUMP_CHARS` of the summary. */
export const RAW_CHARS = 240;

/**
 * Formats a node as `- [mem_…] 2026-03-01 (O:USER I:M S:db.ts) summary — "quote"`, at most 400 characters. The quote
 * appears whole or not at all, since it carries exact values, and only if it adds a word to the summary. Superseded
 * statements are left out or marked.
 */
export function memoryLine(
  node: NodeContent,
  raw: RawLine | null,
  { note = '', past = false }: Showing = {},
): MemoryLine {
  const mark = [validityNote(node), note].map((each) => (each === '' ? '' : ` ${each}`)).join('');
  const summary = past ? node.summary : (currentSummary(node) ?? node.summary);
  const alone = lineOf(node, summary, LINE_CHARS, mark);
  if (raw === null) return alone;
  const quote = neutralLine(raw.text, Number.MAX_SAFE_INTEGER);
  if (quote.length > RAW_CHARS || !addsTo(alone.text, quote)) return alone;
  const origin = lowestOrigin([node.origin, raw.origin]);
  const head = headerOf(node, origin);
  const tail = ` — "${quote}"${mark}`;
  const left = LINE_CHARS - head.length - tail.length;
  if (left < Math.min(STUMP_CHARS, summary.length)) return alone;
  return { nodeId: node.node_id, origin, text: `${head}${neutralLine(summary, left)}${tail}` };
}

/** Like `memoryLine`, without a quote and with a longer summary. */
export function summaryLine(node: MemoryNode): MemoryLine {
  const note = validityNote(node);
  return lineOf(node, currentSummary(node) ?? node.summary, WHOLE_CHARS, note === '' ? '' : ` ${note}`);
}

/** For a quarantined node: only the facts of clean origin. */
export function quarantinedLine(node: MemoryNode): MemoryLine {
  const clean = node.facts.filter(({ origin = node.origin }) => isCleanOrigin(origin));
  const stated = clean.map(({ concept, value }) => (value.startsWith(concept) ? value : `${concept}: ${value}`));
  const known = stated.length === 0 ? '' : `; stated in it: ${stated.join('; ')}`;
  return lineOf(node, `quarantined: contains instructions from ${node.origin} text${known}`, LINE_CHARS, '');
}

function lineOf(node: NodeContent, summary: string, maxChars: number, mark: string): MemoryLine {
  const head = headerOf(node, node.origin);
  const text = `${head}${neutralLine(summary, maxChars - head.length - mark.length)}${mark}`;
  return { nodeId: node.node_id, origin: node.origin, text };
}

function headerOf(node: NodeContent, origin: Origin): string {
  return `- [${node.node_id}] ${node.created_at.slice(0, 10)} ${terseMeta(node, { origin, source: provenance(node) })} `;
}

function addsTo(shown: string, quote: string): boolean {
  const said = new Set(uniqueTokens(shown));
  return uniqueTokens(quote).some((token) => !said.has(token));
}

const DOCUMENT_LINK = 'document:';
const NAME_CHARS = 24;
const SESSION_CHARS = 8;

/**
 * A node's source in a few safe characters: its document, its file (`db.ts`, or `db.ts+2` for several), or the start of
 * its session id.
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
