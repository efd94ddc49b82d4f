import path from 'node:path';
import { type Command, Option } from 'commander';
import { writeFileAtomic } from '../../../common/files.ts';
import type { Context } from '../../context.ts';
import { engineOf } from '../../engine.ts';
import { count } from '../../format.ts';

const LONGEST_MS = 600_000;

export function registerMemoryExport(memory: Command, context: Context): void {
  memory
    .command('export')
    .description('all memories and briefs as one text; raw turns stay in the journal')
    .addOption(new Option('--format <f>', 'markdown or JSON lines').choices(['md', 'jsonl']).default('md'))
    .option('--out <file>', 'write it there, for your eyes only')
    .addHelpText('after', '\nExample:\n  comet-cc memory export --format jsonl --out memory.jsonl')
    .action(async (flags: { format: 'md' | 'jsonl'; out?: string }) => {
      const { format } = flags;
      const text = await engineOf(context.paths).call('memory/export', { format }, { timeoutMs: LONGEST_MS });
      if (flags.out === undefined) return void process.stdout.write(text);
      await writeFileAtomic(path.resolve(flags.out), text);
      context.term.say(`wrote ${flags.out}`);
    });
}

export function registerMemoryImport(memory: Command, context: Context): void {
  memory
    .command('import')
    .description('take an export of comet-cc back; what differs is replaced (see memory rollback)')
    .argument('<file>', 'what memory export wrote, in either format')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory import memory.jsonl')
    .action(async (file: string, flags: { json?: boolean }) => {
      const input = { file: path.resolve(file) };
      const report = await engineOf(context.paths).call('memory/import', input, { timeoutMs: LONGEST_MS });
      if (flags.json) return context.term.json(report);
      const { added, replaced, unchanged, briefs } = report;
      context.term.out(
        `${count(added)} added, ${count(replaced)} replaced, ${count(unchanged)} as they were; ${count(briefs)} briefs`,
      );
    });
}
