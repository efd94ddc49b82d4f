import { CometError } from '../../common/errors.ts';

/** A program and its arguments; never a line for a shell. */
export type Argv = readonly string[];

/** Runs it and returns its stdout. @throws CometError `trust_failed` */
export type RunCommand = (argv: Argv) => Promise<string>;

const TIMEOUT_MS = 120_000;

export const runCommand: RunCommand = async ([command = '', ...args]) => {
  try {
    // sudo asks on the terminal itself.
    const { execa } = await import('execa');
    const { stdout } = await execa(command, args, {
      stdin: 'inherit',
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { shortMessage } = error as { shortMessage?: string };
    throw new CometError('trust_failed', `${shortMessage ?? command}; nothing more was done`, { cause: error });
  }
};
