import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import { fileMarks } from '../model/file-link.ts';
import type { MemoryNode } from '../model/node.ts';
import { currentSummary, validityNote } from '../model/validity.ts';
import { neutralLine } from '../text/sanitize-line.ts';
import { terseMeta } from '../text/system-tags.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import type { MemoryLine } from './types.ts';

export const LINE_CHARS = 400;
/** What a summary takes at most where nothing stands beside it; as long as the writers of summaries make them. */
const WHOLE_CHARS = 700;
/** A summary squeezed to less than this beside a raw line tells nobody what the node is about. */
const STUMP_CHARS = 90;

export interface RawLine {
  readonly text: string;
  /** `end` of the turn it stands in. */
  readonly turn: string;
  readonly origin: Origin;
}

export interface Showing {
  /** Ends the line. */
  readonly note?: string;
  /** What was so once is asked for: it is shown, too. */
  readonly past?: boolean;
}

/** What a raw line may take at most, so that it always fits beside a stump of the summary. */
export const RAW_CHARS = 240;

/**
 * A node in one line: `- [mem_…] 2026-03-01 (O:USER I:M S:db.ts) summary — "raw line"`, at most 400 characters. The raw line is
 * shown whole or not at all, because its point are the exact values, and only where it adds a word to what of the
 * summary would be shown. What is no longer so is left out, or said to be so.
 */
export function memoryLine(
  node: MemoryNode,
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
  const head = headOf(node, origin);
  const tail = ` — "${quote}"${mark}`;
  const left = LINE_CHARS - head.length - tail.length;
  if (left < Math.min(STUMP_CHARS, summary.length)) return alone;
  return { nodeId: node.node_id, origin, text: `${head}${neutralLine(summary, left)}${tail}` };
}

/** The same without a raw line, as whole as a summary may be shown. */
export function summaryLine(node: MemoryNode): MemoryLine {
  const note = validityNote(node);
  return lineOf(node, currentSummary(node) ?? node.summary, WHOLE_CHARS, note === '' ? '' : ` ${note}`);
}

/** For one in quarantine: that it is there, and what of it the user or an untainted assistant stated. */
export function heldBackLine(node: MemoryNode): MemoryLine {
  const clean = node.facts.filter(({ origin = node.origin }) => isCleanOrigin(origin));
  const stated = clean.map(({ concept, value }) => (value.startsWith(concept) ? value : `${concept}: ${value}`));
  const known = stated.length === 0 ? '' : `; stated in it: ${stated.join('; ')}`;
  return lineOf(node, `held back, as it gives orders and came from ${node.origin} text${known}`, LINE_CHARS, '');
}

function lineOf(node: MemoryNode, summary: string, maxChars: number, mark: string): MemoryLine {
  const head = headOf(node, node.origin);
  const text = `${head}${neutralLine(summary, maxChars - head.length - mark.length)}${mark}`;
  return { nodeId: node.node_id, origin: node.origin, text };
}

function headOf(node: MemoryNode, origin: Origin): string {
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
