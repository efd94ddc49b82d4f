import { on } from 'node:events';
import { watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { ensureDir, orMissing } from '../../common/files.ts';
import { LOG_LIMITS } from '../../common/log.ts';
import type { HomePaths } from '../../common/paths.ts';
import { compareText, escaped, isRecord, oneLine, parseJson, printable } from '../../common/text.ts';
import type { Paint } from '../../engine/api/index.ts';
import { addCommand, type Context } from '../context.ts';
import { parseCount } from '../terminal/format.ts';

const FILES = ['guard.log', 'engine.log'] as const;

export function registerLogs(program: Command, context: Context): void {
  addCommand(program, 'logs', "the daemon's log, oldest first", 'comet-cc logs -f')
    .option('-f, --follow', 'print new lines as they are written')
    .option('-n, --lines <n>', 'number of lines to print first', '100')
    .option('--json', 'print one JSON document; with -f the JSON lines unchanged')
    .action(async (flags: { follow?: boolean; lines: string; json?: boolean }) => {
      const { term, paths } = context;
      const show = (line: string): void => term.out(flags.json ? escaped(line) : logLine(line, term.paint));
      const tails = FILES.map((name) => createTail(path.join(paths.logsDir, name)));
      const lines = await Promise.all(tails.map((tail) => tail.read()));
      const newest = inOrder(lines).slice(-parseCount(flags.lines, '--lines'));
      const records = (): object[] => newest.map((line) => parsed(line) ?? { message: line });
      if (flags.json && !flags.follow) term.print(flags, records(), () => []);
      else newest.forEach(show);
      if (flags.follow) await follow(paths, tails, show);
      else if (lines.every((found) => found.length === 0)) term.say(`no log yet in ${paths.logsDir}`);
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
  return stamped.sort((a, b) => compareText(a.at, b.at)).map(({ line }) => line);
}

async function follow(paths: HomePaths, tails: readonly Tail[], show: (line: string) => void): Promise<void> {
  await ensureDir(paths.logsDir);
  for await (const _ of on(watch(paths.logsDir), 'change')) {
    for (const line of inOrder(await Promise.all(tails.map((tail) => tail.read())))) show(line);
  }
}

/** Null for a torn or foreign line. */
function parsed(line: string): Record<string, unknown> | null {
  const record = parseJson(line);
  return isRecord(record) ? record : null;
}

export type Tail = ReturnType<typeof createTail>;

/** Follows a log over its rotations: a file is known by its inode, whatever its name has become. */
export function createTail(file: string) {
  /** Bytes that were read of each generation, by inode. */
  let inodes: ReadonlyMap<number, number> | null = null;
  let rest = '';
  return {
    /** Whole lines written since the last call, those in files put aside meanwhile included; at first those of two files. */
    async read(): Promise<string[]> {
      const generations = await openAll(file);
      const first = inodes === null ? generations.length - 2 : 0;
      const now = new Map<number, number>();
      try {
        for (const [at, { handle, inode, size }] of generations.entries()) {
          const before = inodes?.get(inode) ?? 0;
          const from = size < before ? 0 : before;
          if (at >= first) {
            const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
            rest += buffer.toString('utf8', 0, bytesRead);
          }
          now.set(inode, size);
        }
      } finally {
        for (const { handle } of generations) await handle.close();
      }
      inodes = now;
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      return lines;
    },
  };
}

/** Oldest first, each file once although it may be renamed while we look. */
async function openAll(file: string) {
  const logs: { readonly handle: FileHandle; readonly inode: number; readonly size: number }[] = [];
  const names = Array.from({ length: LOG_LIMITS.files }, (_, at) => (at === 0 ? file : `${file}.${at}`));
  for (const name of names) {
    const handle = await open(name, 'r').catch(orMissing);
    if (handle === null) continue;
    const { ino, size } = await handle.stat();
    if (logs.some((one) => one.inode === ino)) await handle.close();
    else logs.unshift({ handle, inode: ino, size });
  }
  return logs;
}
