import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import type { HomePaths } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import type { Paint } from '../../../engine/api/index.ts';
import { type Costs, engineOf, savedLine } from '../../../engine/api/index.ts';
import type { MemoryStats } from '../../../memory/index.ts';
import type { Context } from '../../context.ts';
import { count } from '../../terminal/format.ts';

export type Stats = MemoryStats & Pick<Costs, 'savings'> & { readonly bytes: Readonly<Record<string, number>> };

export function registerMemoryStats(memory: Command, context: Context): void {
  memory
    .command('stats')
    .description('count memories by kind and their size on disk')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory stats --json')
    .action(async (flags: { json?: boolean }) => {
      const found = await engineOf(context.paths).call('memory/stats', {});
      const stats = { ...found, bytes: await bytesOf(context.paths) };
      if (flags.json) return context.term.json(stats);
      for (const line of statsLines(stats, context.term.paint)) context.term.out(line);
    });
}

export function statsLines(stats: Stats, paint: Paint): string[] {
  const counts = (group: Readonly<Record<string, number>>): string =>
    Object.entries(group)
      .map(([name, value]) => `${oneLine(name)} ${count(value)}`)
      .join(', ') || 'none';
  const rows: [string, string][] = [
    ['nodes', `${count(stats.nodes)} (${stats.pinned} pinned, ${stats.drafts} drafts), ${count(stats.facts)} facts`],
    ['from', `${count(stats.turns)} turns, ${count(stats.sessions)} sessions, ${count(stats.projects)} projects`],
    ['since', stats.oldest === null ? 'nothing yet' : `${stats.oldest.slice(0, 10)} to ${stats.newest?.slice(0, 10)}`],
    ['importance', counts(stats.by_importance)],
    ['recall', counts(stats.by_recall_mode)],
    ['origin', counts(stats.by_origin)],
    ['written by', counts(stats.by_writer)],
    ['tags', stats.tags.map(({ tag, nodes }) => `${oneLine(tag)} ${nodes}`).join(', ') || 'none'],
    ['index', `${count(stats.index.nodes)} nodes, ${count(stats.index.rows)} rows`],
    ['savings', [savedLine(stats.savings.week, 'this week'), savedLine(stats.savings.total, 'in all')].join('; ')],
    ['snapshots', String(stats.snapshots)],
    [
      'on disk',
      Object.entries(stats.bytes)
        .map(([name, bytes]) => `${name} ${size(bytes)}`)
        .join(', '),
    ],
  ];
  if (stats.problems > 0) rows.push(['problems', `${stats.problems}; see comet-cc doctor`]);
  return rows.map(([name, text]) => `${paint('dim', name.padEnd(10))} ${text}`);
}

async function bytesOf(paths: HomePaths): Promise<Record<string, number>> {
  const { nodesDir: nodes, briefsDir: briefs, journalDir: journal, indexDir: index, snapshotsDir: snapshots } = paths;
  const folders = Object.entries({ nodes, briefs, journal, index, snapshots });
  return Object.fromEntries(
    await Promise.all(folders.map(async ([name, dir]) => [name, await folderBytes(dir)] as const)),
  );
}

async function folderBytes(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  // The index changes while it is being counted.
  const sizes = await Promise.all(
    files.map((file) =>
      lstat(path.join(file.parentPath, file.name)).then(
        ({ size: bytes }) => bytes,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
