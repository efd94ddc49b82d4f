import type { Command } from 'commander';
import { engineOf, messageLines, sessionId } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';

export function registerMemoryRestore(memory: Command, context: Context): void {
  memory
    .command('restore')
    .description('print the verbatim messages of a session, trimmed ones included')
    .argument('<session>', 'unambiguous prefix of its id')
    .option('--json', 'print one JSON array')
    .addHelpText('after', '\nExample:\n  comet-cc memory restore 5f3a --json > session.json')
    .action(async (session: string, flags: { json?: boolean }) => {
      const client = engineOf(context.paths);
      const messages = await client.call('sessions/restore', { sessionId: await sessionId(client, session) });
      if (flags.json) return context.term.json(messages);
      for (const message of messages) context.term.out(`${messageLines(message, context.term.paint).join('\n')}\n`);
    });
}
