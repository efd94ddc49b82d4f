import { runInForeground } from '../../common/run-process.ts';

const PASSED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
/** A terminal sends these to the whole foreground group: passing them on would deliver them twice. */
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
export async function runCommand({ command, args, env }: ChildCommand, say: (text: string) => void): Promise<number> {
  let stopPassing: () => void = () => {};
  const { exitCode, failure } = await runInForeground(command, args, env, (send) => {
    stopPassing = passSignals(send);
  });
  stopPassing();
  if (failure === null) return exitCode;
  say(`comet-cc: ${command} ${failure === 'ENOENT' ? 'was not found' : `cannot be run (${failure})`}`);
  return failure === 'ENOENT' ? 127 : 126;
}

function passSignals(send: (signal: NodeJS.Signals) => void): () => void {
  const atTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
  const passers = PASSED.map((signal) => {
    const pass = (): void => {
      if (!atTerminal || !FROM_TERMINAL.has(signal)) send(signal);
    };
    process.on(signal, pass);
    return () => process.off(signal, pass);
  });
  return () => {
    for (const stop of passers) stop();
  };
}
