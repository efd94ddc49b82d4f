import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CometError, type ErrorCode } from './errors.ts';
import { PLATFORM } from './paths.ts';
import { toText } from './text.ts';

const OUTPUT_CHARS = 1_000_000;
/** Loaded on first use: execa is 130 modules, and most engines run no program. */
const loadExeca = async () => (await import('execa')).execa;

interface ChildRun {
  readonly file: string;
  readonly args: readonly string[];
  readonly input: string;
  /** The environment of this process when left out. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs: number;
  /** Between SIGTERM and SIGKILL, and again until open pipes are closed. */
  readonly graceMs: number;
  /** More than this on stdout and stderr together ends the child. */
  readonly maxChars?: number;
}

export interface ChildEnd {
  readonly how: 'exited' | 'timeout' | 'flooded' | 'missing' | 'aborted';
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program and captures its output. Its whole process group has ended when this resolves. */
export async function runChild(run: ChildRun, signal?: AbortSignal): Promise<ChildEnd> {
  let how: ChildEnd['how'] = 'exited';
  const { maxChars = OUTPUT_CHARS } = run;
  const execa = await loadExeca();
  const child = execa(run.file, run.args, {
    input: run.input,
    ...(run.env === undefined ? {} : { env: run.env, extendEnv: false }),
    ...(run.cwd === undefined ? {} : { cwd: run.cwd }),
    detached: true,
    reject: false,
    cleanup: false,
    maxBuffer: maxChars * 2,
    stripFinalNewline: false,
  });
  const timers: NodeJS.Timeout[] = [];
  const later = (ms: number, act: () => void): void => {
    timers.push(setTimeout(act, ms));
  };
  const end = (cause: ChildEnd['how']): void => {
    if (how !== 'exited') return;
    how = cause;
    killGroup(child.pid, 'SIGTERM');
    later(run.graceMs, () => killGroup(child.pid, 'SIGKILL'));
    // A grandchild outside the group may keep the pipes open.
    later(run.graceMs * 2, () => {
      child.stdout.destroy();
      child.stderr.destroy();
    });
  };
  let printed = 0;
  const onData = (chunk: { readonly length: number }): void => {
    printed += chunk.length;
    // execa would only stop reading, and then wait for the child.
    if (printed > maxChars) end('flooded');
  };
  child.stdout.on('data', onData);
  child.stderr.on('data', onData);
  const onAbort = (): void => end('aborted');
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  later(run.timeoutMs, () => end('timeout'));
  const result = await child;
  for (const timer of timers) clearTimeout(timer);
  signal?.removeEventListener('abort', onAbort);
  killGroup(child.pid, 'SIGKILL');
  const { code = '' } = (result.cause ?? {}) as NodeJS.ErrnoException;
  if (how === 'exited' && ['ENOENT', 'EACCES'].includes(code)) how = 'missing';
  return { how, exitCode: result.exitCode ?? -1, stdout: toText(result.stdout), stderr: toText(result.stderr) };
}

/**
 * Runs a command of the system, which may ask on the terminal as sudo does.
 * @returns its stdout
 * @throws CometError `code`
 */
export async function runCommand(
  [file = '', ...args]: readonly string[],
  { code, timeoutMs }: { readonly code: ErrorCode; readonly timeoutMs: number },
): Promise<string> {
  const execa = await loadExeca();
  const result = await execa(file, args, {
    stdin: 'inherit',
    timeout: timeoutMs,
    maxBuffer: 64 * 1024 * 1024,
    reject: false,
  });
  if (!result.failed) return result.stdout;
  const reason = `${result.exitCode ?? result.code ?? 'timeout'}`;
  const stderr = (result.stderr ?? '').replace(/\s+/g, ' ').trim();
  const message = `${[file, ...args].join(' ')} failed (${reason}) ${stderr}`.trim();
  throw new CometError(code, message, { cause: result.cause });
}

/**
 * Runs a program on this process's own terminal; `onStart` gets what sends it signals. `exitCode` is 128 + n when signal n
 * ended it; `failure` is why it could not be started: `ENOENT`, `EACCES`.
 */
export async function runInForeground(
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  onStart: (send: (signal: NodeJS.Signals) => void) => void = () => {},
) {
  const program = pastWrappers(file, env['PATH']);
  if (program === '') return { exitCode: 126, failure: 'each on PATH is a script that runs comet-cc again' };
  const execa = await loadExeca();
  const child = execa(program, args, {
    env,
    extendEnv: false,
    stdio: 'inherit',
    reject: false,
    cleanup: false,
    // What ends at SIGTERM may take its time.
    forceKillAfterDelay: false,
  });
  onStart((signal) => void child.kill(signal));
  const { exitCode, signal, code } = await child;
  if (signal !== undefined) return { exitCode: 128 + os.constants.signals[signal], failure: null };
  return { exitCode: exitCode ?? 1, failure: exitCode === undefined ? (code ?? 'unknown') : null };
}

const SCRIPT_BYTES = 20_000;
const WRAPPER = /comet-cc\S{0,4} run (?:-\S{1,9} ){0,3}["']?claude\b/;

/** `name`; past scripts of that name on PATH that run `comet-cc run claude`, the next file, or '' where there is none. */
function pastWrappers(name: string, searchPath = ''): string {
  // A path names its file.
  const files = name.includes('/') ? [] : searchPath.split(path.delimiter).map((dir) => path.join(dir, name));
  const first = files.find((file) => isWrapper(file) !== undefined);
  return first && isWrapper(first) ? (files.find((file) => isWrapper(file) === false) ?? '') : name;
}

/** Undefined where no file can be run. */
function isWrapper(file: string): boolean | undefined {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).size < SCRIPT_BYTES && WRAPPER.test(readFileSync(file, 'latin1'));
  } catch {
    return undefined;
  }
}

export function killGroup(pid: number | undefined, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid === undefined) return;
  try {
    const end = PLATFORM.endTree(pid);
    if ('kill' in end) process.kill(end.kill, signal);
    else void loadExeca().then((execa) => execa(end.run[0], end.run.slice(1), { reject: false }));
  } catch (error) {
    // ESRCH: the group has ended. EPERM: a zombie group on macOS.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
