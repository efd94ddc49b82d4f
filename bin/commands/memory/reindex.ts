import { setTimeout as after } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Context } from '../../context.ts';
import { engineOf } from '../../engine.ts';
import { count } from '../../format.ts';

const LONGEST_MS = 3_600_000;
const LOOK_MS = 300;

export function registerMemoryReindex(memory: Command, context: Context): void {
  memory
    .command('reindex')
    .description('make the search index anew from the files')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory reindex')
    .action(async (flags: { json?: boolean }) => {
      const client = engineOf(context.paths);
      const over = new AbortController();
      const watching = watch(over.signal);
      try {
        const nodes = await client.call('memory/reindex', {}, { timeoutMs: LONGEST_MS });
        if (flags.json) context.term.json({ nodes });
        else context.term.out(`indexed ${count(nodes)} memories`);
      } finally {
        over.abort();
        await watching;
      }
    });

  async function watch(signal: AbortSignal): Promise<void> {
    const client = engineOf(context.paths);
    while (!signal.aborted) {
      await after(LOOK_MS, undefined, { signal }).catch(() => undefined);
      const status = signal.aborted ? null : await client.call('status', {}).catch(() => null);
      const { done, total } = status?.reindex ?? { done: 0, total: 0 };
      if (total > 0) context.term.progress(`indexing ${count(done)} of ${count(total)}`);
    }
    context.term.progress('');
  }
}
