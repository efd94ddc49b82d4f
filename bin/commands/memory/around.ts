import type { Command } from 'commander';
import { resolveDirectory } from '../../../common/paths.ts';
import { localDay, oneLine } from '../../../common/text.ts';
import type { Paint } from '../../../engine/api/index.ts';
import type { Item } from '../../../memory/index.ts';
import { addCommand, type Context, printOrigin } from '../../context.ts';
import { parseCount, parseSince } from '../../terminal/format.ts';
import { wrapped } from '../../terminal/table.ts';
import { ID, memoryIds, saveRows } from './ids.ts';
import { listLines } from './list.ts';

const ITEM_ROWS = 3;

export function registerMemoryDigest(memory: Command, context: Context): void {
  const { term } = context;
  addCommand(memory, 'digest', 'what was done, decided and left open, by day', 'comet-cc memory digest --since 7d')
    .option('--since <d>', '30m, 12h, 7d, 2w or a date', '1d')
    .option('--project <dir>', 'the project of this folder', '.')
    .option('--all', 'of every project')
    .jsonAction('array', async (flags: { since: string; project: string; all?: boolean; json?: boolean }) => {
      const items = await context.engine.call('items/list', {
        projectDir: flags.all ? undefined : resolveDirectory(flags.project),
        sinceMs: parseSince(flags.since, Date.now()),
      });
      if (flags.json) return term.json(items);
      if (items.length === 0)
        return term.say(`nothing since ${flags.since}${flags.all ? '' : ' here; --all: every project'}`);
      await term.page(digestLines(items, term));
      await printOrigin(context, items);
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

export const itemText = ({ kind, text }: Item): string => `${WORDS[kind]}${oneLine(text)}`;

export function bullet(text: string, width: number, rows = ITEM_ROWS): string[] {
  return wrapped(text, width - 2, rows).map((line, at) => (at === 0 ? `- ${line}` : `  ${line}`));
}

export function registerMemoryRelated(memory: Command, context: Context): void {
  const { term } = context;
  addCommand(memory, 'related', 'memories linked with one, the nearest first', 'comet-cc memory related last --depth 2')
    .argument('<id>', ID)
    .option('--depth <n>', 'links to follow', '1')
    .jsonAction('array', async (input: string, flags: { depth: string; json?: boolean }) => {
      const client = context.engine;
      const [id = ''] = await memoryIds(context, client, [input]);
      const related = await client.call('nodes/related', { id, depth: parseCount(flags.depth, '--depth') });
      if (flags.json) return term.json(related);
      if (related.length === 0) return term.say('nothing is linked with it');
      await saveRows(context, 'memory', related);
      await term.page(listLines(related, { width: term.width, nowMs: Date.now(), paint: term.paint }));
      await printOrigin(context, related);
    });
}
