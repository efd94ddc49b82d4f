import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ensureCerts, loadLeaf, removeCerts } from '../../../certs/index.ts';
import { type HomePaths, homePaths } from '../../../common/paths.ts';

const HOST = 'api.anthropic.com';
const DAY_MS = 86_400_000;

let dir: string;
let paths: HomePaths;
let nowMs: number;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-rotation-'));
  paths = homePaths(path.join(dir, 'home'));
  nowMs = Date.now();
});

afterEach(async () => {
  await removeCerts(paths);
  rmSync(dir, { recursive: true, force: true });
});

/** What a session that read `bundle` at its start says to the leaf served at `nowMs`. */
async function served(bundle: string): Promise<string> {
  const state = loadLeaf(paths, nowMs);
  if (state.kind === 'refused') return 'no leaf';
  const { leaf } = state;
  const server = tls.createServer({ key: leaf.key, cert: leaf.cert });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await new Promise((resolve) => {
      const client = tls.connect({ port, host: '127.0.0.1', servername: HOST, ca: bundle });
      client.once('secureConnect', () => {
        client.destroy();
        resolve('accepted');
      });
      client.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

const session = (): string => readFileSync(path.join(paths.certsDir, 'bundle.pem'), 'utf8');
const ensure = () => ensureCerts(paths, { nowMs, userExtraCaFile: null });

it('sessions with the old, both or the new root are served through a rotation', async () => {
  // The first generation is as old as it can be while OpenSSL, whose clock is the real one, still accepts it.
  const realMs = nowMs;
  nowMs = realMs - 394 * DAY_MS;
  const first = await ensure();
  const old = session();

  nowMs = first.notAfterMs - 31 * DAY_MS;
  await ensure();
  expect(session()).toBe(old);

  nowMs = first.notAfterMs - 30 * DAY_MS + 1_000;
  expect((await ensure()).change).toBe('kept');
  const both = session();
  expect(both).not.toBe(old);

  nowMs = realMs;
  expect((await ensure()).change).toBe('kept');
  expect([await served(old), await served(both)]).toEqual(['accepted', 'accepted']);

  // The last day: from here on the next leaf is served.
  nowMs = first.notAfterMs - DAY_MS / 2;
  const renewed = await ensure();
  expect(renewed.change).toBe('renewed');
  const fresh = session();
  expect([await served(both), await served(fresh)]).toEqual(['accepted', 'accepted']);
  // A session that is older than the overlap has to start anew; no leaf of its own is kept for it.
  expect(await served(old)).not.toBe('accepted');
  expect(loadLeaf(paths, nowMs).kind).toBe('usable');
});
