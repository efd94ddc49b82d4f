import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLanceBus } from '../../../../../memory/share/lancedb/bus.ts';
import { busContract } from '../../../../contract/bus.ts';
import { createInMemoryBus } from '../../../../helpers/in-memory-bus.ts';
import { isStored, type S3Server, startS3Server } from '../../../../helpers/s3-server.ts';

let dir: string;
let server: S3Server;

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'comet-test-'));
  server = await startS3Server(path.join(dir, 's3'));
});
afterAll(async () => {
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

describe('in memory', () => {
  const places = new Map<string, ReturnType<typeof createInMemoryBus>>();
  busContract(async (place) => {
    const bus = places.get(place) ?? createInMemoryBus();
    places.set(place, bus);
    return bus;
  });
});

describe('in a folder', () => {
  busContract(
    (place) => openLanceBus({ uri: path.join(dir, 'folder', place), env: {} }),
    (place, text) => isStored(path.join(dir, 'folder', place), text),
  );
});

describe('on an S3 server', () => {
  busContract(
    (place) => openLanceBus({ uri: `${server.uri}/s3-${place}`, env: server.env }),
    (place, text) => server.holds(text, `s3-${place}`),
  );

  it('says what to check where credentials are refused, and names no secret', async () => {
    const env = { ...server.env, AWS_ACCESS_KEY_ID: 'REVOKED', AWS_SECRET_ACCESS_KEY: 'old-secret-value' };
    const failed = openLanceBus({ uri: `${server.uri}/x`, env });
    await expect(failed).rejects.toMatchObject({ code: 'share_failed' });
    await expect(failed).rejects.toThrow(/credentials are not accepted/);
    await expect(failed).rejects.not.toThrow(/old-secret-value/);
  });

  it('says that the bucket is missing', async () => {
    const opening = openLanceBus({ uri: 's3://no-such-bucket/x', env: server.env });
    await expect(opening).rejects.toThrow(/bucket does not exist/);
  });
});

it('needs a key for LanceDB Cloud', async () => {
  await expect(openLanceBus({ uri: 'db://memory', env: {} })).rejects.toThrow(/set LANCEDB_API_KEY/);
});
