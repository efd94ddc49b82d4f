import type { Command } from 'commander';
import { addCommand, type Context } from '../context.ts';
import { registerMemoryDigest, registerMemoryRelated } from './memory/around.ts';
import { registerMemoryRestore, registerMemoryShow, registerMemoryWhy } from './memory/detail.ts';
import { registerMemoryEdit, registerMemoryPin } from './memory/edit.ts';
import { registerMemoryForget, registerMemoryRm } from './memory/forget.ts';
import { registerMemoryImport } from './memory/import.ts';
import { registerMemoryLs } from './memory/list.ts';
import { registerMemoryExport, registerMemoryReindex, registerMemoryRollback } from './memory/maintenance.ts';
import { registerMemoryAbout, registerMemoryStats } from './memory/overview.ts';
import { registerMemorySearch } from './memory/search.ts';

/** In the order of `--help`. */
const COMMANDS = [
  registerMemoryLs,
  registerMemoryShow,
  registerMemorySearch,
  registerMemoryRelated,
  registerMemoryDigest,
  registerMemoryWhy,
  registerMemoryEdit,
  registerMemoryPin,
  registerMemoryRm,
  registerMemoryForget,
  registerMemoryRollback,
  registerMemoryExport,
  registerMemoryImport,
  registerMemoryReindex,
  registerMemoryStats,
  registerMemoryRestore,
  registerMemoryAbout,
];

export function registerMemory(program: Command, context: Context): void {
  const example = 'comet-cc memory search "which port does staging use"';
  const memory = addCommand(program, 'memory', 'list, show, search, edit and remove memories', example);
  for (const register of COMMANDS) register(memory, context);
}
