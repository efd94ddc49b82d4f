import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import { ago, type EngineClient, type OperationInput, type Paint } from '../../../engine/api/index.ts';
import type { PublicNode } from '../../../memory/index.ts';
import { contentTags, isClosed, terseMeta } from '../../../memory/recall/index.ts';
import { addCommand, type CommandFlags, type Context, printOrigin } from '../../context.ts';
import { counted, parseCount, parseSince, shortId } from '../../terminal/format.ts';
import { type Column, table, truncate } from '../../terminal/table.ts';
import type { Look } from '../../terminal/term.ts';
import { saveRows } from './ids.ts';

type Flags = CommandFlags<
  'all' | 'long' | 'quarantine',
  'session' | 'project' | 'tag' | 'importance' | 'since' | 'limit'
>;

const DEFAULT_LIMIT = 50;
/** Below this what is said of a memory stands in a line of its own, and the title keeps its room. */
const NOTES_FROM_WIDTH = 80;
const NARROWEST = 24;
const PROJECT_WIDTH = 24;
const PROJECT: Column<PublicNode> = {
  title: 'PROJECT',
  cell: ({ project }) => truncate(projectName(project), PROJECT_WIDTH),
};
const plain: Paint = (_, text) => text;

export function registerMemoryLs(memory: Command, context: Context): void {
  const description = 'list the memories of the current project, newest first';
  addCommand(memory, 'ls', description, 'comet-cc memory ls\ncomet-cc memory ls --all --since 7d')
    .option('--all', 'of every project; with --json or --long also memories of single tool calls')
    .option('--project <dir>', 'of this project')
    .option('--session <id>', 'only this session; unambiguous prefix of its id')
    .option('--tag <t>', 'only with this tag')
    .option('--importance <i>', 'HIGH, MED or LOW only')
    .option('--since <d>', '30m, 12h, 7d, 2w or a date')
    .option('--quarantine', 'only quarantined memories; release one with: memory edit ID --set released=true')
    .option('--limit <n>', `number of memories (default ${DEFAULT_LIMIT}; no limit with --json)`)
    .option('--long', 'full ids, codes, tags and summaries')
    .option('--json', 'print one JSON array, by default of every project')
    .action(async (flags: Flags) => {
      const { term, engine: client } = context;
      const listed = await readList(client, flags);
      if (flags.json) return term.json(listed.nodes);
      const { nodes, filter, isAll } = listed;
      if (listed.note !== '') term.say(listed.note);
      if (nodes.length === 0) return term.say(nothing(filter));
      await saveRows(context, 'memory', nodes);
      const look = { width: term.width, nowMs: Date.now(), paint: term.paint };
      await term.page(flags.long ? longLines(nodes, look) : listLines(nodes, { ...look, projects: isAll }));
      if (nodes.length === filter.limit) term.say(`the newest ${filter.limit}; more with --limit`);
      await printOrigin(context, nodes);
    });
}

/** For a person the current project, or where that has no memory, every one (`isAll`). */
async function readList(client: EngineClient, flags: Flags) {
  const filter = parseFilter(flags, Date.now());
  const isNarrow = flags.all || flags.json || flags.quarantine || (flags.project ?? flags.session) !== undefined;
  if (isNarrow) return { nodes: await client.call('nodes/list', filter), filter, isAll: flags.all ?? false, note: '' };
  const here = { ...filter, projectDir: process.cwd() };
  const own = await client.call('nodes/list', here);
  if (own.length > 0 || (await client.call('nodes/list', { projectDir: process.cwd(), limit: 1 })).length > 0)
    return { nodes: own, filter: here, isAll: false, note: '' };
  const nodes = await client.call('nodes/list', filter);
  const note = 'nothing is remembered of this folder (was it moved? comet-cc project join --from OLD-FOLDER); all:';
  return { nodes, filter, isAll: true, note: nodes.length === 0 ? '' : note };
}

function nothing({ limit: _, all: __, projectDir, ...asked }: OperationInput<'nodes/list'>): string {
  if (Object.keys(asked).length > 0) return 'no matching memory';
  return projectDir === undefined ? 'nothing is remembered yet' : 'nothing is remembered there; --all: every project';
}

/** @throws CometError `usage` */
export function parseFilter(flags: Flags, nowMs: number): OperationInput<'nodes/list'> {
  const limit = flags.limit === undefined ? undefined : parseCount(flags.limit, '--limit');
  return {
    ...(flags.session === undefined ? {} : { sessionId: flags.session }),
    ...(flags.project === undefined ? {} : { projectDir: resolveDirectory(flags.project) }),
    ...(flags.tag === undefined ? {} : { tag: flags.tag }),
    ...(flags.importance === undefined ? {} : { importance: parseImportance(flags.importance) }),
    ...(flags.since === undefined ? {} : { sinceMs: parseSince(flags.since, nowMs) }),
    ...(flags.all && (flags.json || flags.long) ? { all: true } : {}),
    ...(flags.quarantine ? { quarantine: true } : {}),
    ...(flags.json && limit === undefined ? {} : { limit: limit ?? DEFAULT_LIMIT }),
  };
}

/** A table as wide as the terminal: row, short id, age, title and what is to be known of it. */
export function listLines(
  nodes: readonly PublicNode[],
  {
    width,
    nowMs,
    paint = plain,
    projects = false,
  }: Omit<Look, 'paint'> & Partial<Pick<Look, 'paint'>> & { readonly projects?: boolean },
): string[] {
  const dim = (text: string): string => paint('dim', text);
  const getNotes = (node: PublicNode): string => badges(node).join(', ');
  const yellow = (text: string): string => paint('yellow', text);
  const isWide = width >= NOTES_FROM_WIDTH;
  const project = { ...PROJECT, paint: (text: string) => paint('cyan', text) };
  const hasNotes = isWide && nodes.some((node) => getNotes(node) !== '');
  const [heading = '', ...lines] = table(nodes, Math.max(width, NARROWEST), [
    { title: '#', cell: (_, row) => String(row + 1), right: true, paint: dim },
    { title: 'ID', cell: (node) => shortId(node.node_id), paint: dim },
    { title: 'AGE', cell: (node) => ago(Date.parse(node.created_at), nowMs).replace(' ago', '') },
    ...(projects && isWide ? [project] : []),
    {
      title: 'TITLE',
      cell: (node) => oneLine(node.title),
      stretch: true,
      paint: (text, node) => (node.importance === 'HIGH' ? paint('bold', text) : text),
    },
    ...(hasNotes ? [{ title: '', cell: getNotes, paint: yellow }] : []),
  ]);
  const below = nodes.map((node) => {
    const parts = [...(projects ? [projectName(node.project)] : []), getNotes(node)];
    return isWide ? '' : parts.filter((part) => part !== '').join(', ');
  });
  const indent = lines.length === 0 ? '' : ' '.repeat(String(nodes.length).length + 2);
  return [
    dim(heading),
    ...lines.flatMap((line, row) =>
      below[row] === '' ? [line] : [line, yellow(indent + truncate(below[row] as string, width - indent.length))],
    ),
  ];
}

export function badges({ open = [], decisions = [], facts, origin, pinned_from, status, teammate }: PublicNode) {
  return [
    ...(open.every(({ closed }) => closed) ? [] : [counted(open.filter(({ closed }) => !closed).length, 'to-do')]),
    ...(decisions.every(({ closed }) => closed) ? [] : ['decision']),
    ...(pinned_from === undefined ? [] : ['pinned']),
    ...(teammate ? [`from ${oneLine(teammate)}`] : origin === 'external' ? ['from outside'] : []),
    ...(status === 'quarantined' ? ['quarantined'] : status === 'superseded' ? ['replaced'] : []),
    ...(status !== 'superseded' && facts.some(isClosed) ? ['replaced in part'] : []),
  ];
}

export function projectName(project: string): string {
  return oneLine(project.split(/[\\/]/).findLast((part) => part !== '') ?? '') || '(none)';
}

function longLines(nodes: readonly PublicNode[], { width, nowMs, paint = plain }: Look): string[] {
  const dim = (text: string): string => paint('dim', text);
  const [heading = '', ...lines] = table(nodes, width, [
    { title: 'ID', cell: (node) => node.node_id, paint: dim },
    { title: 'AGE', cell: (node) => ago(Date.parse(node.created_at), nowMs) },
    { title: 'KIND', cell: (node) => terseMeta(node), paint: dim },
    PROJECT,
    { title: 'TAGS', cell: (node) => oneLine(contentTags(node.topic_tags).slice(0, 3).join(',')) },
    { title: 'SUMMARY', cell: (node) => oneLine(node.summary), stretch: true },
  ]);
  return [dim(heading), ...lines];
}

function parseImportance(text: string): 'HIGH' | 'MED' | 'LOW' {
  const level = text.toUpperCase();
  if (level === 'HIGH' || level === 'MED' || level === 'LOW') return level;
  throw new CometError('usage', `--importance is HIGH, MED or LOW (got "${text}")`);
}
