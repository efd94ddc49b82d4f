import { rm } from 'node:fs/promises';
import { ensureDir } from '../../common/files.ts';

/** Where systems look for the place of temporary files. */
const NAMES = ['TMPDIR', 'TMP', 'TEMP'] as const;

/**
 * Runs `work` with `dir`, made anew, as the place of temporary files: what native code leaves there goes at the next
 * start.
 *
 * @param env  the process's own environment; as it was when this resolves
 */
export async function withTempDir<T>(env: NodeJS.ProcessEnv, dir: string, work: () => Promise<T>): Promise<T> {
  await rm(dir, { recursive: true, force: true });
  await ensureDir(dir);
  const before = NAMES.map((name) => [name, env[name]] as const);
  for (const name of NAMES) env[name] = dir;
  try {
    return await work();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
  }
}
