import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { makeFolder, removeMadeFolder } from '../created-dirs.ts';

const OURS = /_comet_cc/;
const USER_MODE = { mode: 0o644 };

/** Where the shell looks for the completion of a command by itself; zsh has no such place of the user's own. */
function completionFile(shell: string, env: NodeJS.ProcessEnv): string | null {
  const home = os.homedir();
  const data = env['XDG_DATA_HOME'] || path.join(home, '.local', 'share');
  const config = env['XDG_CONFIG_HOME'] || path.join(home, '.config');
  if (shell === 'bash') return path.join(data, 'bash-completion', 'completions', 'comet-cc');
  return shell === 'fish' ? path.join(config, 'fish', 'completions', 'comet-cc.fish') : null;
}

/** @throws CometError `usage` for zsh, `unsafe_file` where a stranger's file stands there */
export async function writeCompletion(
  paths: HomePaths,
  env: NodeJS.ProcessEnv,
  { shell, script }: { readonly shell: string; readonly script: string },
): Promise<string> {
  const file = completionFile(shell, env);
  if (file === null) {
    throw new CometError('usage', `${shell} has no place for it; add to ~/.zshrc: eval "$(comet-cc completion zsh)"`);
  }
  const before = await readFileIfPresent(file);
  if (before !== null && !OURS.test(before)) {
    throw new CometError('unsafe_file', `${file} was not made by comet-cc, so it is left alone; move it away`);
  }
  await makeFolder(paths, path.dirname(file));
  await writeFileAtomic(file, `${script}\n`, USER_MODE);
  return file;
}

/** Files of ours that stand where the shells look. */
export async function completionFiles(env: NodeJS.ProcessEnv): Promise<string[]> {
  const ours: string[] = [];
  for (const file of ['bash', 'fish'].map((shell) => completionFile(shell, env))) {
    if (file !== null && OURS.test((await readFileIfPresent(file)) ?? '')) ours.push(file);
  }
  return ours;
}

export async function removeCompletion(paths: HomePaths, file: string): Promise<void> {
  await rm(file, { force: true });
  await removeMadeFolder(paths, path.dirname(file));
}
