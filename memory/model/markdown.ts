import YAML from 'yaml';
import { z } from 'zod';
import { isRecord, parseJson } from '../../common/text.ts';
import { ORIGINS } from '../../common/turn.ts';
import { copied, internNode, type StoredBrief } from './node.ts';
import { MemoryNode } from './node-schema.ts';

/** What all nodes of a file share. */
export interface FileHead {
  readonly session_id: string;
  readonly project: string;
}

export interface Section {
  /** From the heading; null where it names no node. */
  readonly id: string | null;
  /** As it stands in the file, heading and trailing newlines included. */
  readonly raw: string;
  /** Of the heading, counted from 1. */
  readonly line: number;
}

export interface NodeDocument {
  readonly head: FileHead;
  /** All before the first section, as it stands in the file. */
  readonly lead: string;
  /** Tails of the ids that the writer of this text could have seen; null in a file of an earlier version. */
  readonly seen: ReadonlySet<string> | null;
  readonly sections: readonly Section[];
}

export type ParsedSection =
  | { readonly kind: 'node'; readonly node: MemoryNode }
  | { readonly kind: 'problem'; readonly message: string };

const HEADING = /^## (mem_\d{8}_\d{6}_[0-9a-f]{6})(?:\s+(.*))?$/s;
const FIELD = /^- ([a-z_]+):(.*)$/s;
/** Texts that get a block of their own where they can be read back from one. */
const BLOCKS = {
  Outcome: 'outcome',
  Summary: 'summary',
  Trigger: 'trigger',
  Detail: 'detailed_summary',
  Capsule: 'capsule',
} as const;
/** Lists of statements: each is a line that ends in a comment with all but its text. */
const LISTS = { Decisions: ['decisions', 'text'], 'Open items': ['open', 'text'], Facts: ['facts', 'value'] } as const;
const VALUES = 'Values';
/** How to read the conversation, and the fields. */
const SOURCE = 'Source';
const FENCE = '```';
const LISTED = [
  'title title_origin outcome decisions open values kind was author status origin importance topic_tags recall_mode pinned_from pinned_in modality depth_level',
  'compaction_reason created_at valid_from valid_to superseded_by superseded_as released detailed_by detailed_origin',
  'parent_node_id links source_links turns',
].flatMap((line) => line.split(' ')) as (keyof MemoryNode)[];
/** Texts of several lines have a block of their own, but may stand among the fields too. */
const FIELDS: ReadonlySet<string> = new Set([...LISTED, ...Object.values(BLOCKS)]);
/** Left out where a node has these values: a reader fills them in. */
const DEFAULTS: Readonly<Record<string, string>> = {
  kind: '"turn"',
  status: '"current"',
  importance: '"MED"',
  topic_tags: '[]',
  recall_mode: '"active"',
  depth_level: '1',
  valid_to: 'null',
  superseded_by: 'null',
  parent_node_id: 'null',
  links: '[]',
  source_links: '[]',
  turns: '[]',
  detailed_summary: 'null',
  capsule: 'null',
};

export function newDocument(head: FileHead): NodeDocument {
  const { session_id, project } = head;
  return { head, lead: `${renderFrontMatter({ session_id, project })}\n`, seen: null, sections: [] };
}

export function renderDocument(document: NodeDocument): string {
  return [document.lead, ...document.sections.map(({ raw }) => raw)].join('');
}

export function parseDocument(text: string): NodeDocument | string {
  const front = parseFrontMatter(text);
  if (front === null) return 'front matter: expected it between two lines of ---';
  const { session_id, project } = front.values;
  if (typeof session_id !== 'string' || session_id === '') return 'session_id: expected a session id';
  if (typeof project !== 'string') return 'project: expected a text';
  return { head: { session_id, project }, seen: readSeen(front), ...splitSections(text) };
}

/** The end of a node id, which is its own within a session. */
export const idTail = (nodeId: string): string => nodeId.slice(-6);

function readSeen({ values }: FrontMatter): ReadonlySet<string> | null {
  return typeof values['seen'] === 'string' ? new Set(values['seen'].split(' ')) : null;
}

/** `lead` with these tails as its `seen`, which a copy of the file carries along; unchanged without a front matter. */
export function withSeen(lead: string, seen: ReadonlySet<string>): string {
  const lines = lead.split('\n');
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === '---');
  if (parseFrontMatter(lead) === null) return lead;
  const at = lines.findIndex((line, index) => index < end && line.startsWith('seen:'));
  const from = at === -1 ? end : at;
  // A formatter may have folded the value.
  const after = at === -1 ? end : lines.findIndex((line, index) => index > at && !/^\s/.test(line));
  const line = `seen: ${JSON.stringify([...seen].join(' '))}`;
  return [...lines.slice(0, from), line, ...lines.slice(after)].join('\n');
}

export function withoutSeen(lead: string, ids: ReadonlySet<string>): string {
  const front = parseFrontMatter(lead);
  const seen = front === null ? null : readSeen(front);
  const removedIds = new Set([...ids].map(idTail));
  if (seen === null || ![...seen].some((tail) => removedIds.has(tail))) return lead;
  return withSeen(lead, new Set([...seen].filter((tail) => !removedIds.has(tail))));
}

/** Cuts a text at its second-level headings, whatever stands before the first. */
export function splitSections(text: string): Pick<NodeDocument, 'lead' | 'sections'> {
  const lines = text.split('\n');
  const starts = lines.flatMap((line, at) => (line.startsWith('## ') ? [at] : []));
  const piece = (from: number, to: number | undefined): string => {
    const part = lines.slice(from, to).join('\n');
    return to === undefined ? part : `${part}\n`;
  };
  const sections = starts.map((start, at) => ({
    id: HEADING.exec((lines[start] as string).trimEnd())?.[1] ?? null,
    raw: piece(start, starts[at + 1]),
    line: start + 1,
  }));
  return { lead: piece(0, starts[0]), sections };
}

/** A section like a note: title or summary as heading, what the node says, then what memory keeps of it. */
export function renderSection(node: MemoryNode): string {
  const heading = node.title ?? node.summary;
  const inHeading = isOneLine(heading);
  const headed = inHeading ? (node.title === undefined ? 'summary' : 'title') : '';
  const fields: Record<string, unknown> = {};
  const blocks = new Map<string, string>();
  const put = (key: string, value: unknown): void => {
    if (value !== undefined && key !== headed && JSON.stringify(value) !== DEFAULTS[key]) fields[key] = value;
  };
  for (const [name, [key, shown]] of Object.entries(LISTS)) {
    const items: readonly object[] = node[key] ?? [];
    if (items.length > 0) blocks.set(name, items.map((item) => renderItem(item, shown)).join(''));
  }
  if (node.values !== undefined && node.values.length > 0)
    blocks.set(VALUES, node.values.map((value) => `- ${isBare(value) ? value : JSON.stringify(value)}\n`).join(''));
  for (const [name, key] of Object.entries(BLOCKS)) {
    const text = node[key];
    if (key !== headed && typeof text === 'string' && isPlainText(text)) blocks.set(name, `${escapeHeadings(text)}\n`);
  }
  const inBlocks = new Set<string | undefined>([...blocks.keys()].map(getKey));
  for (const key of FIELDS) if (!inBlocks.has(key)) put(key, node[key as keyof MemoryNode]);
  const texts = ORDER.flatMap((name) => (blocks.has(name) ? [`### ${name}\n\n${blocks.get(name)}`] : []));
  const source = `### ${SOURCE}\n\n${READ}${idTail(node.node_id)} --conversation\`\n\n${FENCE}yaml\n${renderYaml(fields)}${FENCE}\n`;
  return `${[`## ${node.node_id}${inHeading ? ` ${heading}` : ''}\n`, ...texts, source].join('\n')}\n`;
}

/** Sections as they are written; they are read in any order. */
const ORDER = ['Outcome', 'Decisions', 'Open items', VALUES, 'Summary', 'Trigger', 'Detail', 'Capsule', 'Facts'];
const KEYS: Readonly<Record<string, keyof MemoryNode>> = {
  ...BLOCKS,
  ...Object.fromEntries(Object.entries(LISTS).map(([name, [key]]) => [name, key])),
  [VALUES]: 'values',
};

const getKey = (name: string): keyof MemoryNode | undefined => (Object.hasOwn(KEYS, name) ? KEYS[name] : undefined);

const READ = '`comet-cc memory show ';

const [OPENING, CLOSING] = [' <!-- ', ' -->'];

/** "- the port is 5433 <!-- {…} -->", or all of it as JSON where its text cannot stand in a line. */
function renderItem(item: object, shown: string): string {
  const { [shown]: text, ...rest } = item as Readonly<Record<string, unknown>>;
  const kept = JSON.stringify(rest);
  const isReadable = typeof text === 'string' && isOneLine(text) && !/<!--|-->/.test(text + kept);
  return isReadable ? `- ${text}${OPENING}${kept}${CLOSING}\n` : `- ${JSON.stringify(item)}\n`;
}

/** A line that somebody typed is no more trusted than its memory. */
function parseItem(line: string, shown: string, typed: Readonly<Record<string, unknown>>): unknown {
  if (!line.startsWith('- ')) return line;
  const text = line.slice(2).trim();
  const at = text.lastIndexOf(OPENING);
  const rest = at > 0 && text.endsWith(CLOSING) ? parseJson(text.slice(at + OPENING.length, -CLOSING.length)) : null;
  if (isRecord(rest)) return { ...rest, [shown]: text.slice(0, at) };
  const value = readValue(text);
  return typeof value === 'string' && shown === 'text' ? { ...typed, text: value } : value;
}

/** Reads one section in the form of this schema, of schema 2 (the fields came first), or of schema 1. */
export function parseSection(raw: string, head: FileHead): ParsedSection {
  const lines = raw.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  const [, id, heading] = HEADING.exec((lines[0] ?? '').trimEnd()) ?? [];
  if (id === undefined) return problem('heading', 'expected `## mem_YYYYMMDD_HHMMSS_xxxxxx title`');
  const starts = lines.flatMap((line, at) => (at > 0 && line.startsWith('### ') ? [at] : []));
  const sections = starts.map((start, at) => ({
    name: (lines[start] as string).slice(4).trim(),
    body: lines.slice(start + 1, starts[at + 1]),
  }));
  const source = sections.find(({ name }) => name === SOURCE)?.body.filter((line) => !line.startsWith(READ));
  const fields = parseFields(source ?? lines.slice(1, starts[0]));
  if (typeof fields === 'string') return problem(id, fields);
  const values: Record<string, unknown> = { facts: [], ...fields, ...head, node_id: id };
  for (const { name, body } of sections) {
    const key = getKey(name);
    if (key !== undefined) values[key] = parseBlock(name, body, values['origin']);
    else if (name !== SOURCE) return problem(id, `### ${name}: expected ### ${[...ORDER, SOURCE].join(', ### ')}`);
  }
  if (heading !== undefined) values['summary' in values && source !== undefined ? 'title' : 'summary'] = heading.trim();
  const result = MemoryNode.safeParse(values);
  if (result.success) return { kind: 'node', node: internNode(result.data) };
  const [issue] = result.error.issues;
  return problem(`${id}: ${issue?.path.join('.')}`, issue?.message ?? 'does not validate');
}

/** @returns what stands between heading and texts, or what is wrong with it */
function parseFields(lines: readonly string[]): Record<string, unknown> | string {
  const start = lines.findIndex((line) => line.trim() !== '');
  if (start === -1) return {};
  if (lines[start]?.trimEnd() !== `${FENCE}yaml`) return parseSchema1Fields(lines.slice(start));
  const end = lines.findIndex((line, at) => at > start && line.trimEnd() === FENCE);
  const after = end === -1 ? undefined : lines.slice(end + 1).find((line) => line.trim() !== '');
  if (end === -1) return `expected ${FENCE} after the fields`;
  if (after !== undefined) return `expected ### after the fields, found \`${after.slice(0, 60)}\``;
  const fields = parseYaml(lines.slice(start + 1, end).join('\n'));
  const unknown = typeof fields === 'string' ? undefined : Object.keys(fields).find((key) => !FIELDS.has(key));
  return unknown === undefined ? fields : `${unknown}: unknown field; expected one of ${[...FIELDS].join(', ')}`;
}

/** Whether its fields are a list, as in schema 1. */
export function isSchema1Section(raw: string): boolean {
  const [, first = ''] = raw.split('\n').filter((line) => line.trim() !== '');
  return FIELD.test(first);
}

/** Schema 1 had a list of `- key: value` lines. */
function parseSchema1Fields(lines: readonly string[]): Record<string, unknown> | string {
  const values: Record<string, unknown> = {};
  for (const line of lines) {
    if (line.trim() === '') continue;
    const [, key, value] = FIELD.exec(line) ?? [];
    if (key === undefined) return `expected ${FENCE}yaml and \`key: value\` lines, found \`${line.slice(0, 60)}\``;
    values[key] = readValue(value ?? '');
  }
  return values;
}

/** A value that is written as it is, a figure too. */
const isBare = (value: string): boolean => isOneLine(value) && !value.startsWith('"');

function parseBlock(name: string, body: readonly string[], origin: unknown): unknown {
  const lines = body.filter((line) => line.trim() !== '');
  if (name === VALUES) {
    const values = lines.map((line) => line.replace(/^- /, '').trim());
    return values.map((value) => (isBare(value) ? value : (parseJson(value) ?? value)));
  }
  const [key, shown] = Object.entries(LISTS).find(([each]) => each === name)?.[1] ?? [];
  if (shown === undefined) return unescapeHeadings(body.join('\n').trim());
  const typed = { origin, turn: '', ...(key === 'decisions' ? { by: origin === 'user' ? 'user' : 'assistant' } : {}) };
  return lines.map((line) => parseItem(line, shown, typed));
}

const problem = (key: string, expected: string): ParsedSection => ({ kind: 'problem', message: `${key}: ${expected}` });

/** Few values are JSON, and having the parser fail costs a hundred times this. */
const MAY_BE_JSON = /^(?:["{[]|(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)$)/i;

export function readValue(text: string): unknown {
  const trimmed = text.trim();
  const value = MAY_BE_JSON.test(trimmed) ? parseJson(trimmed) : undefined;
  return value === undefined ? trimmed : value;
}

/** Whether `text` can stand as lines of their own and be read back by trimming. */
export function isPlainText(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text !== '' && text === text.trim() && !/[\0-\x08\x0b-\x1f\x7f]|\p{Surrogate}/u.test(text);
}

export const isOneLine = (text: string): boolean => isPlainText(text) && !text.includes('\n');

/** Lines that would read as headings get a backslash; those that had one already get one more. */
export const escapeHeadings = (text: string): string =>
  changeLines(text, (line) => (/^\\*#/.test(line) ? `\\${line}` : line));

export const unescapeHeadings = (text: string): string =>
  changeLines(text, (line) => (/^\\+#/.test(line) ? line.slice(1) : line));

function changeLines(text: string, change: (line: string) => string): string {
  return text.split('\n').map(change).join('\n');
}

export interface FrontMatter {
  readonly values: Readonly<Record<string, unknown>>;
  /** All after the closing mark. */
  readonly rest: string;
}

/** Of the files that this version writes; schema 1 had no such key, and its values were no YAML. */
const FILE_SCHEMA = 2;

export function renderFrontMatter(values: Readonly<Record<string, unknown>>): string {
  return `---\n${renderYaml({ schema: FILE_SCHEMA, ...values })}---\n`;
}

/** Null where `text` does not begin with a closed front matter, or it cannot be read. */
export function parseFrontMatter(text: string): FrontMatter | null {
  const parts = splitFrontMatter(text);
  if (parts === null) return null;
  const { lines, rest } = parts;
  if (!lines.some((line) => /^schema:/.test(line))) return { values: schema1Values(lines), rest };
  const values = parseYaml(lines.join('\n'));
  return typeof values === 'string' ? null : { values, rest };
}

/** Lines without trailing spaces between two of `---` at the start of `text`, and all after them; null without these. */
export function splitFrontMatter(text: string): { readonly lines: readonly string[]; readonly rest: string } | null {
  const lines = text.split('\n').map((line, at) => (at === 0 ? line.replace(/^\ufeff/, '') : line));
  const bare = (line: string | undefined): string => (line ?? '').trimEnd();
  if (bare(lines[0]) !== '---') return null;
  const end = lines.findIndex((line, at) => at > 0 && bare(line) === '---');
  return end === -1 ? null : { lines: lines.slice(1, end).map(bare), rest: lines.slice(end + 1).join('\n') };
}

function schema1Values(lines: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon > 0) values[line.slice(0, colon).trim()] = readValue(line.slice(colon + 1));
  }
  return values;
}

/** Strings that YAML reads as themselves without quotes. */
const PLAIN = /^[A-Za-z/_][\w./-]*(?::[\w./-]+)*$|^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** One line a key; values other than plain strings as JSON, which YAML contains. */
export function renderYaml(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}: ${renderYamlValue(value)}\n`)
    .join('');
}

function renderYamlValue(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value) && !RESERVED.test(value)) return value;
  return JSON.stringify(value).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** @returns the mapping, or what is wrong with it */
export const parseYaml = (text: string): Record<string, unknown> | string => parsePlainYaml(text) ?? parseAnyYaml(text);

/** The lines that `renderYaml` writes: a full parser takes 20 times as long for each of thousands of nodes. */
function parsePlainYaml(text: string): Record<string, unknown> | null {
  const values: Record<string, unknown> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const [, key, value = ''] = /^([a-z_]+): (\S.*)$/.exec(line) ?? [];
    if (key === undefined || key in values) return null;
    values[key] = PLAIN.test(value) && !RESERVED.test(value) ? value : parseJson(value);
    // Written by hand, in some other form of YAML.
    if (values[key] === undefined) return null;
  }
  return values;
}

function parseAnyYaml(text: string): Record<string, unknown> | string {
  try {
    // Naming the line of each error takes time that grows with the square of the length.
    const value: unknown = YAML.parse(text, { schema: 'core', prettyErrors: text.length < 10_000 });
    if (value === null || value === undefined) return {};
    return isRecord(value) ? value : 'expected `key: value` lines';
  } catch (error) {
    return (error as Error).message.split('\n', 1)[0] ?? 'not YAML';
  }
}

type StoredClaim = StoredBrief['active'][number];

const TITLES = { active: '## Active Work Context', hints: '## Hints' } as const;
const Head = z.looseObject({ session_id: z.string().min(1), project: z.string(), updated_at: z.iso.datetime() });
const Basis = z.object({ origin: z.enum(ORIGINS), sources: z.array(z.string()) });
/** A line without its basis was typed by the owner of the file. */
const TYPED: z.infer<typeof Basis> = { origin: 'user', sources: [] };

export function renderBriefFile(brief: StoredBrief): string {
  const { session_id, project, updated_at } = brief;
  const list = (claims: readonly StoredClaim[]): string => claims.map(renderClaim).join('');
  return [
    renderFrontMatter({ session_id, project, updated_at }),
    `${TITLES.active}\n`,
    list(brief.active),
    `${TITLES.hints}\n`,
    list(brief.hints),
  ].join('\n');
}

export function parseBriefFile(text: string): StoredBrief | string {
  const front = parseFrontMatter(text);
  if (front === null) return 'front matter: expected it between two lines of ---';
  const head = Head.safeParse(front.values);
  if (!head.success) {
    const [issue] = head.error.issues;
    return `${issue?.path.join('.')}: ${issue?.message}`;
  }
  const claims: Record<keyof typeof TITLES, StoredClaim[]> = { active: [], hints: [] };
  let into: StoredClaim[] | null = null;
  for (const line of front.rest.split('\n')) {
    const titled = (Object.keys(TITLES) as (keyof typeof TITLES)[]).find((key) => line.trimEnd() === TITLES[key]);
    if (titled !== undefined) into = claims[titled];
    else if (into !== null && line.startsWith('- ')) into.push({ text: String(readValue(line.slice(2))), ...TYPED });
    else if (into !== null && line.startsWith('  ')) takeBasis(into, line);
  }
  const { session_id, project, updated_at } = head.data;
  return copied({ session_id, project, updated_at, ...claims });
}

/** The text as it is where it reads back the same, else as JSON. */
function renderClaim({ text, origin, sources }: StoredClaim): string {
  const shown = isOneLine(text) && readValue(text) === text ? text : JSON.stringify(text);
  return `- ${shown}\n  ${JSON.stringify({ origin, sources })}\n`;
}

function takeBasis(claims: StoredClaim[], line: string): void {
  const last = claims.pop();
  if (last === undefined) return;
  const basis = Basis.safeParse(readValue(line));
  // What does not read as a basis is the line's own continuation.
  claims.push(basis.success ? { ...last, ...basis.data } : { ...last, text: `${last.text} ${line.trim()}` });
}
