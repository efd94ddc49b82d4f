import { rm } from 'node:fs/promises';
import { ensureDir } from '../../common/files.ts';

/**
 * Makes the emptied `dir` the folder of temporary files: LanceDB leaves folders there, which the next start removes.
 * @param env  the process's own environment
 */
export async function useTempDir(env: NodeJS.ProcessEnv, dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true });
  await ensureDir(dir);
  for (const name of ['TMPDIR', 'TMP', 'TEMP']) env[name] = dir;
}
