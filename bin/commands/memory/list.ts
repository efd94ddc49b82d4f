import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import { ago, engineOf, type OperationInput, type Paint } from '../../../engine/api/index.ts';
import type { PublicNode } from '../../../memory/index.ts';
import { contentTags, terseMeta } from '../../../memory/recall/index.ts';
import { addCommand, type Context, printOrigin } from '../../context.ts';
import { parseCount, parseSince } from '../../terminal/format.ts';
import { type Column, table, truncate } from '../../terminal/table.ts';
import { refreshed } from '../../terminal/watch.ts';

interface Flags {
  readonly session?: string;
  readonly project?: string;
  readonly tag?: string;
  readonly importance?: string;
  readonly since?: string;
  readonly all?: boolean;
  readonly quarantine?: boolean;
  readonly limit?: string;
  readonly watch?: boolean;
  readonly json?: boolean;
}

const DEFAULT_LIMIT = 50;
/** Below this the tags would leave no room for the summary. */
const TAGS_FROM_WIDTH = 120;
/** Below this each memory takes two lines, and the ids stand whole. */
const TABLE_FROM_WIDTH = 64;
const TAGS_WIDTH = 32;
const plain: Paint = (_, text) => text;

export function registerMemoryLs(memory: Command, context: Context): void {
  addCommand(memory, 'ls', 'list memories, newest first', 'comet-cc memory ls --project . --since 7d')
    .option('--session <id>', 'only this session; unambiguous prefix of its id')
    .option('--project <dir>', 'only this project')
    .option('--tag <t>', 'only with this tag')
    .option('--importance <i>', 'HIGH, MED or LOW only')
    .option('--since <d>', '30m, 12h, 7d, 2w or a date')
    .option('--all', 'also memories of single tool calls')
    .option('--quarantine', 'only quarantined memories; release one with: memory edit ID --set released=true')
    .option('--limit <n>', `number of memories (default ${DEFAULT_LIMIT}; no limit with --json)`)
    .option('--watch', 'refresh every two seconds until Ctrl-C')
    .option('--json', 'print one JSON array')
    .action(async (flags: Flags) => {
      const { paint, width } = context.term;
      const lines = (nodes: readonly PublicNode[]): string[] => listLines(nodes, { width, nowMs: Date.now(), paint });
      const client = engineOf(context.paths);
      const list = () => client.call('nodes/list', parseFilter(flags, Date.now()));
      if (flags.watch) return refreshed(context.term, async () => lines(await list()));
      const filter = parseFilter(flags, Date.now());
      const nodes = await list();
      if (nodes.length === 0 && !flags.json) return context.term.say(nothing(filter));
      context.term.print(flags, nodes, () => lines(nodes));
      if (flags.json) return;
      if (nodes.length === filter.limit) context.term.say(`the newest ${filter.limit}; more with --limit`);
      const origins = nodes.map(({ origin }) => origin);
      await printOrigin(context, client, origins);
    });
}

function nothing({ limit: _, all: __, ...asked }: OperationInput<'nodes/list'>): string {
  return Object.keys(asked).length === 0 ? 'nothing is remembered yet' : 'no matching memory';
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
    ...(flags.all ? { all: true } : {}),
    ...(flags.quarantine ? { quarantine: true } : {}),
    ...(flags.json && limit === undefined ? {} : { limit: limit ?? DEFAULT_LIMIT }),
  };
}

/** A table as wide as the terminal; where that is narrow, two lines for each memory. */
export function listLines(
  nodes: readonly PublicNode[],
  { width, nowMs, paint = plain }: { readonly width: number; readonly nowMs: number; readonly paint?: Paint },
): string[] {
  const isHigh = (row: number): boolean => nodes[row]?.importance === 'HIGH';
  const when = nodes.map((node) => ago(Date.parse(node.created_at), nowMs));
  const summaries = nodes.map((node) => oneLine(node.summary));
  if (width < TABLE_FROM_WIDTH) {
    return nodes.flatMap((node, row) => {
      const summary = truncate(summaries[row] as string, width - 2);
      const head = truncate(`${node.node_id}  ${when[row]}`, width);
      return [paint('dim', head), `  ${isHigh(row) ? paint('bold', summary) : summary}`];
    });
  }
  const tags: Column = {
    title: 'TAGS',
    cells: nodes.map((node) => truncate(oneLine(contentTags(node.topic_tags).slice(0, 3).join(',')), TAGS_WIDTH)),
    paint: (text) => paint('cyan', text),
  };
  const dim = (text: string): string => paint('dim', text);
  const [heading = '', ...lines] = table(
    [
      { title: 'ID', cells: nodes.map((node) => node.node_id), paint: dim },
      { title: 'WHEN', cells: when },
      {
        title: 'KIND',
        cells: nodes.map((node) => terseMeta(node)),
        paint: (text, row) => paint(isHigh(row) ? 'yellow' : 'dim', text),
      },
      ...(width >= TAGS_FROM_WIDTH ? [tags] : []),
      {
        title: 'SUMMARY',
        cells: summaries,
        stretch: true,
        paint: (text, row) => (isHigh(row) ? paint('bold', text) : text),
      },
    ],
    width,
  );
  return [dim(heading), ...lines];
}

function parseImportance(text: string): 'HIGH' | 'MED' | 'LOW' {
  const level = text.toUpperCase();
  if (level === 'HIGH' || level === 'MED' || level === 'LOW') return level;
  throw new CometError('usage', `--importance is HIGH, MED or LOW (got "${text}")`);
}
