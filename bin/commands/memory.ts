import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { registerMemoryLs } from './memory/ls.ts';
import { registerMemoryRestore } from './memory/restore.ts';
import { registerMemoryRm } from './memory/rm.ts';
import { registerMemorySearch } from './memory/search.ts';
import { registerMemoryShow } from './memory/show.ts';

export function registerMemory(program: Command, context: Context): void {
  const memory = program
    .command('memory')
    .description('what is remembered: list, read, search, remove')
    .addHelpText('after', '\nExample:\n  comet-cc memory search "which port does staging use"');
  registerMemoryLs(memory, context);
  registerMemoryShow(memory, context);
  registerMemorySearch(memory, context);
  registerMemoryRm(memory, context);
  registerMemoryRestore(memory, context);
}
