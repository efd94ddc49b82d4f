import type { HomePaths } from '../common/paths.ts';

/** What the kernel takes, on macOS one less than on Linux. */
const LONGEST_BYTES = 103;

/** A Unix socket's path is short by law; null where the home leaves room for ours. */
export function socketTooLong(paths: HomePaths): { readonly detail: string; readonly fix: string } | null {
  const longest = Math.max(Buffer.byteLength(paths.guardSocket), Buffer.byteLength(paths.engineSocket));
  if (process.platform === 'win32' || longest <= LONGEST_BYTES) return null;
  const room = LONGEST_BYTES - (longest - Buffer.byteLength(paths.home));
  return {
    detail: `COMET_CC_HOME is too long for a Unix socket (${longest} of ${LONGEST_BYTES} bytes)`,
    fix: `choose a folder whose path has at most ${room} bytes and set COMET_CC_HOME to it`,
  };
}
