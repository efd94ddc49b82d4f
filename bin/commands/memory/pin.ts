import type { Command } from 'commander';
import { resolveDirectory } from '../../../common/paths.ts';
import { engineOf } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';

export function registerMemoryPin(memory: Command, context: Context): void {
  register('pin', true, 'always show these memories in their project');
  register('unpin', false, 'recall these memories as before they were pinned');

  function register(name: string, pinned: boolean, description: string): void {
    memory
      .command(name)
      .description(description)
      .argument('<id...>', 'unambiguous prefix of an id')
      .option('--project <dir>', 'in this project instead of their own')
      .addHelpText('after', `\nExample:\n  comet-cc memory ${name} mem_20261121_223000_a1b2c3`)
      .action(async (ids: string[], flags: { project?: string }) => {
        const at = flags.project === undefined ? {} : { projectDir: resolveDirectory(flags.project) };
        const nodes = await engineOf(context.paths).call('nodes/pin', { ids, pinned, ...at });
        for (const node of nodes) context.term.out(`${name}ned ${node.node_id}, recall ${node.recall_mode}`);
      });
  }
}
