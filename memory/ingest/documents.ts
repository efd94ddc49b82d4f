import { clip, sha256, trimEnd } from '../../common/text.ts';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import type { ProposedNode } from '../models/model.ts';
import { getAnchors, getTags } from '../text/keywords.ts';
import { getValues, split } from '../text/sentences.ts';
import type { Block } from './content-blocks.ts';

/** Value of a turn's `model` for a chunk of a file that the user imported. */
export const DOCUMENT = 'document';

/** `overlapChars`: upper bound of the text that consecutive chunks share. */
export const CHUNK_SIZE = { maxChars: 2_000, overlapChars: 200 } as const;

export interface Chunk {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** Enclosing Markdown headings, outermost first. */
  readonly headings: readonly string[];
}

const SUMMARY_CHARS = 600;
/** Split points, best first. */
const ENDS = [/\n[ \t]*\n+/g, /\n/g, /(?<=[.!?。！？])["')\]]*\s+/g, /\s+/g];

/** Splits after a paragraph, else a line, a sentence or a word; consecutive chunks overlap. */
export function chunkDocument(text: string): Chunk[] {
  const headings = getHeadings(text);
  const chunks: Chunk[] = [];
  let from = skipBlank(text, 0);
  while (from < text.length) {
    const to = getEnd(text, from, CHUNK_SIZE.maxChars);
    chunks.push({ from, to, text: text.slice(from, to), headings: getPathAt(headings, from, to) });
    if (skipBlank(text, to) >= text.length) break;
    from = nextStart(text, { from, to }, CHUNK_SIZE.overlapChars);
  }
  return chunks;
}

function getEnd(text: string, from: number, maxChars: number): number {
  const limit = from + maxChars;
  if (limit >= text.length) return text.length;
  const window = text.slice(from, limit);
  for (const end of ENDS) {
    const last = [...window.matchAll(end)].findLast(({ index }) => index > maxChars / 2);
    if (last !== undefined) return from + last.index + last[0].length;
  }
  const isInPair = /[\udc00-\udfff]/.test(text.charAt(limit));
  return isInPair ? limit - 1 : limit;
}

/** The first line, sentence or word boundary in the last `overlap` characters of a chunk. */
function nextStart(text: string, { from, to }: Pick<Chunk, 'from' | 'to'>, overlap: number): number {
  const earliest = Math.max(from + 1, to - overlap);
  const tail = text.slice(earliest, to);
  for (const end of ENDS.slice(1)) {
    for (const match of tail.matchAll(end)) {
      const start = earliest + match.index + match[0].length;
      if (start < to && text.slice(start, to).trim() !== '') return start;
    }
  }
  return skipBlank(text, to);
}

function skipBlank(text: string, at: number): number {
  let next = at;
  while (next < text.length && /\s/.test(text[next] as string)) next += 1;
  return next;
}

interface Heading {
  readonly at: number;
  readonly level: number;
  readonly title: string;
}

function getHeadings(text: string): Heading[] {
  const headings: Heading[] = [];
  let at = 0;
  let fence = '';
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(```|~~~)/.exec(line)?.[1] ?? '';
    if (mark !== '' && (fence === '' || fence === mark)) fence = fence === '' ? mark : '';
    const [, hashes = '', title = ''] = fence === '' ? (/^(#{1,6})\s(.*)$/.exec(line.trimEnd()) ?? []) : [];
    if (hashes !== '') headings.push({ at, level: hashes.length, title: trimEnd(title, '#').trim() });
    at += line.length + 1;
  }
  return headings;
}

/** Heading path at the start of a chunk; a heading within the overlap counts as its start. */
function getPathAt(headings: readonly Heading[], from: number, to: number): string[] {
  const path: Heading[] = [];
  const first = headings.find(({ at }) => at >= from && at < to)?.at ?? Number.NEGATIVE_INFINITY;
  const until = first - from <= CHUNK_SIZE.overlapChars ? Math.max(from, first) : from;
  for (const heading of headings) {
    if (heading.at > until) break;
    while ((path.at(-1)?.level ?? 0) >= heading.level) path.pop();
    path.push(heading);
  }
  return path.map(({ title }) => title).filter((title) => title !== '');
}

export interface DocumentFile {
  /** Absolute. */
  readonly file: string;
  /** Project key. */
  readonly project: string;
  readonly projectDir: string;
}

export function documentSession({ file, project }: Pick<DocumentFile, 'file' | 'project'>): string {
  return `doc-${sha256(`${project}\n${file}`).slice(0, 16)}`;
}

/** The id hashes project and text, so importing the same text again yields the same turn. */
export function documentTurn(chunk: Chunk, source: DocumentFile, atMs: number): CapturedTurn {
  const { file, project, projectDir } = source;
  const data = { type: 'text', media_type: 'text/plain', data: chunk.text };
  const content = JSON.stringify([{ type: 'document', title: getTitle(chunk, file), source: data }]);
  const message: CapturedMessage = { role: 'user', content, sha256: sha256(content) };
  const turnId = sha256(`document\n${project}\n${chunk.text}`);
  const sessionId = documentSession(source);
  return { key: sha256(`key\n${turnId}`), turnId, sessionId, projectDir, model: DOCUMENT, atMs, messages: [message] };
}

export function documentText(block: Block): string {
  if (block['type'] !== 'document') return '';
  const { type, data } = (block['source'] ?? {}) as { readonly type?: unknown; readonly data?: unknown };
  return type === 'text' && typeof data === 'string' ? data : '';
}

/** Extractive, so that importing a long file calls no model. */
export function documentDraft(chunk: Chunk, file: string, knownTags: readonly string[]): Omit<ProposedNode, 'turns'> {
  const title = getTitle(chunk, file);
  const kept = worthiest(split(chunk.text.replace(/^#{1,6} .*$/gm, '')), SUMMARY_CHARS - title.length - 2);
  const text = kept.join('\n');
  const anchors = getAnchors(text === '' ? chunk.text : text);
  const about = anchors.length === 0 ? '' : ` says about ${anchors.join(', ')}`;
  return {
    summary: clip([title, kept.join('; ')].filter((part) => part !== '').join(': '), SUMMARY_CHARS),
    trigger: clip(`When I need what ${getName(file)}${about}`, 300),
    topic_tags: getTags(title, chunk.text, knownTags),
    importance: 'MED',
    recall_mode: 'active',
    facts: [],
    origin: 'tool',
  };
}

/** Added to the length, so that the shortest sentence does not always win. */
const PLAIN_CHARS = 40;

/** Those with the most figures, names and paths for their length. */
function worthiest(sentences: readonly string[], maxChars: number): string[] {
  const ranked = sentences
    .map((text, at) => ({ text: trimEnd(text, '.;'), at, worth: getValues(text).length / (PLAIN_CHARS + text.length) }))
    .toSorted((a, b) => b.worth - a.worth || a.at - b.at);
  const kept: typeof ranked = [];
  let left = maxChars;
  for (const sentence of ranked) {
    if (sentence.text.length + 2 > left) continue;
    kept.push(sentence);
    left -= sentence.text.length + 2;
  }
  return kept.toSorted((a, b) => a.at - b.at).map(({ text }) => text);
}

function getTitle({ headings }: Chunk, file: string): string {
  return clip([getName(file), ...headings].join(' › ').replace(/\s+/g, ' '), 200);
}

const getName = (file: string): string => file.split(/[\\/]/).at(-1) ?? file;
