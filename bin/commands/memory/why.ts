import type { Command } from 'commander';
import { oneLine } from '../../../common/text.ts';
import { ago, engineOf, factText, type Paint } from '../../../engine/api/index.ts';
import type { NodeReason } from '../../../memory/index.ts';
import type { Context } from '../../context.ts';
import { truncate } from '../../terminal/table.ts';

const PROMPT_WIDTH = 120;

export function registerMemoryWhy(memory: Command, context: Context): void {
  memory
    .command('why')
    .description('show where a memory comes from and how far it is trusted')
    .argument('<id>', 'unambiguous prefix of its id')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory why mem_20261121_223000_a1b2c3')
    .action(async (id: string, flags: { json?: boolean }) => {
      const reason = await engineOf(context.paths).call('nodes/why', { id });
      if (flags.json) return context.term.json(reason);
      for (const line of whyLines(reason, context.term.paint, Date.now())) context.term.out(line);
    });
}

export function whyLines(reason: NodeReason, paint: Paint, nowMs: number): string[] {
  const lines = [
    paint('bold', reason.node_id),
    oneLine(reason.summary),
    `origin ${reason.origin}, written by ${oneLine(reason.written_by)}, because of ${reason.compaction_reason}`,
  ];
  for (const { turn, at, origin, prompt, tools } of reason.turns) {
    if (at === null) {
      lines.push(`- turn ${short(turn)}: its raw text is not stored`);
      continue;
    }
    const because = tools.length === 0 ? '' : ` (${tools.map(oneLine).join(', ')})`;
    lines.push(`- turn ${short(turn)}, ${ago(Date.parse(at), nowMs)}, ${origin}${because}`);
    lines.push(paint('dim', `  "${truncate(oneLine(prompt), PROMPT_WIDTH)}"`));
  }
  for (const { polarity, origin, turns, ...fact } of reason.facts) {
    const denied = polarity === 'negative' ? ' (denied)' : '';
    const from = turns.length === 0 ? 'no turn' : `turn ${turns.map(short).join(', ')}`;
    const stated = truncate(factText(fact), PROMPT_WIDTH);
    lines.push(`fact of ${origin} in ${from}${denied}: ${stated}`);
  }
  for (const { statement, valid_to, by } of reason.replaced) {
    const since = valid_to === null ? '' : ` since ${valid_to.slice(0, 10)}`;
    const what = statement === null ? 'all of it' : `"${truncate(oneLine(statement), PROMPT_WIDTH)}"`;
    lines.push(`no longer so${since}: ${what}${by === null ? '' : `; replaced by ${by}`}`);
  }
  for (const id of reason.replaces) lines.push(`replaces something of ${id}`);
  for (const alias of reason.aliases) lines.push(`alias ${alias}`);
  return lines;
}

function short(turn: string): string {
  return oneLine(turn).slice(0, 12);
}
