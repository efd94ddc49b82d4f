import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { statusLines } from '../../../../bin/commands/status.ts';
import { type Context, createContext } from '../../../../bin/context.ts';
import { checkBuild } from '../../../../bin/doctor/daemon.ts';
import { runProgram } from '../../../../bin/program.ts';
import { homePaths } from '../../../../common/paths.ts';
import { statusReport } from '../../../../engine/api/status-report.ts';
import { guardStatus, otherBuild } from '../../../../engine/lifecycle/control.ts';

let dir: string;
let context: Context;
let said: string[];
let servers: net.Server[];

/** A daemon of long ago: what was added to its answers since is not there. */
const GUARD = {
  nonce: 'n',
  pid: 7,
  version: '0.0.9',
  port: 8443,
  upstream: 'https://api.anthropic.com',
  target: 'api.anthropic.com:443',
  uptime_ms: 60_000,
  engine: { state: 'healthy', pid: 8, restarts: 0 },
  tunnels: { open: 0, total: 0, failed_open: 0 },
};
const REQUESTS = { total: 5, rewritten: 1, passed_through: 4, failed_open: 0 };
let status: object | null;
let refusal: object | null;

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'cc-build-'));
  const paths = homePaths(dir);
  mkdirSync(paths.runDir, { recursive: true });
  said = [];
  refusal = null;
  const stream = { write: (text: string) => said.push(text) };
  context = createContext({ env: { COMET_CC_HOME: dir }, stdout: stream, stderr: stream });
  status = { requests: REQUESTS, nodes: 3, llm: { backend: 'local', calls_today: 2, tokens_today: 9 } };
  servers = [
    net
      .createServer((socket) => void socket.once('data', () => socket.end(`${JSON.stringify(GUARD)}\n`)))
      .listen(paths.guardSocket),
    http
      .createServer((request, response) => {
        const result = request.url === '/v1/status' ? status : {};
        response.setHeader('connection', 'close');
        const late = result === null ? { code: 'daemon_unhealthy', message: 'late' } : null;
        const error = refusal ?? late;
        response.end(JSON.stringify(error === null ? { result } : { error }));
      })
      .listen(paths.engineSocket),
  ];
  await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))));
});

afterEach(async () => {
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  rmSync(dir, { recursive: true, force: true });
});

const report = async () => statusReport(context, await guardStatus(context.paths.guardSocket));

it('shows what a daemon of another build says, and that it is one', async () => {
  const known = await report();
  expect(known).toMatchObject({ requests: REQUESTS, nodes: 3, llm: { calls_today: 2, cost_usd_today: 0 } });
  const lines = statusLines({ ...known, project: null, other_proxy: '' }, (_, text) => text, Date.now());
  expect(lines).toContainEqual(expect.stringMatching(/^problem: the daemon is comet-cc 0\.0\.9, this command is /));
  expect(lines).toContain('  fix: comet-cc restart');
  expect(checkBuild(known)).toMatchObject({ ok: false, fix: 'comet-cc restart' });
});

it('says so where a command makes nothing of its answer', async () => {
  expect(await runProgram(['node', 'comet-cc', 'memory', 'about'], context)).toBe(1);
  expect(said.at(-1)).toMatch(/^comet-cc: the daemon is comet-cc 0\.0\.9, .*comet-cc restart brings both to one\n$/);
});

it('leaves it out where something else was typed than the command takes', async () => {
  expect(await runProgram(['node', 'comet-cc', 'memory', 'ls', '--since', 'soon'], context)).toBe(2);
  expect(said).toEqual([expect.stringMatching(/^comet-cc: --since expects /)]);
});

it('says so where the engine does not know what the command asks', async () => {
  refusal = { code: 'input_invalid', message: 'input: Unrecognized key: "later"' };
  expect(await runProgram(['node', 'comet-cc', 'memory', 'about'], context)).toBe(2);
  expect(said).toEqual([expect.stringContaining('"later"'), expect.stringContaining('comet-cc restart')]);
});

it('tells an engine that does not say in time from one that holds nothing', async () => {
  status = null;
  expect((await report()).problems).toEqual([expect.objectContaining({ message: expect.stringContaining('in time') })]);
});

it('knows a guard of another build, also of the same version', () => {
  const own = { version: '1', build: 'a' };
  expect(otherBuild({ version: '1', build: 'b' }, own)).toContain('another build');
  expect(otherBuild({ version: '1' }, own)).toContain('another build');
  expect(otherBuild({ version: '2', build: 'b' }, own)).toContain('comet-cc 2');
  expect(otherBuild({ version: '2', build: 'a' }, own)).toBe('');
});
