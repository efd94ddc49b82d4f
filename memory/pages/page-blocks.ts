import { isDeepStrictEqual } from 'node:util';
import { sha256 } from '../../common/text.ts';
import { newPage, type Page, type PageHead, parsePage, parseStatement, renderPage } from '../model/page.ts';

/** What a page is about: two machines may have it under different file names. */
export interface PageRef extends Omit<PageHead, 'sources'> {
  readonly kind: 'topic' | 'plan' | 'facts';
  /** As `topics/x.md`, here or where it came from. */
  readonly file: string;
  /** As `2026-11-24`; '' for a page in a person's own form. */
  readonly updated: string;
}

/** What a person wrote in one piece: a paragraph, a list item, a heading, a piece of code, a fact. */
export interface PageBlock {
  /** Of page, section and text, the same on every machine. */
  readonly key: string;
  readonly page: PageRef;
  readonly section: string;
  readonly text: string;
  /** Key of the block before it; '' for the first. */
  readonly after: string;
  /** It holds what redaction takes out. */
  readonly isPrivate: boolean;
}

/** A block that came from another machine. */
export interface ReceivedBlock {
  readonly block: Omit<PageBlock, 'isPrivate'>;
  /** Key of the block that it took the place of; '' for none. */
  readonly instead: string;
  /** Written behind a block that was changed here too; '' for none. */
  readonly label: string;
}

/** Lines that belong together; `key` is null for those that are not a person's. */
interface Segment {
  readonly section: string;
  readonly lines: string[];
  readonly isOwn: boolean;
  key: string | null;
}

const MARK_START = '[changed on:: ';
/** Behind a block, or below a piece of code. */
const MARK = /^\[changed on:: [^\]\n]{1,80}\]$/;
const FENCE = /^(?:```|~~~)/;
const ITEM = /^(?:[-*+]|\d{1,9}[.)]) /;

const getDigest = (...parts: readonly (string | number)[]): string => sha256(JSON.stringify(parts));

/** The same for a page on every machine. */
export function pageKey({ kind, scope, project, topic }: PageRef): string {
  return JSON.stringify([kind, scope, project, topic]);
}

/** Numbers what is said twice in one section. */
export function createBlockKeys(): (page: PageRef, section: string, text: string) => string {
  const counts = new Map<string, number>();
  return (page, section, text) => {
    const digest = getDigest(pageKey(page), section, text);
    const nth = counts.get(digest) ?? 0;
    counts.set(digest, nth + 1);
    return `page ${nth === 0 ? digest : getDigest(digest, nth)}`;
  };
}

/** A fact file, as a page. @param project  as every machine names it; '' for the user's */
export function factsRef(project: string): PageRef {
  const scope = project === '' ? 'user' : 'project';
  return { kind: 'facts', file: '', title: '', scope, project, topic: '', updated: '' };
}

type KeyOf = ReturnType<typeof createBlockKeys>;

/** @param getKey  project as every machine names it. Null for a page that is still being written. */
export function getRef(file: string, text: string, getKey: (project: string) => string): PageRef | null {
  const stem = file.slice(file.indexOf('/') + 1).replace(/\.md$/, '');
  const user = { file, title: stem, scope: 'user', project: '', topic: stem, updated: '' } as const;
  if (file.startsWith('plans/')) return { ...user, kind: 'plan' };
  const page = parsePage(text);
  if (page === 'has no front matter') return { ...user, kind: 'topic' };
  if (typeof page === 'string') return null;
  const { title, scope, project, topic, updated } = page.head;
  const own = scope === 'user' ? '' : getKey(project);
  return { kind: 'topic', file, title, scope, project: own, topic: topic || stem, updated };
}

/** Blocks in their order. @param redact  of each text: what leaves and what is compared has no secret */
export function findBlocks(text: string, page: PageRef, getKey: KeyOf, redact: (text: string) => string): PageBlock[] {
  return nameBlocks(findSegments(text, page), page, getKey, redact);
}

function nameBlocks(segments: readonly Segment[], page: PageRef, getKey: KeyOf, redact: (text: string) => string) {
  let after = '';
  const own = segments.filter(({ isOwn }) => isOwn);
  return own.map((segment) => {
    const { section, lines } = segment;
    const whole = withoutMark(lines.join('\n'));
    const text = redact(whole);
    const key = getKey(page, section, text);
    const block = { key, page, section, text, after, isPrivate: text !== whole };
    segment.key = key;
    after = key;
    return block;
  });
}

function getParts(text: string, { kind }: PageRef): { readonly page: Page | null; readonly lines: readonly string[] } {
  const page = kind === 'plan' ? null : parsePage(text);
  if (page !== null && typeof page !== 'string') return { page, lines: page.lines.map((line) => line.trimEnd()) };
  return { page: null, lines: text === '' ? [] : text.split('\n').map((line) => line.trimEnd()) };
}

function findSegments(text: string, ref: PageRef): Segment[] {
  const { lines } = getParts(text, ref);
  const segments: Segment[] = [];
  let section = '';
  let isCode = false;
  let isOpen = false;
  let hasTitle = ref.kind === 'plan';
  const add = (line: string, isOwn: boolean): void => {
    segments.push({ section, lines: [line], isOwn, key: null });
    isOpen = isOwn;
  };
  const end = ref.kind === 'plan' && lines[0] === '---' ? lines.indexOf('---', 1) : -1;
  for (const [at, line] of lines.entries()) {
    const isHead = !isCode && /^#{1,6} /.test(line);
    const isFence = FENCE.test(line.trim());
    const isContinued = at <= end || (isCode && isOpen) || (MARK.test(line) && segments.at(-1)?.isOwn === true);
    if (at > 0 && isContinued) segments.at(-1)?.lines.push(line);
    else if (line.trim() === '') add(line, false);
    else if (line.startsWith('## ')) {
      section = line.slice(3).trim();
      add(line, false);
    } else if (isHead && line.startsWith('# ') && !hasTitle) {
      hasTitle = true;
      add(line, false);
    } else if (ref.kind !== 'plan' && parseStatement(line) !== null) add(line, false);
    else if (isOpen && !isHead && !isFence && !ITEM.test(line)) segments.at(-1)?.lines.push(line);
    else add(line, true);
    if (isFence) isCode = !isCode;
    if (isHead || (isFence && !isCode) || at === end) isOpen = false;
  }
  return segments;
}

function withoutMark(text: string): string {
  const at = text.lastIndexOf(MARK_START);
  return at >= 0 && MARK.test(text.slice(at)) ? text.slice(0, at).trimEnd() : text;
}

/**
 * The text with these blocks added, and others removed; null for a page of which nothing is left.
 * @param isKnown  whether a block was here once: one that replaced it elsewhere, and here is another in its place, was
 *   changed on two machines. Both stay, and the one that came says so.
 */
export function changeBlocks(text: string, page: PageRef, { added, removed, isKnown, redact }: BlockChanges) {
  const { page: parsed } = getParts(text, page);
  const segments = findSegments(text, page);
  nameBlocks(segments, page, createBlockKeys(), redact);
  const before = segments.flatMap(({ lines }) => [...lines]);
  const has = (key: string): boolean => key !== '' && segments.some((each) => each.key === key);
  for (const { block, instead, label } of added) {
    if (has(block.key)) continue;
    const isApart = instead !== '' && !has(instead) && isKnown(instead);
    // The block that has its place here.
    const next = segments.slice(segments.findIndex(({ key }) => key === block.after) + 1).find(({ isOwn }) => isOwn);
    const placed = next?.section === block.section ? (next.key ?? block.after) : block.after;
    const behind = isApart ? placed : has(instead) ? instead : block.after;
    insert(segments, block, behind, isApart ? label : '');
  }
  for (const key of removed) if (has(key)) remove(segments, key);
  const lines = segments.flatMap((segment) => segment.lines);
  if (isDeepStrictEqual(lines, before)) return text;
  if (segments.every((each) => isGap(each) || (!each.isOwn && isHeading(each)))) return null;
  const eol = /\r\n/.test(text) ? '\r\n' : '\n';
  const body = lines.map((line) => line + eol);
  if (parsed !== null) return renderPage({ ...parsed, lines: body });
  while (body.length > 1 && body.at(-1) === eol) body.pop();
  return body.join('');
}

export interface BlockChanges {
  readonly added: readonly ReceivedBlock[];
  readonly removed: ReadonlySet<string>;
  readonly isKnown: (key: string) => boolean;
  readonly redact: (text: string) => string;
}

/** Behind the block of this key, else where its section begins or ends; a section that is missing is made. */
function insert(segments: Segment[], block: ReceivedBlock['block'], behind: string, label: string): void {
  const { section, key } = block;
  const fresh: Segment = { section, lines: labeled(block.text.split('\n'), label), isOwn: true, key };
  const gap: Segment = { section, lines: [''], isOwn: false, key: null };
  const prior = segments.findIndex((each) => behind !== '' && each.key === behind);
  const own = segments.flatMap((each, at) => (each.section === section && !isGap(each) ? [at] : []));
  const [first = -1] = own;
  const isAfterHeading = first >= 0 && segments[first]?.isOwn === false && isHeading(segments[first]);
  const put: Segment[] = [];
  let at = own.at(-1) ?? -1;
  if (prior >= 0 && segments[prior]?.section === section) at = prior;
  else if (section !== '' && own.length === 0) {
    at = prior >= 0 ? segments.findLastIndex((each) => each.section === segments[prior]?.section) : segments.length - 1;
    while (isGap(segments[at])) at -= 1;
    put.push(...(at < 0 ? [] : [gap]), { section, lines: [`## ${section}`], isOwn: false, key: null });
  } else if (prior >= 0 || block.after === '') at = isAfterHeading ? first : first < 0 ? -1 : first - 1;
  if (put.length === 0 && isHeading(segments[at]) && isGap(segments[at + 1])) at += 1;
  const ahead = put.at(-1) ?? segments[at];
  const next = segments[at + 1];
  if (ahead !== undefined && !isGap(ahead) && !(isItem(ahead) && isItem(fresh))) put.push(gap);
  put.push(fresh);
  if (next !== undefined && !isGap(next) && !(isItem(next) && isItem(fresh))) put.push(gap);
  segments.splice(at + 1, 0, ...put);
}

function labeled(lines: string[], label: string): string[] {
  if (label === '') return lines;
  const last = lines.at(-1) as string;
  const mark = `${MARK_START}${label}]`;
  return FENCE.test(last.trim()) ? [...lines, mark] : [...lines.slice(0, -1), `${last} ${mark}`];
}

const isGap = (segment: Segment | undefined): boolean => segment !== undefined && segment.lines.join('') === '';

const isHeading = (segment: Segment | undefined): boolean => /^#{1,2} /.test(segment?.lines[0] ?? '');

const isItem = (segment: Segment | undefined): boolean => ITEM.test(segment?.lines[0] ?? '');

/** With the heading of a section that it was the last of; a mark of the section's others is settled with it. */
function remove(segments: Segment[], key: string): void {
  const at = segments.findIndex((each) => each.key === key);
  const section = segments[at]?.section ?? '';
  const isAlone = isGap(segments[at + 1]) && (at === 0 || isGap(segments[at - 1]));
  segments.splice(at, isAlone ? 2 : 1);
  const left = segments.filter((each) => each.section === section && !isGap(each));
  for (const { lines, isOwn } of left) if (isOwn) lines.splice(-1, 1, withoutMark(lines.at(-1) as string));
  if (section === '' || left.some((each) => each.isOwn || !isHeading(each))) return;
  const heading = segments.findIndex((each) => each.section === section && !isGap(each));
  const length = segments.slice(heading + 1).findIndex((each) => !isGap(each));
  segments.splice(heading, length < 0 ? segments.length : length + 1);
}

/** A page that is not here yet. @param day  as `2026-11-24` */
export function emptyPage({ kind, title, scope, project, topic }: PageRef, day: string): string {
  if (kind === 'plan') return '';
  return renderPage(newPage({ title, scope, project, topic, updated: day, sources: [] }));
}

/** How many blocks of a text were changed on two machines, and still say so. */
export function countLabels(text: string): number {
  return text.split('\n').filter((line) => withoutMark(line.trimEnd()) !== line.trimEnd()).length;
}
