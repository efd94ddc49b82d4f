#!/usr/bin/env node
import { getMessage } from '../common/errors.ts';
import { createContext, EXIT } from './context.ts';

process.umask(0o077);
endWithOutput();
process.exitCode = await main(process.argv);

/** Claude Code waits for the statusline after each message: that alone is answered without what parses arguments. */
async function main(argv: readonly string[]): Promise<number> {
  const context = createContext();
  if (argv.length === 3 && argv[2] === 'statusline') {
    await (await import('./terminal/statusline.ts')).printStatusline(context);
    return EXIT.done;
  }
  return await (await import('./program.ts')).runProgram(argv, context);
}

/** `comet-cc memory ls | head` must end without a word when `head` has seen enough; a full disk is named. */
function endWithOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.done);
    process.stderr.write(`comet-cc: the output cannot be written: ${getMessage(error)}\n`);
    process.exit(EXIT.failed);
  });
}
