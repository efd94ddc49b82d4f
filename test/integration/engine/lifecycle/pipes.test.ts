import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { getPlatform } from '../../../../common/paths.ts';
import { engineClient } from '../../../../engine/api/client.ts';
import { openApiServer } from '../../../../engine/api/server.ts';
import { askGuard, guardStatus } from '../../../../engine/lifecycle/control.ts';
import { openControlSocket } from '../../../../proxy/guard/control.ts';
import { engineServices } from '../../../helpers/engine-services.ts';

// Elsewhere a pipe's name is the name of a socket in the working directory: what is asked of pipes runs here too.
const address = (name: string): string => getPlatform('win32').localAddress('C:\\Users\\Ada\\.comet-cc\\run', name);
const came = process.cwd();
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'cc-pipe-'));
  process.chdir(dir);
});

afterEach(async () => {
  process.chdir(came);
  await rm(dir, { recursive: true, force: true });
});

it('the engine answers on a pipe, and a missing pipe gives an error', async () => {
  const client = engineClient(address('engine'));
  await expect(client.call('flush', { timeoutMs: 1 })).rejects.toMatchObject({ code: 'daemon_down' });
  const server = await openApiServer(address('engine'), silentLog, expect.fail);
  server.serve(engineServices({ maintenance: { flush: async () => true } }));
  expect(await client.call('flush', { timeoutMs: 1 })).toBe(true);
  await server.close();
});

it('the guard answers by a pipe, and a second one of the same home is told so', async () => {
  expect(await guardStatus(address('guard'))).toBeNull();
  const control = await openControlSocket(address('guard'), async ({ op }) => ({ op }), expect.fail);
  expect(await askGuard(address('guard'), { op: 'stop' }, 1_000)).toEqual({ op: 'stop' });
  await expect(openControlSocket(address('guard'), async () => ({}), expect.fail)).rejects.toMatchObject({
    code: 'port_in_use',
  });
  control.close();
});
