import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { printStatusline } from '../terminal/statusline.ts';

export function registerStatusline(program: Command, context: Context): void {
  program
    .command('statusline')
    .description("one line for Claude Code's statusline, from its JSON on stdin; never fails")
    .addHelpText(
      'after',
      '\nIn ~/.claude/settings.json:\n  "statusLine": { "type": "command", "command": "comet-cc statusline" }\n' +
        '\nExample:\n  echo \'{"session_id":"5f3a","cwd":"/home/me/shop"}\' | comet-cc statusline',
    )
    .action(() => printStatusline(context));
}
