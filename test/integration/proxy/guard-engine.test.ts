import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGuard, type Guard, type GuardOptions } from '../../../proxy/guard.ts';
import { makeTestCerts, type TestCerts } from '../../helpers/certs.ts';
import { ask, CLIENT, type StandIn, startStandIn, type Via } from '../../helpers/wire.ts';

const TOKEN = 'token-of-the-tests-0123456789';
const AUTH = `Proxy-Authorization: Basic ${Buffer.from(`comet-cc:${TOKEN}`).toString('base64')}\r\n`;
const REAL = path.resolve('test/fixtures/engines/real.mjs');

let ours: TestCerts;
let theirs: TestCerts;
let standIn: StandIn;
let home: string;
let guard: Guard | null = null;

beforeAll(async () => {
  ours = makeTestCerts(['api.anthropic.com']);
  theirs = makeTestCerts(['api.anthropic.com', 'localhost', '127.0.0.1']);
  home = mkdtempSync(path.join(os.tmpdir(), 'cc-test-'));
  standIn = await startStandIn(theirs, (_request, response, body) => response.end(body));
});

afterEach(async () => {
  await guard?.stop();
  guard = null;
});

afterAll(async () => {
  await standIn.close();
  for (const dir of [ours.dir, theirs.dir, home]) rmSync(dir, { recursive: true });
});

async function startGuard(options: Partial<GuardOptions> = {}): Promise<Via> {
  guard = createGuard({
    port: 0,
    upstream: standIn.origin,
    token: TOKEN,
    socketPath: path.join(home, 'run', 'guard.sock'),
    enginePath: REAL,
    engineEnv: {
      ...process.env,
      TEST_KEY: ours.keyFile,
      TEST_CERT: ours.certFile,
      COMET_CC_UPSTREAM: standIn.origin,
      COMET_CC_UPSTREAM_CA: theirs.caFile,
    },
    version: '0.0.0',
    timings: { drainMs: 1_000 },
    ...options,
  });
  return { port: await guard.listen(), connectHeaders: AUTH };
}

describe('guard and engine', () => {
  it('carries a request through guard, engine, TLS and upstream', async () => {
    const via = await startGuard();
    const reply = await ask(via, ours.ca, { headers: CLIENT, body: '{"model":"x"}' });
    expect(reply.status).toBe(200);
    expect(reply.body.toString()).toBe('{"model":"x"}');
    expect(guard?.status().engine.state).toBe('healthy');
    expect(guard?.status().tunnels).toMatchObject({ total: 1, failed_open: 0 });
  });
});
