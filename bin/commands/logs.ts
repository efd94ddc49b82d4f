import { on } from 'node:events';
import { watch } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { ensureDir } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { escaped, oneLine, printable } from '../../common/text.ts';
import type { Paint } from '../../engine/api/index.ts';
import type { Context } from '../context.ts';
import { parseCount } from '../terminal/format.ts';
import { createTail, type Tail } from '../terminal/tail.ts';

const FILES = ['guard.log', 'engine.log'] as const;

export function registerLogs(program: Command, context: Context): void {
  program
    .command('logs')
    .description("the daemon's log, oldest first")
    .option('-f, --follow', 'print new lines as they are written')
    .option('-n, --lines <n>', 'number of lines to print first', '100')
    .option('--json', 'print the JSON lines unchanged')
    .addHelpText('after', '\nExample:\n  comet-cc logs -f')
    .action(async (flags: { follow?: boolean; lines: string; json?: boolean }) => {
      const { term, paths } = context;
      const show = (line: string): void => term.out(flags.json ? escaped(line) : logLine(line, term.paint));
      const tails = FILES.map((name) => createTail(path.join(paths.logsDir, name)));
      const lines = await Promise.all(tails.map((tail) => tail.read()));
      for (const line of inOrder(lines).slice(-parseCount(flags.lines, '--lines'))) show(line);
      if (flags.follow) await follow(paths, tails, show);
      else if (lines.every((found) => found.length === 0)) term.say(`no log yet in ${paths.logsDir} yet`);
    });
}

/** A log record as text; any other line is printed unchanged. */
export function logLine(line: string, paint: Paint): string {
  const record = parsed(line);
  if (record === null) return printable(line);
  const { at, level, process: from, message, ...fields } = record;
  const style = level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim';
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const [when, what, who] = [at, level, from].map((field) => oneLine(String(field))) as [string, string, string];
  const head = [paint('dim', when), paint(style, what.padEnd(5)), paint('dim', who)];
  return [...head, printable([String(message), ...rest].join(' '))].join(' ');
}

/** Lines of several files by their time; a line without one stays behind the line before it. */
export function inOrder(files: readonly (readonly string[])[]): string[] {
  const stamped = files.flatMap((lines) => {
    let at = '';
    return lines.map((line) => {
      const own = parsed(line)?.['at'];
      at = typeof own === 'string' ? own : at;
      return { at, line };
    });
  });
  return stamped.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).map(({ line }) => line);
}

/** Until the process is interrupted. */
async function follow(paths: HomePaths, tails: readonly Tail[], show: (line: string) => void): Promise<void> {
  await ensureDir(paths.logsDir);
  for await (const _ of on(watch(paths.logsDir), 'change')) {
    for (const line of inOrder(await Promise.all(tails.map((tail) => tail.read())))) show(line);
  }
}

function parsed(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    // A torn or foreign line is shown as it stands.
    return null;
  }
}
