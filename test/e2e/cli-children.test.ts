import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTestCerts, type TestCerts } from '../helpers/certs.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { type ConnectProxy, startConnectProxy } from '../helpers/connect-proxy.ts';
import { type StandIn, startStandIn } from '../helpers/tls-client.ts';

const hasCurl = spawnSync('curl', ['--version']).status === 0;
const LOGIN = 'jane:s3cret-of-jane';
/** Older than any plan: a conversation that would be worth a cut if Claude Code had sent it. */
const LONG = JSON.stringify({
  model: 'claude-sonnet-4-5',
  max_tokens: 10,
  messages: Array.from({ length: 41 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: `message ${at}: ${'words that take room '.repeat(150)}`,
  })),
});

let theirs: TestCerts;
let standIn: StandIn;
let other: StandIn;
let home: TestHome;

beforeAll(async () => {
  theirs = makeTestCerts(['api.anthropic.com', 'localhost', '127.0.0.1']);
  standIn = await startStandIn(theirs, (_request, response, body) => void response.end(`upstream ${body.length}`));
  other = await startStandIn(theirs, (_request, response) => void response.end('the other host'));
  home = await createHomeWithCerts({ COMET_CC_UPSTREAM: standIn.origin, COMET_CC_UPSTREAM_CA: theirs.caFile });
});

afterAll(async () => {
  await home.close();
  await standIn.close();
  await other.close();
  rmSync(theirs.dir, { recursive: true, force: true });
});

/** A shell command below whatever `run` runs, as Claude Code's Bash tool is. */
const bash = (script: string, env: Record<string, string> = {}, stdin = '') =>
  home.run(
    [
      'run',
      'node',
      '-e',
      `require('node:child_process').spawnSync('sh', ['-c', process.argv[1]], { stdio: 'inherit' })`,
      '--',
      script,
    ],
    { env, stdin },
  );

describe.skipIf(!hasCurl)('commands that Claude Code runs', () => {
  it('reach other hosts through a blind tunnel, which shows those hosts their own certificate', async () => {
    const { stdout } = await bash(`curl -sS --cacert '${theirs.caFile}' https://localhost:${other.port}/x`);
    expect(stdout).toBe('the other host');
    // Ours vouches for one host only and could not have been shown here.
    const trusting = await bash(`curl -sS --cacert "$NODE_EXTRA_CA_CERTS" https://localhost:${other.port}/x`);
    expect(trusting.stdout).toBe('');
    const status = (await home.json(['status', '--json'])) as {
      tunnels: { total: number };
      requests: { total: number };
    };
    expect(status.tunnels.total).toBe(2);
    expect(status.requests.total).toBe(0);
  });

  it('reach the target host unchanged from any client, and leave no session behind', async () => {
    const send = `curl -sS --cacert "$NODE_EXTRA_CA_CERTS" -H 'content-type: application/json' -H 'x-claude-code-session-id: 11111111-2222-4333-8444-555555555555' --data-binary @- https://api.anthropic.com/v1/messages`;
    const { stdout, stderr } = await bash(send, {}, LONG);
    expect(stderr).toBe('');
    expect(stdout).toBe(`upstream ${LONG.length}`);
    expect(standIn.received.at(-1)?.body.toString()).toBe(LONG);
    const status = (await home.json(['status', '--json'])) as { requests: object };
    expect(status.requests).toMatchObject({ total: 1, rewritten: 0, passed_through: 1, failed_open: 0 });
    expect(await home.json(['session', 'ls', '--json'])).toEqual([]);
  });

  it('go through the proxy of the user when there is one, and its password stays where it was', async () => {
    const proxy: ConnectProxy = await startConnectProxy({ login: LOGIN });
    try {
      await home.run(['stop', '--now']);
      const env = { https_proxy: proxy.url };
      const first = await bash(`curl -sS --cacert '${theirs.caFile}' https://localhost:${other.port}/x`, env);
      expect(first.stdout).toBe('the other host');
      const second = await bash(`curl -sS --cacert "$NODE_EXTRA_CA_CERTS" https://api.anthropic.com/v1/models`, env);
      expect(second.stdout).toBe('upstream 0');
      expect(proxy.asked).toEqual([`localhost:${other.port}`, `127.0.0.1:${standIn.port}`]);
      const shown = await home.run(['logs', '--json']);
      expect(JSON.parse(shown.stdout)).toContainEqual(expect.objectContaining({ message: 'the engine is ready' }));
      const doctor = await home.run(['doctor', '--json'], { env });
      expect(doctor.stdout).toContain(`through http://127.0.0.1:${proxy.port}`);
      expect(shown.stdout + doctor.stdout).not.toContain('s3cret');
    } finally {
      proxy.close();
    }
  });

  it('go through a proxy that speaks TLS under a private CA, which NODE_EXTRA_CA_CERTS names', async () => {
    const proxy = await startConnectProxy({ login: LOGIN, certs: theirs });
    try {
      await home.run(['stop', '--now']);
      const env = { https_proxy: proxy.url, NODE_EXTRA_CA_CERTS: theirs.caFile };
      const first = await bash(`curl -sS --cacert '${theirs.caFile}' https://localhost:${other.port}/x`, env);
      expect(first.stdout).toBe('the other host');
      const second = await bash(`curl -sS --cacert "$NODE_EXTRA_CA_CERTS" https://api.anthropic.com/v1/models`, env);
      expect(second.stdout).toBe('upstream 0');
      expect(proxy.asked).toEqual([`localhost:${other.port}`, `127.0.0.1:${standIn.port}`]);
    } finally {
      proxy.close();
    }
  });
});
