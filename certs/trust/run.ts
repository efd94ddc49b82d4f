/** A program and its arguments; never a line for a shell. */
export type Argv = readonly string[];

/** Returns the stdout of a command. @throws CometError `trust_failed` */
export type RunCommand = (argv: Argv) => Promise<string>;

export const runCommand: RunCommand = async (argv) => {
  const runner = await import('../../common/run-process.ts');
  return runner.runCommand(argv, { code: 'trust_failed', timeoutMs: 120_000 });
};
