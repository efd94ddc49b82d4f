import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { registerMemoryAbout } from './memory/about.ts';
import { registerMemoryEdit } from './memory/edit.ts';
import { registerMemoryExport } from './memory/export.ts';
import { registerMemoryForget } from './memory/forget.ts';
import { registerMemoryImport } from './memory/import.ts';
import { registerMemoryLs } from './memory/ls.ts';
import { registerMemoryPin } from './memory/pin.ts';
import { registerMemoryReindex } from './memory/reindex.ts';
import { registerMemoryRestore } from './memory/restore.ts';
import { registerMemoryRm } from './memory/rm.ts';
import { registerMemoryRollback } from './memory/rollback.ts';
import { registerMemorySearch } from './memory/search.ts';
import { registerMemoryShow } from './memory/show.ts';
import { registerMemoryStats } from './memory/stats.ts';
import { registerMemoryWhy } from './memory/why.ts';

export function registerMemory(program: Command, context: Context): void {
  const memory = program
    .command('memory')
    .description('list, show, search, edit and remove memories')
    .addHelpText('after', '\nExample:\n  comet-cc memory search "which port does staging use"');
  registerMemoryLs(memory, context);
  registerMemoryShow(memory, context);
  registerMemorySearch(memory, context);
  registerMemoryWhy(memory, context);
  registerMemoryEdit(memory, context);
  registerMemoryPin(memory, context);
  registerMemoryRm(memory, context);
  registerMemoryForget(memory, context);
  registerMemoryRollback(memory, context);
  registerMemoryExport(memory, context);
  registerMemoryImport(memory, context);
  registerMemoryReindex(memory, context);
  registerMemoryStats(memory, context);
  registerMemoryRestore(memory, context);
  registerMemoryAbout(memory, context);
}
