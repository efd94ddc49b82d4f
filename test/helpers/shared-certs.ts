import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { CLI } from './cli.ts';

/** Makes the certificates of a home once for the run; each test that needs some copies them. */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (!existsSync(CLI)) return undefined;
  const home = await mkdtemp(path.join(os.tmpdir(), 'cc-certs-'));
  const env = { PATH: process.env['PATH'], HOME: home, COMET_CC_HOME: path.join(home, 'h'), COMET_CC_PORT: '1' };
  await execa(process.execPath, [CLI, 'env', '--shell', 'json'], { env, extendEnv: false });
  process.env['COMET_TEST_CERTS'] = path.join(home, 'h', 'certs');
  return () => rm(home, { recursive: true, force: true });
}
