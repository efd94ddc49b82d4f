import { existsSync } from 'node:fs';
import type { Config } from '../../common/config.ts';
import { type DaemonSetup, prepareDaemon } from '../../engine/lifecycle/index.ts';
import type { Context } from '../context.ts';

/** Prepares a start and says on a terminal what takes its time; the caller clears the line once the daemon runs. */
export async function prepareWithProgress(context: Context, flags: Partial<Config>): Promise<DaemonSetup> {
  const { paths, term } = context;
  const isNew = !existsSync(paths.certsDir);
  if (isNew) term.progress('comet-cc, first run, 1 of 2: creating certificates…');
  const setup = await prepareDaemon(context, flags);
  term.progress(
    isNew ? 'comet-cc, first run, 2 of 2: opening memory and loading the embedder…' : 'comet-cc: starting…',
  );
  return setup;
}
