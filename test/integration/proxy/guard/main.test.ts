import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import { AUTH, control, TOKEN } from '../../../helpers/guard-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { connectThrough } from '../../../helpers/tls-client.ts';

const tempDir = tempDirs();
const started: ChildProcess[] = [];

afterEach(async () => {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

async function home(mode = 0o600): Promise<ReturnType<typeof homePaths>> {
  const paths = homePaths(await tempDir());
  mkdirSync(paths.runDir, { mode: 0o700 });
  writeFileSync(paths.proxyTokenFile, `${TOKEN}\n`);
  chmodSync(paths.proxyTokenFile, mode);
  return paths;
}

function startMain(homeDir: string, port = 0): ChildProcess {
  const child = fork(path.resolve('dist/bin/guard.js'), [], {
    env: { ...process.env, COMET_CC_HOME: homeDir, COMET_CC_PORT: String(port), COMET_CC_LLM: 'off' },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  started.push(child);
  return child;
}

it('the guard process says where it listens, outlives its parent, stays small, and ends on SIGTERM', async () => {
  const paths = await home();
  const child = startMain(paths.home);
  const [message] = (await once(child, 'message')) as [{ type: string; port: number }];
  expect(message).toMatchObject({ type: 'listening' });
  child.disconnect();
  const { status, socket } = await connectThrough({
    port: message.port,
    connectHeaders: AUTH,
    authority: `127.0.0.1:${message.port}`,
  });
  expect(status).toBe(403);
  socket.destroy();
  expect(await control(paths.guardSocket, '{"op":"status"}')).toMatchObject({ pid: child.pid, port: message.port });
  const rss = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'));
  expect(Number(rss?.[1])).toBeLessThan(60 * 1024);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

it('names a port that another program holds, and leaves that program alone', async () => {
  const paths = await home();
  const stranger = net.createServer().listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  const { port } = stranger.address() as AddressInfo;
  const child = startMain(paths.home, port);
  const [message] = await once(child, 'message');
  expect(message).toMatchObject({ type: 'port_in_use', port });
  expect((await once(child, 'exit'))[0]).toBe(1);
  stranger.close();
});

it('the guard process trusts no token that others can read', async () => {
  const paths = await home(0o644);
  const child = startMain(paths.home);
  const [message] = await once(child, 'message');
  expect(message).toMatchObject({ type: 'failed', message: expect.stringContaining(paths.proxyTokenFile) });
  expect((await once(child, 'exit'))[0]).toBe(1);
});
