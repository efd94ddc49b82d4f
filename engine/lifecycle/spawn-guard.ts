import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CometError } from '../../common/errors.ts';
import { rotateLarge } from '../../common/log.ts';
import type { HomePaths } from '../../common/paths.ts';

export type Spawned =
  | { readonly kind: 'listening'; readonly port: number; readonly child: ChildProcess }
  | { readonly kind: 'port_in_use'; readonly port: number; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string };

/** Messages of the guard to its parent. */
type GuardMessage =
  | { readonly type: 'listening' | 'healthy'; readonly port: number }
  | { readonly type: 'port_in_use'; readonly port: number; readonly message?: string }
  | { readonly type: 'failed'; readonly message: string };

export interface SpawnOptions {
  readonly paths: HomePaths;
  readonly env: NodeJS.ProcessEnv;
  /** Stays a child of this process and writes to its terminal, instead of running in the background. */
  readonly foreground: boolean;
  readonly timeoutMs: number;
}

/** The guard holds little but sockets, and by default V8 collects their garbage only after tens of megabytes. */
const FLAGS = ['--max-semi-space-size=2', '--optimize-for-size'];
const GUARD = fileURLToPath(new URL('../../bin/guard.js', import.meta.url));

function guardLogFile(paths: HomePaths): string {
  return path.join(paths.logsDir, 'guard.log');
}

/** Resolves as soon as it is known whether the new guard owns its port. */
export async function spawnGuard(options: SpawnOptions): Promise<Spawned> {
  const child = launch(options);
  const spawned = await firstWord(child, options);
  if (!options.foreground && child.connected) child.disconnect();
  if (!options.foreground) child.unref();
  return spawned;
}

function launch({ paths, env, foreground }: SpawnOptions): ChildProcess {
  if (foreground) return fork(GUARD, [], { env, execArgv: FLAGS, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const file = guardLogFile(paths);
  rotateLarge(file);
  const log = openSync(file, 'a', 0o600);
  try {
    return fork(GUARD, [], {
      env: { ...env, COMET_CC_GUARD_LOG: file },
      execArgv: FLAGS,
      // The daemon outlives the directory that it was started from.
      cwd: paths.home,
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
  } finally {
    closeSync(log);
  }
}

function firstWord(child: ChildProcess, options: SpawnOptions): Promise<Spawned> {
  return new Promise((resolve, reject) => {
    const where = options.foreground ? 'see above' : `see ${guardLogFile(options.paths)}`;
    const settle = (spawned: Spawned): void => {
      clearTimeout(timer);
      child.removeAllListeners('message');
      child.off('exit', onExit);
      resolve(spawned);
    };
    const onExit = (code: number | null): void =>
      settle({ kind: 'failed', message: `the guard ended with code ${code ?? 'none'} as it started; ${where}` });
    const timer = setTimeout(() => {
      settle({ kind: 'failed', message: `the guard did not listen within ${options.timeoutMs} ms; ${where}` });
    }, options.timeoutMs);
    child.once('exit', onExit);
    child.once('error', (error) => {
      reject(new CometError('daemon_unhealthy', `the guard could not be started; ${where}`, { cause: error }));
    });
    child.on('message', (message) => {
      const word = message as GuardMessage;
      if (word.type === 'listening' || word.type === 'healthy') settle({ kind: 'listening', port: word.port, child });
      else if (word.type === 'port_in_use') settle({ ...word, kind: 'port_in_use', message: word.message ?? '' });
      else if (word.type === 'failed') settle({ kind: 'failed', message: word.message });
    });
  });
}
