import YAML from 'yaml';
import { z } from 'zod';
import { neutralLine } from '../../common/text.ts';

/** A page of a topic: what is known of one subject, as markdown that a person may edit. */
export interface Page {
  readonly head: PageHead;
  /** All between `---` and `---`, with line endings. */
  readonly front: readonly string[];
  /** Everything after the front matter, with line endings. */
  readonly lines: readonly string[];
}

const day = z.string().regex(/^\d{4}-\d\d-\d\d$/);
const PageHead = z.object({
  title: z.string().min(1).max(200),
  scope: z.enum(['user', 'project']),
  /** Key of its project; '' where the scope is `user`. */
  project: z.string().default(''),
  topic: z.string().default(''),
  updated: day,
  /** Ids of the nodes that it rests on. */
  sources: z.array(z.string()).default([]),
});
export type PageHead = z.infer<typeof PageHead>;

/** A line that memory wrote: a list item that ends with links to its nodes. */
export interface PageStatement {
  readonly text: string;
  readonly nodes: readonly string[];
  /** As `2026-03-01`. */
  readonly validFrom?: string;
  readonly validTo?: string;
}

export const SECTIONS = ['Decisions', 'Preferences', 'Values', 'Reported', 'Before'] as const;
export type SectionName = (typeof SECTIONS)[number];

export const MOST_PAGE_BYTES = 1_000_000;
/** A longer line is a person's. */
const LINE_CHARS = 4_000;
const TEXT_CHARS = 320;
const FENCE = '---';
const LINK = /^\[(mem_\d{8}_\d{6}_[0-9a-f]{6})\]\([^()\s]*\)$/;
const DATE = / \[valid_(from|to):: (\d{4}-\d\d-\d\d)\]$/;
const KEY = /^([a-z_]+):/;
const BOM = '\uFEFF';
const FLOW = { lineWidth: 0, collectionStyle: 'flow' } as const;

/** The page, or why the text is none: a page that a person is still writing is left alone. */
export function parsePage(text: string): Page | string {
  if (Buffer.byteLength(text) > MOST_PAGE_BYTES) return `is larger than ${MOST_PAGE_BYTES / 1_000_000} MB`;
  const lines = text.split(/(?<=\n)/);
  if (bare(lines[0]).replace(BOM, '') !== FENCE) return 'has no front matter';
  const end = lines.findIndex((line, at) => at > 0 && bare(line) === FENCE);
  if (end < 0) return 'has a front matter without an end';
  const front = lines.slice(0, end + 1);
  const read = PageHead.safeParse(getYaml(front.slice(1, -1).join('')));
  if (!read.success) return `has an unclear front matter: ${read.error.issues[0]?.path.join('.') || 'no keys'}`;
  return { head: read.data, front, lines: lines.slice(end + 1) };
}

export function newPage(head: PageHead): Page {
  return { head, front: [], lines: ['\n', `# ${neutralLine(head.title, 120)}\n`] };
}

/** What was parsed and not changed comes back byte for byte. */
export function renderPage({ head, front, lines }: Page): string {
  const eol = front[0]?.endsWith('\r\n') === true ? '\r\n' : '\n';
  const read = front.length === 0 ? null : PageHead.safeParse(getYaml(front.slice(1, -1).join('')));
  if (read?.success === true && JSON.stringify(read.data) === JSON.stringify(head))
    return [...front, ...lines].join('');
  const own = Object.entries(head).map(([key, value]) => `${key}: ${YAML.stringify(value, FLOW).trimEnd()}`);
  const kept = findOthers(front.slice(1, -1));
  const [first = FENCE + eol] = front;
  return [first, ...own.map((line) => line + eol), ...kept, front.at(-1) ?? FENCE + eol, ...lines].join('');
}

/** Front matter under keys that are not memory's. */
function findOthers(front: readonly string[]): string[] {
  let isOwn = false;
  return front.filter((line) => {
    const key = KEY.exec(line)?.[1];
    if (key !== undefined) isOwn = key in PageHead.shape;
    else if (!/^[\s-]/.test(line)) isOwn = false;
    return !isOwn;
  });
}

/** Null where it cannot be read. */
export function getYaml(text: string): unknown {
  try {
    return YAML.parse(text, { maxAliasCount: 0 });
  } catch {
    return null;
  }
}

/** Null for a person's line. */
export function parseStatement(line: string): PageStatement | null {
  const whole = line.trim();
  const at = whole.lastIndexOf(' ([mem_');
  if (at < 0 || whole.length > LINE_CHARS || !whole.endsWith(')') || !/^[-*+] /.test(whole)) return null;
  const links = whole.slice(at + 2, -1).split(', ');
  const nodes = links.flatMap((link) => LINK.exec(link)?.[1] ?? []);
  if (nodes.length < links.length) return null;
  let text = whole.slice(2, at);
  const dates: { validFrom?: string; validTo?: string } = {};
  for (let match = DATE.exec(text); match !== null; match = DATE.exec(text)) {
    text = text.slice(0, match.index);
    if (match[1] === 'to') dates.validTo = match[2] as string;
    else dates.validFrom = match[2] as string;
  }
  return { text, nodes, ...dates };
}

/** @param getLink  address of a node's file, relative to the page */
export function renderStatement(statement: PageStatement, getLink: (nodeId: string) => string): string {
  const { text, nodes, validFrom, validTo } = statement;
  const date = (name: string, day?: string): string => (day === undefined ? '' : ` [${name}:: ${day}]`);
  const dates = date('valid_from', validFrom) + date('valid_to', validTo);
  const links = nodes.map((id) => `[${id}](${getLink(id).replace(/[()\s]/g, encodeURIComponent)})`);
  return `- ${text}${dates} (${links.join(', ')})`;
}

/** One line that can be taken neither for a link nor for a date of memory's. */
export function statementText(text: string): string {
  return neutralLine(text, TEXT_CHARS)
    .replaceAll('](', '] (')
    .replaceAll('[valid_', '(valid_')
    .replaceAll('([mem_', '( [mem_');
}

export interface PageLine {
  /** Index in `lines`. */
  readonly at: number;
  /** Of the second level; '' before the first. */
  readonly section: string;
  readonly raw: string;
  /** Null for a person's line. */
  readonly statement: PageStatement | null;
}

/** Lines with text, without headings. Inside of code nothing is memory's. */
export function getLines({ lines }: Pick<Page, 'lines'>): PageLine[] {
  let section = '';
  let isCode = false;
  return lines.flatMap((raw, at): PageLine[] => {
    const line = raw.trim();
    if (/^(?:```|~~~)/.test(line)) isCode = !isCode;
    if (!isCode && line.startsWith('## ')) section = line.slice(3).trim();
    if (line === '' || (!isCode && /^#{1,6} /.test(line))) return [];
    return [{ at, section, raw, statement: isCode ? null : parseStatement(raw) }];
  });
}

/** Adds a line at the end of a section, which is made where it is missing. */
export function addLine(page: Page, section: SectionName, line: string): Page {
  const eol = page.front[0]?.endsWith('\r\n') === true ? '\r\n' : '\n';
  const lines = endLines(page.lines, eol);
  const heads = headings(lines);
  const own = heads.findIndex(({ name }) => name === section);
  if (own >= 0) {
    let at = heads[own + 1]?.at ?? lines.length;
    while (at > 0 && bare(lines[at - 1]) === '') at -= 1;
    const gap = bare(lines[at - 1]).startsWith('## ') ? [eol] : [];
    return { ...page, lines: lines.toSpliced(at, 0, ...gap, line + eol) };
  }
  const later: readonly string[] = SECTIONS.slice(SECTIONS.indexOf(section) + 1);
  const next = heads.find(({ name }) => later.includes(name));
  const block = [`## ${section}${eol}`, eol, line + eol];
  if (next !== undefined) return { ...page, lines: lines.toSpliced(next.at, 0, ...block, eol) };
  return { ...page, lines: [...lines, ...(bare(lines.at(-1)) === '' ? [] : [eol]), ...block] };
}

/** Replaces lines by index; null removes one, and with the last of a section the heading that memory made. */
export function replaceLines(page: Page, changes: ReadonlyMap<number, string | null>): Page {
  const eol = page.front[0]?.endsWith('\r\n') === true ? '\r\n' : '\n';
  const lines = page.lines.flatMap((raw, at) => {
    const line = changes.get(at);
    return line === undefined ? [raw] : line === null ? [] : [line + eol];
  });
  if (![...changes.values()].includes(null)) return { ...page, lines };
  const heads = headings(lines);
  const isEmpty = ({ at, name }: ReturnType<typeof headings>[number], nth: number): boolean =>
    SECTIONS.includes(name as SectionName) &&
    lines.slice(at + 1, heads[nth + 1]?.at ?? lines.length).every((line) => bare(line) === '');
  const empty = heads
    .filter(isEmpty)
    .map(({ at }) => [at, headings(lines.slice(at + 1))[0]?.at ?? lines.length - at - 1] as const);
  for (const [at, length] of empty.toReversed()) lines.splice(at, length + 1);
  return { ...page, lines };
}

function headings(lines: readonly string[]) {
  let isCode = false;
  return lines.flatMap((raw, at) => {
    const line = raw.trim();
    if (/^(?:```|~~~)/.test(line)) isCode = !isCode;
    return !isCode && line.startsWith('## ') ? [{ at, name: line.slice(3).trim() }] : [];
  });
}

/** The last line ends as the others do. */
function endLines(lines: readonly string[], eol: string): readonly string[] {
  const last = lines.at(-1);
  return last === undefined || last.endsWith('\n') ? lines : [...lines.slice(0, -1), last + eol];
}

const bare = (line = ''): string => line.replace(/\r?\n$/, '').trimEnd();

const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)$/;
const SLUG_CHARS = 60;

/** A name that is safe as a file everywhere, lower case, at most 180 bytes; '' where the text has no letter. */
export function toSlug(text: string): string {
  const slug = text
    .normalize('NFC')
    .toLowerCase()
    .slice(0, 400)
    .replace(/[^\p{L}\p{N}_]+/gu, '-')
    .slice(0, SLUG_CHARS)
    .replace(/^[-_]|[-_]?\p{Surrogate}$|[-_]$/gu, '');
  return DEVICE.test(slug) ? `${slug}-page` : slug;
}

type NodeTest = (nodeId: string, text: string) => boolean;

/** The page without links to nodes that are gone, and without statements that rest on nothing else; null where nothing is left. */
export function withoutNodes(page: Page, isGone: NodeTest, getLink: (nodeId: string) => string) {
  const changes = new Map<number, string | null>();
  const lines = getLines(page);
  for (const { at, statement } of lines) {
    const nodes = statement?.nodes.filter((id) => !isGone(id, statement.text)) ?? [];
    if (statement === null || nodes.length === statement.nodes.length) continue;
    changes.set(at, nodes.length === 0 ? null : renderStatement({ ...statement, nodes }, getLink));
  }
  const sources = page.head.sources.filter((id) => !isGone(id, ''));
  if (changes.size === 0 && sources.length === page.head.sources.length) return page;
  if (changes.size > 0 && lines.every(({ at }) => changes.get(at) === null)) return null;
  return { ...replaceLines(page, changes), head: { ...page.head, sources } };
}
