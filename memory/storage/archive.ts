import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { grouped } from '../../common/map.ts';
import { compareText } from '../../common/text.ts';
import { ORIGINS } from '../../common/turn.ts';
import {
  newDocument,
  parseBriefFile,
  parseDocument,
  parseSection,
  renderBriefFile,
  renderDocument,
  renderSection,
} from '../model/markdown.ts';
import { type Claim, isRedirect, type StoredBrief } from '../model/node.ts';
import { MemoryNode } from '../model/node-schema.ts';
import { parsePage, renderPage, withoutNodes } from '../model/page.ts';
import { parseTask } from '../model/task.ts';
import { withoutRevisionsBy } from '../text/validity.ts';
import { type FactLine, withoutFacts } from './fact-markdown.ts';

/** Everything that is remembered, but for raw turns. */
export interface Archive {
  readonly nodes: readonly MemoryNode[];
  readonly briefs: readonly StoredBrief[];
  /** Topic pages; absent where the archive is of a version, or a memory, without. */
  readonly pages?: readonly ArchivedPage[];
  /** Task files; never in a snapshot, which they are no part of. */
  readonly tasks?: readonly ArchivedPage[];
  /** Files of facts; absent as pages are. */
  readonly facts?: readonly ArchivedPage[];
}

export type ArchiveFormat = 'md' | 'jsonl';

const MARK = 'comet-cc-export';
const VERSION = 2;
const READ_VERSIONS = [1, VERSION];
/** No line of a session or brief begins with one `#`: in texts it is escaped, in lists it stands behind `- `. */
const TITLES = { nodes: '# Session', brief: '# Brief', pages: '# Page', tasks: '# Task', facts: '# Facts' } as const;
const Claims = z.array(z.object({ text: z.string(), sources: z.array(z.string()), origin: z.enum(ORIGINS) }));
const Brief = z.object({
  session_id: z.string().min(1),
  project: z.string(),
  updated_at: z.iso.datetime(),
  active: Claims,
  hints: Claims,
});
const getSchema = (name: RegExp) => z.object({ name: z.string().regex(name), text: z.string() });
/** Files beside nodes and briefs, in the order in which they are written. */
const FILES = {
  pages: getSchema(/^(?:topics\/(?:(?!\.\.?\/)[^/\\]+\/)*[^/\\]+\.md|\.pages\.json)$/),
  tasks: getSchema(/^(?:active|blocked|done\/\d{4}-\d\d)\/[^/\\]+\.md$/),
  facts: getSchema(/^[a-z0-9-]{1,100}\.md$/),
};
const KINDS = ['pages', 'tasks', 'facts'] as const;
export type ArchivedPage = z.infer<typeof FILES.pages>;
const Line = z.union([
  z.strictObject({ node: MemoryNode }),
  z.strictObject({ brief: Brief }),
  z.strictObject({ pages: z.array(FILES.pages) }),
  z.strictObject({ tasks: z.array(FILES.tasks) }),
  z.strictObject({ facts: z.array(FILES.facts) }),
]);

/** The same memory gives the same text, in whatever order it comes. */
export function renderArchive(archive: Archive, format: ArchiveFormat): string {
  if (format === 'jsonl') return [...archiveLines(archive)].join('');
  const [nodes, briefs] = [ordered(archive.nodes), ordered(archive.briefs)];
  const sessions = grouped(nodes, ({ project, session_id }) => JSON.stringify([project, session_id]));
  return [
    `<!-- ${MARK} ${VERSION} -->\n`,
    ...[...sessions.values()].map((own) => {
      const sections = own.map((node) => ({ id: node.node_id, raw: renderSection(node), line: 0 }));
      return `${TITLES.nodes}\n${renderDocument({ ...newDocument(own[0] as MemoryNode), sections })}`;
    }),
    ...briefs.map((brief) => `${TITLES.brief}\n${renderBriefFile(brief)}`),
    ...KINDS.flatMap((kind) =>
      // No line of a page can be taken for a title.
      (archive[kind] ?? []).map(({ name, text }) => `${TITLES[kind]}\n${`${name}\n${text}`.replace(/^/gm, '> ')}\n`),
    ),
  ].join('');
}

export const isArchive = (text: string): boolean => text.startsWith(`<!-- ${MARK} `) || text.startsWith(`{"${MARK}":`);

/** Reads either format back. @throws CometError `node_invalid`, naming line, key and what was expected */
export function parseArchive(text: string): Archive {
  if (READ_VERSIONS.some((version) => text.startsWith(`<!-- ${MARK} ${version} -->`))) return fromMarkdown(text);
  if (READ_VERSIONS.some((version) => text.startsWith(`{"${MARK}":${version}}`))) return fromLines(text);
  if (isArchive(text)) throw invalid(1, 'a newer comet-cc wrote this export; install that here too');
  throw invalid(1, `expected the first line of an export of comet-cc (<!-- ${MARK} … --> or {"${MARK}":…})`);
}

/** The text of `jsonl`, line by line: thousands of nodes are more than a thread that streams may do in one go. */
export function* archiveLines({ nodes, briefs, ...files }: Archive): Generator<string> {
  yield `${JSON.stringify({ [MARK]: VERSION })}\n`;
  for (const node of ordered(nodes)) yield `${JSON.stringify({ node: MemoryNode.parse(node) })}\n`;
  for (const brief of ordered(briefs)) yield `${JSON.stringify({ brief: Brief.parse(brief) })}\n`;
  for (const kind of KINDS) {
    const some = files[kind];
    // An empty list says that pages, or facts, were kept, and none were there.
    if (some !== undefined && (kind !== 'tasks' || some.length > 0)) yield `${JSON.stringify({ [kind]: some })}\n`;
  }
}

/** One line of `jsonl` without these nodes and turns, links to them and claims that rest on them; '' where none is left. */
export function scrubLine(line: string, removal: RemovedNodes): string {
  if (line === '') return '';
  const read = Line.or(z.looseObject({ [MARK]: z.number() })).parse(JSON.parse(line));
  const { node, brief, pages, tasks, facts } = read as Omit<Archive, 'nodes' | 'briefs'> & {
    readonly node?: MemoryNode;
    readonly brief?: StoredBrief;
  };
  if (node !== undefined) {
    if (removal.isGone(node) || (isRedirect(node) && removal.ids.has(node.superseded_by ?? ''))) return '';
    const kept = { ...withoutRevisionsBy(node, removal.ids), links: node.links.filter((id) => !removal.ids.has(id)) };
    return isDeepStrictEqual(kept, node) ? line : JSON.stringify({ node: kept });
  }
  if (pages !== undefined) return JSON.stringify({ pages: pages.flatMap((page) => withoutGone(page, removal.ids)) });
  if (tasks !== undefined) return JSON.stringify({ tasks: tasks.filter((task) => !isMadeOf(task, removal.ids)) });
  const isGone = ({ id, turn }: FactLine): boolean => removal.ids.has(id) || removal.turnIds.has(turn);
  if (facts !== undefined)
    return JSON.stringify({ facts: facts.map(({ name, text }) => ({ name, text: withoutFacts(text, isGone) })) });
  if (brief === undefined) return line;
  const stays = ({ sources }: Claim): boolean => !sources.some((turnId) => removal.turnIds.has(turnId));
  return JSON.stringify({ brief: { ...brief, active: brief.active.filter(stays), hints: brief.hints.filter(stays) } });
}

/** Without nodes that were removed together with their turns, and groups, which quote them. */
export function scrubbed(archive: Archive, isGone: (turnId: string) => boolean, isKept: (id: string) => boolean) {
  const gone = archive.nodes.filter(({ node_id, turns }) => !isKept(node_id) && turns.some(isGone));
  const named = gone.flatMap(({ node_id, parent_node_id }) => [node_id, parent_node_id ?? '']);
  const ids = new Set(named.filter((id) => !isKept(id)));
  const removal: RemovedNodes = { ids, turnIds: { has: isGone }, isGone: ({ node_id }) => ids.has(node_id) };
  return fromLines([...archiveLines(archive)].map((line) => scrubLine(line, removal).trimEnd()).join('\n'));
}

export interface RemovedNodes {
  readonly ids: ReadonlySet<string>;
  readonly turnIds: Pick<ReadonlySet<string>, 'has'>;
  isGone(node: MemoryNode): boolean;
}

function withoutGone({ name, text }: ArchivedPage, removedIds: ReadonlySet<string>): ArchivedPage[] {
  const page = parsePage(text);
  if (typeof page === 'string') return [{ name, text }];
  const isGone = (id: string): boolean => removedIds.has(id);
  const left = withoutNodes(page, isGone, () => '#');
  return left === null ? [] : [{ name, text: renderPage(left) }];
}

function isMadeOf({ name, text }: ArchivedPage, removedIds: ReadonlySet<string>): boolean {
  const task = parseTask(text, path.posix.basename(name, '.md'));
  return typeof task !== 'string' && task.sources.length > 0 && task.sources.every((id) => removedIds.has(id));
}

function fromLines(text: string): Archive {
  const nodes: MemoryNode[] = [];
  const briefs: StoredBrief[] = [];
  let files: Partial<Archive> = {};
  for (const [at, line] of text.split('\n').entries()) {
    if (at === 0 || line.trim() === '') continue;
    const read = Line.safeParse(json(line, at + 1));
    if (!read.success) throw invalid(at + 1, expectation(read.error));
    if ('node' in read.data) nodes.push(read.data.node);
    else if ('brief' in read.data) briefs.push(read.data.brief);
    else files = { ...files, ...read.data };
  }
  return { nodes, briefs, ...files };
}

function fromMarkdown(text: string): Archive {
  const lines = text.split('\n');
  const starts = lines.flatMap((line, at) => (Object.values(TITLES).includes(line.trimEnd() as never) ? [at] : []));
  const nodes: MemoryNode[] = [];
  const briefs: StoredBrief[] = [];
  const files: Partial<Record<(typeof KINDS)[number], ArchivedPage[]>> = {};
  for (const [nth, start] of starts.entries()) {
    const end = starts[nth + 1];
    const part = lines.slice(start + 1, end).join('\n') + (end === undefined ? '' : '\n');
    const title = lines[start]?.trimEnd();
    const kind = KINDS.find((each) => TITLES[each] === title);
    if (title === TITLES.nodes) nodes.push(...getNodes(part, start + 1));
    else if (kind === undefined) {
      const brief = parseBriefFile(part);
      if (typeof brief === 'string') throw invalid(start + 2, brief);
      briefs.push(brief);
    } else files[kind] = [...(files[kind] ?? []), getFile(FILES[kind], part, start + 2)];
  }
  return { nodes, briefs, ...files };
}

function getNodes(part: string, before: number): MemoryNode[] {
  const document = parseDocument(part);
  if (typeof document === 'string') throw invalid(before + 1, document);
  return document.sections.map(({ raw, line }) => {
    const parsed = parseSection(raw, document.head);
    if (parsed.kind === 'node') return parsed.node;
    throw invalid(before + line, parsed.message);
  });
}

function getFile(schema: typeof FILES.pages, part: string, line: number): ArchivedPage {
  const [name = '', ...rest] = part.replace(/\n$/, '').replace(/^> ?/gm, '').split('\n');
  const read = schema.safeParse({ name, text: rest.join('\n') });
  if (!read.success) throw invalid(line, expectation(read.error));
  return read.data;
}

function json(line: string, number: number): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    throw invalid(number, `expected one JSON document (${(error as Error).message})`);
  }
}

function expectation(error: z.ZodError): string {
  const [issue] = error.issues;
  const nested = issue?.code === 'invalid_union' ? issue.errors.flat().find(({ path }) => path.length > 1) : undefined;
  const { path, message } = nested ?? issue ?? { path: [], message: 'does not validate' };
  return `${path.join('.') || 'line'}: ${message}`;
}

const invalid = (line: number, expected: string): CometError =>
  new CometError('node_invalid', `line ${line}: ${expected}; nothing was taken over`);

function ordered<T extends { project: string; session_id: string; node_id?: string }>(items: readonly T[]): T[] {
  const getKey = ({ project, session_id, node_id = '' }: T) => JSON.stringify([project, session_id, node_id]);
  const keyed = items.map((item) => [getKey(item), item] as const);
  return keyed.sort(([a], [b]) => compareText(a, b)).map(([, item]) => item);
}
