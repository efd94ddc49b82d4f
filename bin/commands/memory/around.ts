import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { localDay, oneLine } from '../../../common/text.ts';
import type { Paint } from '../../../engine/api/index.ts';
import type { Item } from '../../../memory/index.ts';
import { addCommand, type Context, printOrigin, readingEngine } from '../../context.ts';
import { editorCommand, runEditor } from '../../terminal/editor.ts';
import { parseCount, parseSince } from '../../terminal/format.ts';
import { wrapped } from '../../terminal/table.ts';
import { ID, memoryIds, saveRows } from './ids.ts';
import { listLines } from './list.ts';

const ITEM_ROWS = 3;
/** Editors that go to a line with `+N`, and those that do with `--goto FILE:N`. */
const PLUS_LINE = /^(?:n?vim?|nano|emacs|emacsclient|micro|kak|joe)$/;
const GOTO_LINE = /^(?:code|code-insiders|codium|cursor|windsurf)$/;

export function registerMemoryOpen(memory: Command, context: Context): void {
  const description = "open a memory's markdown file in your editor ($VISUAL, $EDITOR); saving changes memory";
  addCommand(memory, 'open', description, 'comet-cc memory open\ncomet-cc memory open a1b2c3')
    .argument('[id]', `${ID}; default: last`)
    .action(async (given = 'last') => {
      const client = readingEngine(context);
      const [named = ''] = await memoryIds(context, client, [given]);
      const { node_id: id } = await client.call('nodes/show', { id: named, depth: 0 });
      const place = await getPlace(id, context.paths.nodesDir);
      if (place === null) throw new CometError('not_found', `no file has ${id}; see comet-cc doctor`);
      const command = editorCommand(context.env, process.stdin.isTTY === true && process.stderr.isTTY === true);
      await runEditor([...command, ...placeArguments(command[0] ?? '', place)]);
    });
}

interface Place {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
}

async function getPlace(id: string, dir: string): Promise<Place | null> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    if (!entry.isFile() || !entry.name.endsWith('.md')) continue;
    const file = path.join(entry.parentPath, entry.name);
    const line = (await readFile(file, 'utf8')).split('\n').findIndex((each) => each.startsWith(`## ${id}`));
    if (line >= 0) return { file, line: line + 1 };
  }
  return null;
}

export function placeArguments(editor: string, { file, line }: Place): string[] {
  const name = path.basename(editor);
  if (PLUS_LINE.test(name)) return [`+${line}`, file];
  return GOTO_LINE.test(name) ? ['--goto', `${file}:${line}`] : [file];
}

export function registerMemoryDigest(memory: Command, context: Context): void {
  const { term } = context;
  addCommand(memory, 'digest', 'what was done, decided and left open, by day', 'comet-cc memory digest --since 7d')
    .option('--since <d>', '30m, 12h, 7d, 2w or a date', '1d')
    .option('--project <dir>', 'the project of this folder', '.')
    .option('--all', 'of every project')
    .jsonAction('array', async (flags: { since: string; project: string; all?: boolean; json?: boolean }) => {
      const client = readingEngine(context);
      const projectDir = flags.all ? undefined : resolveDirectory(flags.project);
      const items = await client.call('items/list', { projectDir, sinceMs: parseSince(flags.since, Date.now()) });
      if (flags.json) return term.json(items);
      if (items.length === 0)
        return term.say(`nothing since ${flags.since}${flags.all ? '' : ' here; --all: every project'}`);
      await term.page(digestLines(items, term));
      await printOrigin(context, client, items);
    });
}

const WORDS = { outcome: '', decision: 'decided: ', todo: 'to do: ' } as const;

export function digestLines(items: readonly Item[], look: { readonly width: number; readonly paint: Paint }): string[] {
  const days = [...new Set(items.map(({ at }) => localDay(Date.parse(at))))];
  return days.flatMap((day, nth) => {
    const own = items.filter(({ at }) => localDay(Date.parse(at)) === day);
    const lines = own.flatMap((item) => bullet(itemText(item), look.width));
    return [...(nth === 0 ? [] : ['']), look.paint('bold', day), ...lines];
  });
}

export function itemText({ kind, text }: Item): string {
  return `${WORDS[kind]}${oneLine(text)}`;
}

export function bullet(text: string, width: number, rows = ITEM_ROWS): string[] {
  return wrapped(text, width - 2, rows).map((line, at) => (at === 0 ? `- ${line}` : `  ${line}`));
}

export function registerMemoryRelated(memory: Command, context: Context): void {
  const { term } = context;
  addCommand(memory, 'related', 'memories linked with one, the nearest first', 'comet-cc memory related last --depth 2')
    .argument('<id>', ID)
    .option('--depth <n>', 'links to follow', '1')
    .jsonAction('array', async (input: string, flags: { depth: string; json?: boolean }) => {
      const client = readingEngine(context);
      const [id = ''] = await memoryIds(context, client, [input]);
      const related = await client.call('nodes/related', { id, depth: parseCount(flags.depth, '--depth') });
      if (flags.json) return term.json(related);
      if (related.length === 0) return term.say('nothing is linked with it');
      const ids = related.map(({ node_id }) => node_id);
      await saveRows(context, 'memory', ids);
      await term.page(listLines(related, { width: term.width, nowMs: Date.now(), paint: term.paint }));
      await printOrigin(context, client, related);
    });
}
