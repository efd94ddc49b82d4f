import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeTestCerts } from '../../test/helpers/certs.ts';
import { type Daemon, startDaemon } from './daemon.ts';
import type { Ways } from './first-byte.ts';

export interface Stage {
  readonly ways: Ways;
  readonly daemon: Daemon;
  close(): Promise<void>;
}

/**
 * The stand-in, http-mitm-proxy and the daemon, each in its own process; all of it is gone after `close`.
 *
 * @param keepAliveMs  how long the stand-in keeps idle connections; 0: always
 * @param env  more of the daemon's environment
 */
export async function openStage(keepAliveMs = 0, env: Readonly<Record<string, string>> = {}): Promise<Stage> {
  // Short: the path of a Unix socket has about a hundred bytes.
  const folder = await mkdtemp(path.join(os.tmpdir(), 'cc-bench-'));
  const certs = makeTestCerts(['127.0.0.1', 'localhost', 'api.anthropic.com']);
  const children: ChildProcess[] = [];
  const start = async (name: string, args: readonly string[], input = ''): Promise<number> => {
    const file = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
    const child = fork(file, args, { stdio: ['pipe', 'ignore', 'ignore', 'ipc'] });
    children.push(child);
    child.stdin?.end(input);
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return port;
  };
  let daemon: Daemon | null = null;
  const close = async (): Promise<void> => {
    await daemon?.stop();
    for (const child of children) child.kill();
    for (const made of [folder, certs.dir]) await rm(made, { recursive: true, force: true });
  };
  try {
    const port = await start('stand-in', [String(keepAliveMs)], JSON.stringify({ key: certs.key, cert: certs.cert }));
    const caFolder = path.join(folder, 'ca');
    await mkdir(caFolder);
    const barePort = await start('bare', [String(port), caFolder, certs.caFile]);
    daemon = await startDaemon(folder, { port, caFile: certs.caFile }, env);
    const bareCa = await readFile(path.join(caFolder, 'certs/ca.pem'), 'utf8');
    const ways: Ways = {
      direct: { port, ca: certs.ca, servername: 'localhost', connect: null },
      bare: { port: barePort, ca: bareCa, servername: 'api.anthropic.com', connect: '' },
      ours: daemon.way,
    };
    return { ways, daemon, close };
  } catch (error) {
    await close();
    throw error;
  }
}
