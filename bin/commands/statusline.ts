import type { Command } from 'commander';
import { engineClient } from '../api/client.ts';
import type { StatuslineView } from '../api/operations.ts';
import type { Context } from '../context.ts';
import { readStatusline, statuslineText } from '../statusline.ts';

/** Claude Code runs it after every message and shows what it says: late is worse than nothing. */
const LATE_MS = 100;
const STDIN_MS = 50;

export function registerStatusline(program: Command, context: Context): void {
  program
    .command('statusline')
    .description("one line for Claude Code's statusline, from its JSON on stdin; never fails")
    .addHelpText(
      'after',
      '\nIn ~/.claude/settings.json:\n  "statusLine": { "type": "command", "command": "comet-cc statusline" }\n' +
        '\nExample:\n  echo \'{"session_id":"5f3a","cwd":"/home/me/shop"}\' | comet-cc statusline',
    )
    .action(async () => {
      const asked = readStatusline(await stdin());
      const view = await engineClient(context.paths.engineSocket)
        .call('statusline', asked, { timeoutMs: LATE_MS })
        .catch((): StatuslineView | null => null);
      // Claude Code shows colours although it reads from a pipe.
      context.term.out(statuslineText(view, !context.env['NO_COLOR']));
      // Nothing that still waits may keep the line from being shown.
      process.stdin.destroy();
    });
}

async function stdin(): Promise<string> {
  if (process.stdin.isTTY) return '';
  const chunks: Buffer[] = [];
  return await new Promise((resolve) => {
    const done = (): void => resolve(Buffer.concat(chunks).toString('utf8'));
    const late = setTimeout(done, STDIN_MS);
    process.stdin.on('data', (chunk: Buffer) => chunks.push(chunk));
    process.stdin.once('error', done).once('end', () => {
      clearTimeout(late);
      done();
    });
  });
}
