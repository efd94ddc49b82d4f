import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';

/** Holds the text in a private temporary file while it is edited. */
export type Draft = Awaited<ReturnType<typeof openDraft>>;

export async function openDraft(text: string, name: string, command: readonly string[]) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'comet-cc-edit-'));
  const file = path.join(dir, name);
  await writeFile(file, text, { mode: 0o600, flag: 'wx' });
  return {
    file,
    /** Opens the editor and resolves with the text when it was closed. @throws CometError `usage` when it fails */
    async edit(): Promise<string> {
      await runEditor([...command, file]);
      return readFile(file, 'utf8');
    },
    drop: (): Promise<void> => rm(dir, { recursive: true, force: true }),
  };
}

/**
 * `$VISUAL`, else `$EDITOR`, with their arguments; without either `vi`, where there is a terminal for it.
 * @throws CometError `usage` where there is none
 */
export function editorCommand(env: NodeJS.ProcessEnv, isTerminal: boolean): string[] {
  const words = split(env['VISUAL'] || env['EDITOR'] || '');
  if (words.length > 0) return words;
  if (isTerminal) return [process.platform === 'win32' ? 'notepad' : 'vi'];
  const next = 'set EDITOR, or use comet-cc memory edit ID --set field=value';
  throw new CometError('usage', `no editor can be opened here: ${next}`);
}

/** Words as a shell would see them, quotes included, but no shell runs. */
function split(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}

/** Runs an editor and waits until it is closed. @throws CometError `usage` when it fails */
export async function runEditor([program = '', ...args]: readonly string[]): Promise<void> {
  const { runInForeground } = await import('../../common/run-process.ts');
  const { exitCode, failure } = await runInForeground(program, args, process.env);
  if (failure !== null) throw new CometError('usage', `the editor ${program} cannot be started; set EDITOR`);
  if (exitCode === 0) return;
  throw new CometError('usage', `the editor ${program} ended with ${exitCode}; nothing was changed`);
}
