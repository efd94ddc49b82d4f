import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { oneLine } from '../../../common/text.ts';
import { getEngine, type OperationInput } from '../../../engine/api/index.ts';
import type { ForgetReport } from '../../../memory/index.ts';
import { addCommand, type CommandFlags, type Context } from '../../context.ts';
import { count, counted, parseSince, shortId } from '../../terminal/format.ts';
import { truncate } from '../../terminal/table.ts';
import { confirmed } from '../../terminal/term.ts';
import { ID, memoryIds } from './ids.ts';

type Flags = CommandFlags<'last' | 'dryRun', 'source' | 'session' | 'since'>;

type Chosen = Omit<OperationInput<'nodes/forget'>, 'dryRun'>;

const SHOWN = 20;

export function registerMemoryForget(memory: Command, context: Context): void {
  const description = 'remove memories and every trace of them by source, session or time';
  const notes = 'Several options must all match. Turns that shared a removed memory get a new one.';
  addCommand(memory, 'forget', description, 'comet-cc memory forget --source example.org --dry-run', notes)
    .option('--source <s>', 'a host, an address, a file or folder, a tool, mcp__SERVER, or external')
    .option('--session <id>', 'all of this session; unambiguous prefix of its id')
    .option('--since <d>', 'turns since 30m, 12h, 7d, 2w or a date')
    .option('--last', 'of all these turns only the newest one')
    .option('--dry-run', 'print what would be removed without removing it')
    .option('--yes', 'do not ask for confirmation')
    .jsonAction('document', async ({ dryRun = false, yes = false, json, ...flags }: Flags) => {
      const { term, paths } = context;
      const chosen = parseChosen(flags, Date.now());
      const call = (isDry: boolean) => getEngine(paths).call('nodes/forget', { ...chosen, dryRun: isDry });
      if (!dryRun && !yes) {
        const preview = await call(true);
        if (preview.turns + preview.nodes.length === 0) return json ? term.json(preview) : term.say(NOTHING);
        for (const line of forgetLines(preview, term.width)) term.say(line);
        if (!(await confirmed('Forget it for good?'))) return term.say('nothing was forgotten');
      }
      const report = await call(dryRun);
      if (report.turns + report.nodes.length === 0 && !json) return term.say(NOTHING);
      term.print({ json }, report, () => forgetLines(report, term.width));
    });
}

const NOTHING = 'no matching memory';

/** @throws CometError `usage` */
function parseChosen({ source, session, since, last }: Flags, nowMs: number): Chosen {
  if (source === undefined && session === undefined && since === undefined)
    throw new CometError('usage', 'say what is to be forgotten: --source, --session or --since');
  return {
    source: source === undefined ? undefined : { name: source, file: path.resolve(source) },
    sessionId: session,
    last,
    sinceMs: since === undefined ? undefined : parseSince(since, nowMs),
  };
}

function forgetLines({ dry_run, turns, sessions, nodes, remade, tasks }: ForgetReport, width: number): string[] {
  const lines = nodes
    .slice(0, SHOWN)
    .map((node) => truncate(`${shortId(node.node_id)}  ${oneLine(node.summary)}`, width));
  if (nodes.length > SHOWN) lines.push(`and ${count(nodes.length - SHOWN)} more`);
  for (const { id, title } of tasks) lines.push(truncate(`task ${id}  ${oneLine(title)}`, width));
  const again = remade === 0 ? '' : `; ${count(remade)} rebuilt from turns that shared a memory`;
  const verb = dry_run ? 'would be forgotten' : 'forgotten';
  lines.push(
    `${verb}: ${counted(nodes.length, 'memory', 'memories')} and ${counted(turns, 'turn')} of ${counted(sessions.length, 'session')}${again}`,
  );
  return lines;
}

export function registerMemoryRm(memory: Command, context: Context): void {
  const description = 'remove memories and every trace of them: file, index, raw turns, snapshots';
  addCommand(memory, 'rm', description, 'comet-cc memory rm mem_20261121_223000_a1b2c3 --yes')
    .argument('<id...>', `${ID}; with --yes no row number`)
    .option('--yes', 'do not ask for confirmation')
    .action(async (ids: string[], flags: { yes?: boolean }) => {
      const { term } = context;
      const client = getEngine(context.paths);
      if (flags.yes && ids.some((id) => /^(?:\d{1,3}|last)$/.test(id)))
        throw new CometError('usage', 'with --yes a memory is named by its id');
      // All are looked up first: one wrong id among many removes nothing.
      const named = await memoryIds(context, client, ids);
      const nodes = await Promise.all(named.map((id) => client.call('nodes/show', { id, depth: 0 })));
      if (!flags.yes) {
        for (const node of nodes) term.say(truncate(`${shortId(node.node_id)}  ${oneLine(node.summary)}`, term.width));
        if (!(await confirmed(`Remove ${nodes.length === 1 ? 'it' : `these ${nodes.length}`} for good?`)))
          return term.say('nothing was removed');
      }
      const removed = await client.call('nodes/remove', { ids: [...new Set(nodes.map((node) => node.node_id))] });
      for (const id of removed) term.out(`removed ${id}`);
    });
}
