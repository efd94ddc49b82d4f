import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { type HomePaths, resolveDirectory } from '../../../common/paths.ts';
import { localDay, oneLine, printable } from '../../../common/text.ts';
import { ago, type Costs, factText, type Paint, savedLine } from '../../../engine/api/index.ts';
import type { MemoryStats, ProjectView } from '../../../memory/index.ts';
import { addCommand, type CommandFlags, type Context } from '../../context.ts';
import { count, counted as plural, SPEAKERS, shortId, WRITERS, withoutCodes } from '../../terminal/format.ts';
import { truncate, wrapped } from '../../terminal/table.ts';
import type { Look } from '../../terminal/term.ts';
import { bullet } from './around.ts';

export function registerMemoryAbout(memory: Command, context: Context): void {
  const description = 'show a project: open tasks, last brief, decisions, largest memories, files, names, statements';
  addCommand(memory, 'about', description, 'comet-cc memory about --project ~/code/shop')
    .option('--project <dir>', 'project to show', '.')
    .jsonAction('document', async (flags: { project: string; json?: boolean }) => {
      const view = await context.engine.call('project/overview', { projectDir: resolveDirectory(flags.project) });
      const { paint, width, print, say } = context.term;
      const isEmpty = view.counts.turns + view.counts.nodes === 0;
      if (isEmpty && !flags.json) return say(`no memories of ${oneLine(view.project)} yet`);
      print(flags, view, () => aboutLines(view, { paint, width, nowMs: Date.now() }));
    });
}

/** Of one memory, fact or task. */
const ROWS = 3;

export function aboutLines(view: ProjectView, { paint, width, nowMs }: Look): string[] {
  const { sessions, turns, nodes, facts } = view.counts;
  const age = (at: string): string => ago(Date.parse(at), nowMs);
  const { since, until } = view;
  const span = since === null || until === null ? '' : `, from ${localDay(since)} to ${age(until)}`;
  const cut = (text: string): string => truncate(text, width);
  const counted = (name: string, all: readonly { readonly name: string; readonly nodes: number }[]): string[] => {
    const list = all.map((each) => `${oneLine(each.name)} ${each.nodes}`).join(', ');
    return list === '' ? [] : [`${paint('dim', name.padEnd(6))} ${truncate(list, width - 7)}`];
  };
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', paint('dim', cut(title)), ...lines];
  const listed = (text: string): string[] => bullet(text, width);
  const memory = ({ node_id, at, importance, summary }: ProjectView['nodes'][number]): string[] => {
    const head = `${shortId(node_id)}  ${age(at)}${importance === 'HIGH' ? '  important' : ''}`;
    return [paint('dim', cut(head)), ...wrapped(oneLine(summary), width - 2, ROWS).map((line) => `  ${line}`)];
  };
  const of = (shown: readonly unknown[], all: number): string =>
    shown.length < all ? `${shown.length} of ${count(all)}` : count(all);
  const decided = new Set(view.decisions.map(({ node_id }) => node_id));
  const others = view.nodes.filter(({ node_id }) => !decided.has(node_id));
  const kind = decided.size > 0 ? 'Other memories' : 'Memories';
  const tags = view.tags.map(({ tag, nodes: used }) => ({ name: tag, nodes: used }));
  const { text = '', session_id: session = '', updated_at: at = '' } = view.brief ?? {};
  const lines = withoutCodes(printable(text)).split('\n');
  const brief = lines.filter((line) => line.trim() !== '');
  const held = `${plural(nodes, 'memory', 'memories')}, ${plural(facts, 'statement')}`;
  const stated = view.facts.map((fact) => `${factText(fact)} (from ${SPEAKERS[fact.origin]})`);
  return [
    paint('bold', cut(oneLine(view.project))),
    cut(`${plural(sessions, 'session')}, ${plural(turns, 'turn')}, ${held}${span}`),
    ...counted('tags', tags),
    ...counted('names', view.names),
    ...counted('files', view.files.map(fileEntry)),
    ...section('Left to do', view.tasks.map(oneLine).flatMap(listed)),
    ...section(`Brief of session ${oneLine(session)}, ${at && age(at)}`, brief.map(cut)),
    ...section(`Decided, the newest first (${view.decisions.length})`, view.decisions.flatMap(memory)),
    ...section(`${kind}, the largest first (${of(others, nodes - decided.size)})`, others.flatMap(memory)),
    ...section(`Statements, the newest first (${of(view.facts, facts)})`, stated.flatMap(listed)),
  ];
}

function fileEntry({ path: file, nodes, state }: ProjectView['files'][number]): { name: string; nodes: number } {
  const note = { changed: ' (changed since)', deleted: ' (deleted)', as_remembered: '', unknown: '' }[state];
  return { name: `${file}${note}`, nodes };
}

export type Stats = MemoryStats & Pick<Costs, 'savings'> & { readonly bytes: Readonly<Record<string, number>> };

export function registerMemoryStats(memory: Command, context: Context): void {
  const description = 'count memories by kind and their size on disk';
  const command = addCommand(memory, 'stats', description, 'comet-cc memory stats --json');
  command.jsonAction('document', async (flags: CommandFlags) => {
    const stats = { ...(await context.engine.call('memory/stats', {})), bytes: await getBytes(context.paths) };
    context.term.print(flags, stats, () => statsLines(stats, context.term.paint));
  });
}

const RECALLED = { active: 'when they fit', passive: 'at the start', both: 'both' } as const;

const DROPPED: Readonly<Record<string, string>> = {
  malformed: 'malformed',
  unknownConcept: 'no such concept',
  emptyValue: 'no value',
  tooLong: 'too long',
  notSaid: 'not said in the turn',
  invented: 'says more than the turn',
  tooMany: 'too many at once',
};

export function statsLines(stats: Stats, paint: Paint): string[] {
  const counts = (group: Readonly<Record<string, number>>, words: Readonly<Record<string, string>>): string =>
    Object.entries(group)
      .map(([name, value]) => `${words[name] ?? oneLine(name)} ${count(value)}`)
      .join(', ') || 'none';
  const kinds = `${stats.pinned} pinned, ${plural(stats.drafts, 'draft')}`;
  const projects = plural(stats.projects, 'project');
  const days = [stats.oldest, stats.newest].flatMap((at) => (at === null ? [] : localDay(at)));
  const named = Object.entries(stats.bytes).map(([name, bytes]) => [name === 'nodes' ? 'memories' : name, size(bytes)]);
  const onDisk = named.map((each) => each.join(' '));
  const rows: [string, string][] = [
    ['memories', `${count(stats.nodes)} (${kinds}), ${plural(stats.facts, 'statement')}`],
    ['made of', `${plural(stats.turns, 'turn')}, ${plural(stats.sessions, 'session')}, ${projects}`],
    ['since', days.join(' to ') || 'nothing yet'],
    ['importance', counts(stats.by_importance, { HIGH: 'high', MED: 'medium', LOW: 'low' })],
    ['recalled', counts(stats.by_recall_mode, RECALLED)],
    ['from', counts(stats.by_origin, SPEAKERS)],
    ['written by', counts(stats.by_writer, WRITERS)],
    ['tags', stats.tags.map(({ tag, nodes }) => `${oneLine(tag)} ${nodes}`).join(', ') || 'none'],
    ['index', `${plural(stats.index.nodes, 'memory', 'memories')} in ${plural(stats.index.rows, 'entry', 'entries')}`],
    ['savings', [savedLine(stats.savings.week, 'this week'), savedLine(stats.savings.total, 'in all')].join('; ')],
    ['snapshots', String(stats.snapshots)],
    ['on disk', onDisk.join(', ')],
  ];
  const dropped = Object.values(stats.facts_dropped).reduce((sum, each) => sum + each, 0);
  const reasons = counts(stats.facts_dropped, DROPPED);
  if (dropped > 0) rows.push(['dropped', `${plural(dropped, 'fact')} of the model since the start: ${reasons}`]);
  if (stats.problems > 0) rows.push(['problems', `${stats.problems}; see comet-cc doctor`]);
  return rows.map(([name, text]) => `${paint('dim', name.padEnd(10))} ${text}`);
}

async function getBytes(paths: HomePaths): Promise<Record<string, number>> {
  const { nodesDir: nodes, briefsDir: briefs, journalDir: journal, indexDir: index, snapshotsDir: snapshots } = paths;
  const folders = Object.entries({ nodes, briefs, journal, index, snapshots });
  const sizes = await Promise.all(folders.map(async ([name, dir]) => [name, await folderBytes(dir)] as const));
  return Object.fromEntries(sizes);
}

async function folderBytes(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  // The index changes while it is being counted.
  const stats = await Promise.all(files.map((file) => lstat(file).catch(() => null)));
  return stats.reduce((sum, file) => sum + (file?.size ?? 0), 0);
}

function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
