import { type ChildProcess, spawn } from 'node:child_process';
import os from 'node:os';

const PASSED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
/** These a terminal sends to the whole foreground group: passing them on would deliver them twice. */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

export interface ChildCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Runs a command on this process's own terminal and passes signals on.
 *
 * @returns its exit code; 128 + n when signal n ended it, 127 when it is not found, 126 when it cannot be run
 */
export function runChild({ command, args, env }: ChildCommand, say: (text: string) => void): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(command, [...args], { env, stdio: 'inherit' });
    const stopPassing = passSignals(child);
    const settle = (code: number): void => {
      stopPassing();
      resolve(code);
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      const missing = error.code === 'ENOENT';
      say(`comet-cc: ${command} ${missing ? 'was not found' : `cannot be run (${error.code ?? error.message})`}`);
      settle(missing ? 127 : 126);
    });
    child.once('exit', (code, signal) => settle(signal === null ? (code ?? 1) : 128 + os.constants.signals[signal]));
  });
}

function passSignals(child: ChildProcess): () => void {
  const atTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
  const passers = PASSED.map((signal) => {
    const pass = (): void => {
      if (!atTerminal || !FROM_TERMINAL.has(signal)) child.kill(signal);
    };
    process.on(signal, pass);
    return () => process.off(signal, pass);
  });
  return () => {
    for (const stop of passers) stop();
  };
}
