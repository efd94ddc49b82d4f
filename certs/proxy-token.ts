import { randomBytes } from 'node:crypto';
import { readOrCreateSecret } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';

/**
 * The install's proxy token, 256 bits as base64url; made on first use.
 *
 * @throws CometError `unsafe_file` when its file is not ours alone
 */
export async function proxyToken(paths: HomePaths): Promise<string> {
  return readOrCreateSecret(paths.proxyTokenFile, () => randomBytes(32).toString('base64url'));
}
