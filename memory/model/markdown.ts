import {
  escapeHeadings,
  isOneLine,
  isPlainText,
  parseFrontMatter,
  parseYaml,
  readValue,
  renderFrontMatter,
  renderYaml,
  unescapeHeadings,
} from './front-matter.ts';
import { internNode } from './intern-node.ts';
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
  readonly sections: readonly Section[];
}

export type ParsedSection =
  | { readonly kind: 'node'; readonly node: MemoryNode }
  | { readonly kind: 'problem'; readonly message: string };

const HEADING = /^## (mem_\d{8}_\d{6}_[0-9a-f]{6})(?:\s+(.*))?$/s;
const FIELD = /^- ([a-z_]+):(.*)$/s;
/** Texts that get a block of their own where they can be read back from one. */
const BLOCKS = { Summary: 'summary', Trigger: 'trigger', Detail: 'detailed_summary', Capsule: 'capsule' } as const;
const FENCE = '```';
/** Fields in the order in which they are written. */
const LISTED = [
  'title outcome decisions open values kind was author status origin importance topic_tags recall_mode pinned_from pinned_in modality depth_level',
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
  return { head, lead: `${renderFrontMatter({ session_id, project })}\n`, sections: [] };
}

export function renderDocument(document: NodeDocument): string {
  return [document.lead, ...document.sections.map(({ raw }) => raw)].join('');
}

/** @returns the document, or what is wrong with its front matter */
export function parseDocument(text: string): NodeDocument | string {
  const front = parseFrontMatter(text);
  if (front === null) return 'front matter: expected it between two lines of ---';
  const { session_id, project } = front.values;
  if (typeof session_id !== 'string' || session_id === '') return 'session_id: expected a session id';
  if (typeof project !== 'string') return 'project: expected a text';
  return { head: { session_id, project }, ...splitSections(text) };
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

export function renderSection(node: MemoryNode): string {
  const inHeading = isOneLine(node.summary);
  const fields: Record<string, unknown> = {};
  const blocks: string[] = [];
  const put = (key: string, value: unknown): void => {
    if (value !== undefined && JSON.stringify(value) !== DEFAULTS[key]) fields[key] = value;
  };
  for (const key of LISTED) put(key, node[key]);
  for (const [title, key] of Object.entries(BLOCKS)) {
    const text = node[key as (typeof BLOCKS)[keyof typeof BLOCKS]];
    if (key === 'summary' && inHeading) continue;
    if (text !== null && isPlainText(text)) blocks.push(`### ${title}\n\n${escapeHeadings(text)}\n`);
    else put(key, text);
  }
  if (node.facts.length > 0) {
    blocks.push(`### Facts\n\n${node.facts.map((fact) => `- ${JSON.stringify(fact)}\n`).join('')}`);
  }
  const heading = inHeading ? `## ${node.node_id} ${node.summary}` : `## ${node.node_id}`;
  const front = `${FENCE}yaml\n${renderYaml(fields)}${FENCE}\n`;
  return `${[`${heading}\n`, front, ...blocks].join('\n')}\n`;
}

/** Reads one section in the form of this schema or of schema 1. */
export function parseSection(raw: string, head: FileHead): ParsedSection {
  const lines = raw.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  const [, id, summary] = HEADING.exec((lines[0] ?? '').trimEnd()) ?? [];
  if (id === undefined) return problem('heading', 'expected `## mem_YYYYMMDD_HHMMSS_xxxxxx summary`');
  const titles = lines.flatMap((line, at) => (at > 0 && line.startsWith('### ') ? [at] : []));
  const fields = parseFields(lines.slice(1, titles[0]));
  if (typeof fields === 'string') return problem(id, fields);
  const values: Record<string, unknown> = { facts: [], ...fields, ...head, node_id: id };
  if (summary !== undefined) values['summary'] = summary.trim();
  for (const [at, start] of titles.entries()) {
    const title = (lines[start] as string).slice(4).trim();
    const body = lines.slice(start + 1, titles[at + 1]).join('\n');
    const key = Object.entries(BLOCKS).find(([name]) => name === title)?.[1];
    if (key !== undefined) values[key] = unescapeHeadings(body.trim());
    else if (title === 'Facts') values['facts'] = parseFacts(body);
    else return problem(id, `### ${title}: expected ### ${[...Object.keys(BLOCKS), 'Facts'].join(', ### ')}`);
  }
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

function parseFacts(body: string): unknown[] {
  const lines = body.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => (line.startsWith('- ') ? readValue(line.slice(2)) : line));
}

function problem(key: string, expected: string): ParsedSection {
  return { kind: 'problem', message: `${key}: ${expected}` };
}
