import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { cp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as after } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { homePaths } from '../../common/paths.ts';
import { canariesBelow } from '../helpers/canaries.ts';
import { makeTestCerts, type TestCerts } from '../helpers/certs.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { busyness } from '../helpers/cpu-load.ts';
import { tempDirs } from '../helpers/temp-dir.ts';
import {
  ask,
  CLIENT,
  openRequest,
  type StandIn,
  secureThrough,
  startStandIn,
  type Via,
} from '../helpers/tls-client.ts';

interface Status {
  readonly pid: number;
  readonly version: string;
  readonly proxy: { readonly port: number };
  readonly engine: { readonly state: string; readonly pid: number; readonly restarts: number };
}

const tempDir = tempDirs();
let theirs: TestCerts;
let standIn: StandIn;
let held: ServerResponse | null = null;
let home: TestHome;

beforeAll(async () => {
  theirs = makeTestCerts(['api.anthropic.com', '127.0.0.1']);
  standIn = await startStandIn(theirs, (request, response, body) => {
    if (request.url !== '/v1/slow') return void response.end(body);
    held = response;
    response.writeHead(200, { 'content-type': 'text/plain' }).write('first, ');
  });
});
afterAll(async () => {
  await standIn.close();
  rmSync(theirs.dir, { recursive: true, force: true });
});
beforeEach(async () => {
  home = await createHomeWithCerts({ COMET_CC_UPSTREAM: standIn.origin, COMET_CC_UPSTREAM_CA: theirs.caFile });
});
afterEach(() => home.close());

/** Where `env` leads, and the CA that it names. */
async function way(): Promise<{ via: Via; ca: string }> {
  const env = (await home.json(['env', '--shell', 'json'])) as { HTTPS_PROXY: string; NODE_EXTRA_CA_CERTS: string };
  const { port, username, password } = new URL(env.HTTPS_PROXY);
  const login = Buffer.from(`${username}:${password}`).toString('base64');
  const via = { port: Number(port), connectHeaders: `Proxy-Authorization: Basic ${login}\r\n` };
  return { via, ca: await readFile(env.NODE_EXTRA_CA_CERTS, 'utf8') };
}

/** The program in a folder of its own. */
async function install(): Promise<string> {
  const [app, root] = [await tempDir(), path.resolve('.')];
  await cp(path.join(root, 'dist'), path.join(app, 'dist'), { recursive: true });
  await cp(path.join(root, 'package.json'), path.join(app, 'package.json'));
  await symlink(path.join(root, 'node_modules'), path.join(app, 'node_modules'));
  return app;
}

it('a session ends with its own exit code though an upgrade removed the program meanwhile', async () => {
  const app = await install();
  const claude = path.join(app, 'claude');
  await writeFile(claude, `#!/bin/sh\nrm -r '${app}/dist'\nexit 3\n`, { mode: 0o700 });
  const child = spawn(process.execPath, [path.join(app, 'dist/bin/comet-cc.js'), 'run', claude], { env: home.env });
  expect(await once(child, 'close')).toEqual([3, null]);
});

it('a restart after an upgrade lets a running stream end, keeps the port, and the new files take over', async () => {
  const app = await install();
  const packageFile = path.join(app, 'package.json');
  const version = async (text: string): Promise<void> => {
    const before = JSON.parse(await readFile(packageFile, 'utf8')) as object;
    await writeFile(packageFile, JSON.stringify({ ...before, version: text }));
  };
  const cli = async (...args: string[]): Promise<Status> => {
    const child = spawn(process.execPath, [path.join(app, 'dist/bin/comet-cc.js'), ...args], { env: home.env });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(0);
    return JSON.parse(text) as Status;
  };

  await version('8.8.8');
  const old = await cli('start', '--json');
  expect(old.version).toBe('8.8.8');
  const { via, ca } = await way();
  const secure = await secureThrough(via, ca);
  const request = openRequest(secure, { path: '/v1/slow', headers: CLIENT });
  request.end('{}');
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  await once(response, 'readable');

  await version('9.9.9');
  const restarting = cli('restart', '--json');
  // The old engine has heard of it when new work no longer reaches it: the upstream's own certificate shows.
  await expect
    .poll(() =>
      ask(via, theirs.ca, { headers: CLIENT, body: '{}' }).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(200);
  held?.end('last');
  let text = '';
  for await (const chunk of response) text += chunk;
  expect(text).toBe('first, last');

  const fresh = await restarting;
  expect(fresh).toMatchObject({ version: '9.9.9', proxy: { port: old.proxy.port }, engine: { state: 'healthy' } });
  expect(fresh.pid).not.toBe(old.pid);
  expect(fresh.engine.pid).not.toBe(old.engine.pid);
  expect((await ask(via, ca, { headers: CLIENT, body: '{"a":1}' })).body.toString()).toBe('{"a":1}');
});

/** Starts the daemon of the program in `app`. */
async function startFrom(app: string): Promise<Status> {
  const child = spawn(process.execPath, [path.join(app, 'dist/bin/comet-cc.js'), 'start'], { env: home.env });
  expect(await once(child, 'close')).toEqual([0, null]);
  return (await home.status()) as Status;
}

/** A build that names the parser of times otherwise, in the place of the one that runs. */
async function update(app: string): Promise<void> {
  const next = await install();
  const chunks = path.join(next, 'dist', 'chunks');
  const names = readdirSync(chunks);
  const parser = names.find((name) => /^en-.*\.js$/.test(name)) as string;
  await rename(path.join(chunks, parser), path.join(chunks, 'other.js'));
  for (const name of names.filter((each) => each !== parser)) {
    const text = await readFile(path.join(chunks, name), 'utf8');
    if (text.includes(parser)) await writeFile(path.join(chunks, name), text.replaceAll(parser, 'other.js'));
  }
  await rename(path.join(app, 'dist'), path.join(next, 'old'));
  await rename(path.join(next, 'dist'), path.join(app, 'dist'));
  await rm(path.join(next, 'old'), { recursive: true });
}

it('after an update the engine takes the new files once commands have ended, and no request passes without memory', async () => {
  const app = await install();
  home.env['COMET_CC_LOG_LEVEL'] = 'debug';
  const old = await startFrom(app);
  const { via, ca } = await way();
  const notes = path.join(app, 'notes.md');
  await writeFile(notes, '# Notes\n\nThe staging database listens on port 5433.\n');
  // A command that has not said all it wants.
  const body = JSON.stringify({ file: notes });
  const headers = { host: 'localhost', 'content-type': 'application/json' };
  const socketPath = homePaths(home.home).engineSocket;
  const command = http.request({ socketPath, path: '/v1/memory/import', method: 'POST', headers });
  const answered = once(command, 'response') as Promise<[IncomingMessage]>;
  command.write(body.slice(0, 5));
  await update(app);
  const add = () => home.run(['task', 'add', 'Call Ines', '--at', 'tomorrow 9:00']);
  expect(await add()).toMatchObject({ code: 1, stderr: expect.stringContaining('try again in some seconds') });
  const log = () => readFile(path.join(homePaths(home.home).logsDir, 'engine.log'), 'utf8');
  await expect.poll(log, { timeout: 40_000 }).toContain('an update waits');
  command.end(body.slice(5));
  const [answer] = await answered;
  expect([answer.statusCode, await text(answer)]).toEqual([200, expect.stringContaining('"chunks":1')]);
  const status = async () => (await home.status()) as Status;
  await expect.poll(async () => (await status()).engine.pid, { timeout: 40_000 }).not.toBe(old.engine.pid);
  expect((await ask(via, ca, { headers: CLIENT, body: '{"a":1}' })).body.toString()).toBe('{"a":1}');
  expect(await status()).toMatchObject({ pid: old.pid, engine: { state: 'healthy', restarts: 0 }, other_build: '' });
  expect(await add()).toMatchObject({ code: 0 });
});

it('a start replaces a daemon whose files an update removed', async () => {
  const app = await install();
  const old = await startFrom(app);
  await rm(path.join(app, 'dist'), { recursive: true });
  const fresh = (await home.json(['start', '--json'])) as Status;
  expect(fresh).toMatchObject({ engine: { state: 'healthy' }, proxy: { port: old.proxy.port } });
  expect(fresh.pid).not.toBe(old.pid);
});

it('an open session continues after an uninstall, and the port closes with it; a new start gets the port', async () => {
  const old = (await home.json(['start', '--json'])) as Status;
  const { via } = await way();
  const session = net.connect(homePaths(home.home).guardSocket);
  session.write('{"op":"session"}\n');
  expect(await home.run(['uninstall', '--yes'])).toMatchObject({ code: 0 });
  expect((await ask(via, theirs.ca, { headers: CLIENT, body: '{"a":1}' })).body.toString()).toBe('{"a":1}');
  const fresh = (await home.json(['start', '--json'])) as Status;
  expect(fresh).toMatchObject({ engine: { state: 'healthy' }, proxy: { port: old.proxy.port } });
  session.destroy();
});

it('a daemon is healthy within 2 s after the machine slept', async () => {
  const before = (await home.json(['start', '--json'])) as Status;
  const { via, ca } = await way();
  expect((await ask(via, ca, { headers: CLIENT, body: '{"a":1}' })).status).toBe(200);
  const pids = [before.pid, before.engine.pid];
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    for (const socket of standIn.sockets) socket.destroy();
    // The pause itself: beyond what makes an engine late and a clock jump.
    await after(6_000);
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
  const wokenAt = performance.now();
  expect((await ask(via, ca, { headers: CLIENT, body: '{"a":2}' })).body.toString()).toBe('{"a":2}');
  expect(performance.now() - wokenAt).toBeLessThan(2_000 * busyness());
  const status = (await home.json(['status', '--json'])) as Status;
  expect(status.engine).toEqual(before.engine);
});

it('certificates are checked although the shell that starts it turns that off', async () => {
  await home.run(['stop', '--now']);
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0', COMET_CC_UPSTREAM_CA: undefined };
  const { code, stderr } = await home.run(['start'], { env });
  expect(code).toBe(0);
  expect(stderr).toContain('the daemon ignores NODE_TLS_REJECT_UNAUTHORIZED=0');
  const { via, ca } = await way();
  const before = standIn.received.length;
  expect((await ask(via, ca, { headers: CLIENT, body: '{}' })).status).toBe(502);
  expect(standIn.received.length).toBe(before);
});

it('no key of the environment reaches the logs when the shell that starts it debugs Node', async () => {
  await home.run(['stop', '--now']);
  const secret = 'AbCdEf0123456789zyxw';
  const { result } = home.spawn(['start'], { env: { NODE_DEBUG: 'child_process', DEPLOY_TOKEN: secret } });
  expect(await result).toMatchObject({ code: 0 });
  expect(canariesBelow(home.home, [{ name: 'token', secret }])).toEqual([]);
});
