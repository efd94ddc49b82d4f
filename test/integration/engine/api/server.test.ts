import { lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CometError } from '../../../../common/errors.ts';
import { silentLog } from '../../../../common/log.ts';
import { engineClient } from '../../../../engine/api/client.ts';
import { EMPTY_COSTS } from '../../../../engine/api/cost.ts';
import { openApiServer } from '../../../../engine/api/server.ts';
import { deferredMemory } from '../../../../engine/deferred.ts';
import type { Capture, Memory } from '../../../../memory/index.ts';
import { engineServices, memoryWith, type ServiceMethods } from '../../../helpers/engine-services.ts';

let dir: string;
let socket: string;
let server: Awaited<ReturnType<typeof openApiServer>> | null = null;

beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'cc-api-'));
  socket = path.join(dir, 'engine.sock');
});

afterEach(async () => {
  await server?.close();
  server = null;
  await rm(dir, { recursive: true, force: true });
});

async function open(methods: ServiceMethods, pagesChanged: () => void = () => {}): Promise<void> {
  server = await openApiServer(socket, silentLog);
  server.serve(
    engineServices(methods, {
      pagesChanged,
      requests: () => ({ total: 4, rewritten: 1, passed_through: 3, failed_open: 0 }),
      costs: () => ({ ...EMPTY_COSTS, tokens: { original: 100, sent: 40, own: 0, net_saved: 60 } }),
    }),
  );
}

function post(url: string, body: string, headers: Record<string, string>): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { socketPath: socket, path: url, method: 'POST', headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      },
    );
    request.once('error', reject);
    request.end(body);
  });
}

describe("the engine's API", () => {
  it('answers what memory, proxy and rewriter say', async () => {
    await open({ library: { readBrief: async (id) => `brief of ${id}` } });
    const client = engineClient(socket);
    expect(await client.call('status', {})).toMatchObject({
      pid: process.pid,
      version: '1.2.3',
      requests: { total: 4 },
      tokens: { original: 100, sent: 40, net_saved: 60 },
    });
    expect(await client.call('sessions/brief', { sessionId: 's1' })).toBe('brief of s1');
  });

  it('says when pages may have changed, also where the operation failed in the middle', async () => {
    let changes = 0;
    const remove = async (ids: readonly string[]) =>
      ids[0] === 'gone' ? Promise.reject(new CometError('not_found', 'x')) : ids;
    await open({ library: { remove, readBrief: async () => '' } }, () => {
      changes += 1;
    });
    const client = engineClient(socket);
    await client.call('nodes/remove', { ids: ['a'] });
    await expect(client.call('nodes/remove', { ids: ['gone'] })).rejects.toThrow('x');
    await client.call('sessions/brief', { sessionId: 's' });
    expect(changes).toBe(2);
  });

  it('repeats nothing of what a library says that failed, which may quote what is stored', async () => {
    await open({
      library: {
        show: () => Promise.reject(Object.assign(new Error('no space for "the stored words"'), { code: 'ENOSPC' })),
      },
    });
    await expect(engineClient(socket).call('nodes/show', { id: 'mem_1', depth: 0 })).rejects.toMatchObject({
      code: 'daemon_unhealthy',
      message: 'the engine failed at it (ENOSPC); comet-cc logs says why',
    });
  });

  it('carries the error of an operation to the caller, code included', async () => {
    await open({
      library: {
        show: async () => {
          throw new CometError('ambiguous_id', 'mem_1 could be two');
        },
      },
    });
    const call = engineClient(socket).call('nodes/show', { id: 'mem_1', depth: 0 });
    await expect(call).rejects.toMatchObject({
      name: 'CometError',
      code: 'ambiguous_id',
      message: 'mem_1 could be two',
    });
  });

  it('survives an operation that throws anything at all', async () => {
    await open({
      library: {
        list: () => {
          throw new TypeError('bug');
        },
        listSessions: async () => [],
      },
    });
    await expect(engineClient(socket).call('nodes/list', {})).rejects.toMatchObject({ code: 'daemon_unhealthy' });
    expect(await engineClient(socket).call('sessions/list', {})).toEqual([]);
  });

  it('refuses what does not validate, is no JSON, or is no operation', async () => {
    await open({});
    const json = { 'content-type': 'application/json' };
    expect((await post('/v1/nodes/show', '{"id":"x","depth":7}', json)).status).toBe(400);
    expect((await post('/v1/nodes/show', '{"id":"x","depth":1,"extra":1}', json)).status).toBe(400);
    expect((await post('/v1/status', 'not json', json)).status).toBe(400);
    expect((await post('/v1/status', '{}', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post('/v1/constructor', '{}', json)).status).toBe(404);
    expect((await post('/v1/status', `"${'x'.repeat(2_000_000)}"`, json)).status).toBe(400);
  });

  it('says that it is starting until it serves', async () => {
    server = await openApiServer(socket, silentLog);
    await expect(engineClient(socket).call('status', {})).rejects.toMatchObject({ code: 'daemon_down' });
  });

  it('is busy while an operation runs, which may end although further ones are refused', async () => {
    const briefs: ((text: string) => void)[] = [];
    await open({ library: { readBrief: () => new Promise((resolve) => briefs.push(resolve)) } });
    expect(server?.isBusy()).toBe(false);
    const call = engineClient(socket).call('sessions/brief', { sessionId: 's1' });
    await vi.waitFor(() => expect(server?.isBusy()).toBe(true));
    const resting = server?.rest();
    await expect(engineClient(socket).call('status', {})).rejects.toMatchObject({ code: 'daemon_down' });
    briefs[0]?.('a brief');
    expect(await call).toBe('a brief');
    await resting;
    expect(server?.isBusy()).toBe(false);
  });
});

describe("the engine's socket", () => {
  it('is private and gone after close', async () => {
    await open({});
    expect((await lstat(socket)).mode & 0o777).toBe(0o600);
    await server?.close();
    await expect(lstat(socket)).rejects.toThrow('ENOENT');
    await expect(engineClient(socket).call('status', {})).rejects.toMatchObject({ code: 'daemon_down' });
  });

  it('replaces one that was left behind', async () => {
    const dead = net.createServer();
    await new Promise<void>((resolve) => {
      dead.listen(`${socket}.live`, resolve);
    });
    await (await import('node:fs/promises')).rename(`${socket}.live`, socket);
    await new Promise((resolve) => {
      dead.close(resolve);
    });
    expect((await lstat(socket)).isSocket()).toBe(true);
    await open({ library: { listSessions: async () => [] } });
    expect(await engineClient(socket).call('sessions/list', {})).toEqual([]);
  });

  it('waits for an engine that is leaving', async () => {
    const leaving = await openApiServer(socket, silentLog);
    const opening = openApiServer(socket, silentLog);
    await leaving.close();
    server = await opening;
    expect((await lstat(socket)).isSocket()).toBe(true);
  });

  it('notices that another took its place', async () => {
    for (const replace of [() => Promise.resolve(), () => writeFile(socket, '')]) {
      const lost = vi.fn();
      server = await openApiServer(socket, silentLog, lost);
      await rm(socket);
      await replace();
      await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce(), { timeout: 5_000 });
      await server.close();
      await rm(socket, { force: true });
    }
  });

  it('leaves the socket of the engine that took its place', async () => {
    const lost = vi.fn();
    const first = await openApiServer(socket, silentLog, lost);
    await rm(dir, { recursive: true });
    await mkdir(dir);
    await open({ library: { readBrief: async () => 'of the next engine' } });
    await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce(), { timeout: 5_000 });
    await first.close();
    expect(await engineClient(socket).call('sessions/brief', { sessionId: 's1' })).toBe('of the next engine');
  });

  it('refuses a path that is a link or a file, and leaves it unchanged', async () => {
    const precious = path.join(dir, 'precious');
    await writeFile(precious, 'precious');
    await symlink(precious, socket);
    await expect(openApiServer(socket, silentLog)).rejects.toMatchObject({ code: 'unsafe_file' });
    await expect(engineClient(socket).call('status', {})).rejects.toMatchObject({ code: 'unsafe_file' });
    expect(await readFile(precious, 'utf8')).toBe('precious');
  });
});

describe('deferredMemory', () => {
  it('knows nothing and keeps turns until the store opens', async () => {
    const captured: unknown[] = [];
    let opened: (memory: Memory) => void = () => {};
    const memory = deferredMemory(
      new Promise<Memory>((resolve) => {
        opened = resolve;
      }),
      'local',
    );
    const turn = { turnId: 'e1' } as Parameters<Capture['captureTurns']>[0][number];
    memory.capture.captureTurns([turn]);
    expect(memory.recall.nodesCovering(['e1']).size).toBe(0);
    expect(memory.maintenance.status().problems).toEqual([{ file: 'memory', message: 'the store is still opening' }]);
    const sessions = memory.library.listSessions();
    opened(
      memoryWith({
        capture: { captureTurns: (turns) => void captured.push(...turns) },
        library: { listSessions: async () => [] },
      }),
    );
    expect(await sessions).toEqual([]);
    expect(captured).toEqual([turn]);
  });

  it('names why a store did not open, and lets requests go on', async () => {
    const memory = deferredMemory(Promise.reject(new CometError('index_failed', 'no native build')), 'local');
    await expect(memory.library.show('mem_1', 0)).rejects.toThrow('no native build');
    expect(() => memory.library.list({})).toThrow('no native build');
    expect(memory.recall.lines(['mem_1'])).toEqual([]);
    memory.capture.captureTurns([]);
    expect(memory.maintenance.status().problems[0]?.message).toBe('no native build');
    await memory.maintenance.close();
  });
});
