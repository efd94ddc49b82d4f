import os from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { readOwnFile, removeOwnFile, writeOwnFile } from '../edit-file.ts';
import { bashCompletion } from './bash.ts';
import { listCommands } from './command-tree.ts';
import { fishCompletion } from './fish.ts';
import { zshCompletion } from './zsh.ts';

/** A name in every completion script, which tells it from a file of the user. */
const MARK = '_comet_cc';

export function completionScript(shell: 'bash' | 'zsh' | 'fish', program: Command): string {
  const commands = listCommands(program);
  if (shell === 'bash') return bashCompletion(commands);
  return shell === 'zsh' ? zshCompletion(commands) : fishCompletion(commands);
}

/** Where the shell loads the completion of a command from; zsh has no such place of the user's own. */
function completionFile(shell: string, env: NodeJS.ProcessEnv): string | null {
  const home = os.homedir();
  const data = env['XDG_DATA_HOME'] || path.join(home, '.local', 'share');
  const config = env['XDG_CONFIG_HOME'] || path.join(home, '.config');
  if (shell === 'bash') return path.join(data, 'bash-completion', 'completions', 'comet-cc');
  return shell === 'fish' ? path.join(config, 'fish', 'completions', 'comet-cc.fish') : null;
}

/** @throws CometError `usage` for zsh, `unsafe_file` where the user has a file of that name */
export async function installCompletion(
  paths: HomePaths,
  env: NodeJS.ProcessEnv,
  { shell, script }: { readonly shell: string; readonly script: string },
): Promise<string> {
  const file = completionFile(shell, env);
  if (file === null) {
    throw new CometError(
      'usage',
      `${shell} loads no completion file by itself; add to ~/.zshrc: eval "$(comet-cc completion zsh)"`,
    );
  }
  await writeOwnFile(paths, { file, content: `${script}\n`, mark: MARK, mode: 0o644 });
  return file;
}

/** Completion scripts of comet-cc where the shells look for them. */
export async function findCompletionFiles(env: NodeJS.ProcessEnv): Promise<string[]> {
  const found: string[] = [];
  for (const file of ['bash', 'fish'].map((shell) => completionFile(shell, env))) {
    if (file === null) continue;
    const content = await readOwnFile(file, MARK).catch((error: unknown) => {
      if (error instanceof CometError) return null;
      throw error;
    });
    if (content !== null) found.push(file);
  }
  return found;
}

export async function removeCompletion(paths: HomePaths, env: NodeJS.ProcessEnv): Promise<void> {
  for (const file of await findCompletionFiles(env)) await removeOwnFile(paths, file);
}
