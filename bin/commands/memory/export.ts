import path from 'node:path';
import { type Command, Option } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { writeFileAtomic } from '../../../common/files.ts';
import { printable } from '../../../common/text.ts';
import { engineOf } from '../../../engine/api/index.ts';
import type { Context } from '../../context.ts';

const LONGEST_MS = 600_000;

export function registerMemoryExport(memory: Command, context: Context): void {
  memory
    .command('export')
    .description('export all memories and briefs as one text, without raw turns')
    .addOption(new Option('--format <f>', 'markdown or JSON lines').choices(['md', 'jsonl']).default('md'))
    .option('--out <file>', 'write to this file (0600)')
    .addHelpText('after', '\nExample:\n  comet-cc memory export --format jsonl --out memory.jsonl')
    .action(async (flags: { format: 'md' | 'jsonl'; out?: string }) => {
      const { format } = flags;
      const text = await engineOf(context.paths).call('memory/export', { format }, { timeoutMs: LONGEST_MS });
      if (flags.out === undefined) return void process.stdout.write(context.term.isTerminal ? printable(text) : text);
      await writeFileAtomic(path.resolve(flags.out), text).catch((cause: NodeJS.ErrnoException) => {
        const why = `${flags.out} cannot be written (${cause.code}); name a file in a folder that is there and yours`;
        throw new CometError('unsafe_file', why, { cause });
      });
      context.term.say(`wrote ${flags.out}`);
    });
}
