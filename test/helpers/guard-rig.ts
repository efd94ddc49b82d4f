import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Guard, type GuardOptions } from '../../proxy/guard/index.ts';
import { makeTestCerts, type TestCerts } from './certs.ts';
import { type Answer, type StandIn, startStandIn, type Via } from './tls-client.ts';

export const TOKEN = 'token-of-the-tests-0123456789';
export const AUTH = `Proxy-Authorization: Basic ${Buffer.from(`comet-cc:${TOKEN}`).toString('base64')}\r\n`;
export const engineScript = (name: string): string => path.resolve('test/fixtures/engines', `${name}.mjs`);

export interface World {
  /** Signs the leaf that the engine shows. */
  readonly ours: TestCerts;
  /** Signs what the upstream shows, to the engine and to a client in a blind tunnel. */
  readonly theirs: TestCerts;
  readonly standIn: StandIn;
  readonly home: string;
  readonly socketPath: string;
  options(over?: Partial<GuardOptions>): GuardOptions;
  /** Stopped by `close` if not before. */
  start(over?: Partial<GuardOptions>): Promise<{ guard: Guard; via: Via }>;
  stopAll(): Promise<void>;
  close(): Promise<void>;
}

/** A stand-in upstream, certificates and a home for guards whose engines are child processes. */
export async function makeWorld(answer: Answer): Promise<World> {
  const ours = makeTestCerts(['api.anthropic.com']);
  const theirs = makeTestCerts(['api.anthropic.com', 'localhost', '127.0.0.1']);
  const home = mkdtempSync(path.join(os.tmpdir(), 'cc-test-'));
  const standIn = await startStandIn(theirs, answer);
  const socketPath = path.join(home, 'run', 'guard.sock');
  const running = new Set<Guard>();
  const options = (over: Partial<GuardOptions> = {}): GuardOptions => ({
    port: 0,
    upstream: standIn.origin,
    token: TOKEN,
    socketPath,
    enginePath: engineScript('real'),
    engineEnv: {
      ...process.env,
      TEST_KEY: ours.keyFile,
      TEST_CERT: ours.certFile,
      COMET_CC_UPSTREAM: standIn.origin,
      COMET_CC_UPSTREAM_CA: theirs.caFile,
    },
    version: '0.0.0',
    build: '',
    // An engine is slow to start on a busy machine; tests of the hold itself shorten it.
    timings: { holdMs: 120_000 },
    ...over,
  });
  const stopAll = async (): Promise<void> => {
    // The second call ends it without a drain.
    await Promise.all([...running].flatMap((guard) => [guard.stop(), guard.stop()]));
    running.clear();
  };
  return {
    ours,
    theirs,
    standIn,
    home,
    socketPath,
    options,
    stopAll,
    async start(over) {
      const guard = new Guard(options(over));
      running.add(guard);
      return { guard, via: { port: await guard.listen(), connectHeaders: AUTH } };
    },
    async close() {
      await stopAll();
      await standIn.close();
      for (const dir of [ours.dir, theirs.dir, home]) rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** One line to a control socket, and the answer. */
export function control(socketPath: string, line: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(socketPath);
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('end', () => resolve(JSON.parse(text) as Record<string, unknown>));
    socket.on('error', reject);
    socket.write(`${line}\n`);
  });
}
