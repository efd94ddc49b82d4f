import type { Command } from 'commander';
import { engineOf } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';
import { count } from '../../terminal/format.ts';
import { watched } from './watch.ts';

const LONGEST_MS = 3_600_000;

export function registerMemoryReindex(memory: Command, context: Context): void {
  memory
    .command('reindex')
    .description('rebuild the search index from the files')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory reindex')
    .action(async (flags: { json?: boolean }) => {
      const run = () => engineOf(context.paths).call('memory/reindex', {}, { timeoutMs: LONGEST_MS });
      if (flags.json) return context.term.json({ nodes: await run() });
      const nodes = await watched(
        context,
        ({ reindex }) => (reindex === null ? '' : `indexing ${count(reindex.done)} of ${count(reindex.total)}`),
        run,
      );
      context.term.out(`indexed ${count(nodes)} memories`);
    });
}
