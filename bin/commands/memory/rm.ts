import type { Command } from 'commander';
import { oneLine } from '../../../common/text.ts';
import { engineOf } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';
import { confirmed } from '../../terminal/confirm.ts';
import { truncate } from '../../terminal/table.ts';

export function registerMemoryRm(memory: Command, context: Context): void {
  memory
    .command('rm')
    .description('remove memories and every trace of them: file, index, raw turns, snapshots')
    .argument('<id...>', 'unambiguous prefix of an id')
    .option('--yes', 'do not ask for confirmation')
    .addHelpText('after', '\nExample:\n  comet-cc memory rm mem_20261121_223000_a1b2c3 --yes')
    .action(async (ids: string[], flags: { yes?: boolean }) => {
      const { term } = context;
      const client = engineOf(context.paths);
      // All are looked up first: one wrong id among many removes nothing.
      const nodes = await Promise.all(ids.map((id) => client.call('nodes/show', { id, depth: 0 })));
      if (!flags.yes) {
        for (const node of nodes) term.say(truncate(`${node.node_id}  ${oneLine(node.summary)}`, term.width));
        if (!(await confirmed(`Remove ${nodes.length === 1 ? 'it' : `these ${nodes.length}`} for good?`))) {
          return term.say('nothing was removed');
        }
      }
      const removed = await client.call('nodes/remove', { ids: [...new Set(nodes.map((node) => node.node_id))] });
      for (const id of removed) term.out(`removed ${id}`);
    });
}
