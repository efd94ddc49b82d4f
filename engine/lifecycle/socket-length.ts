import type { HomePaths } from '../../common/paths.ts';
import { PLATFORM, type Platform } from '../../common/paths.ts';

/** A Unix socket's path is short by law; null where the home leaves room for ours. */
export function socketTooLong(
  paths: HomePaths,
  platform: Platform = PLATFORM,
): { readonly detail: string; readonly fix: string } | null {
  const longest = Math.max(Buffer.byteLength(paths.guardSocket), Buffer.byteLength(paths.engineSocket));
  const most = platform.longestAddress;
  if (most === null || longest <= most) return null;
  const room = most - (longest - Buffer.byteLength(paths.home));
  return {
    detail: `COMET_CC_HOME is too long for a Unix socket (${longest} of ${most} bytes)`,
    fix: `choose a folder whose path has at most ${room} bytes and set COMET_CC_HOME to it`,
  };
}
