import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { openApiServer } from '../../../../engine/api/server.ts';
import { engineServices } from '../../../helpers/engine-services.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

let flushed = 0;
const services = engineServices({
  maintenance: {
    flush: async () => {
      flushed += 1;
      return true;
    },
  },
});
let dir: string;
let server: Awaited<ReturnType<typeof openApiServer>>;

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'cc-admission-'));
  server = await openApiServer(path.join(dir, 'engine.sock'), silentLog);
  server.serve(services);
});

afterAll(async () => {
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

interface Reply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly ran: boolean;
}

function send(method: string, headers: http.OutgoingHttpHeaders): Promise<Reply> {
  const before = flushed;
  const options = { socketPath: path.join(dir, 'engine.sock'), path: '/v1/flush', method, headers, agent: false };
  return new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      response.resume();
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, ran: flushed > before }),
      );
    });
    request.once('error', reject);
    request.end(method === 'GET' ? undefined : '{"timeoutMs": 1}');
  });
}

it('runs what a command sends', async () => {
  expect(await send('POST', JSON_TYPE)).toMatchObject({ status: 200, ran: true });
});

it.each([
  ['another name', { host: 'evil.example' }],
  ['another name that begins as ours', { host: 'localhost.evil.example' }],
  ['our name with a port', { host: 'localhost:8443' }],
  ['a page of another origin', { origin: 'https://evil.example' }],
  ['a page without an origin', { origin: 'null' }],
  ['a page of this machine', { origin: 'http://localhost' }],
  ['a browser', { 'sec-fetch-site': 'same-origin' }],
] as const)('refuses %s as DNS rebinding and does nothing', async (_, headers) => {
  expect(await send('POST', { ...JSON_TYPE, ...headers })).toMatchObject({ status: 403, ran: false });
});

it.each([
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['plain text, as a simple request may send it', { 'content-type': 'text/plain' }],
  ['no type', { 'content-type': '' }],
] as const)('refuses %s as a forged request and does nothing', async (_, headers) => {
  expect(await send('POST', headers)).toMatchObject({ status: 415, ran: false });
});

it('changes nothing by GET, and answers no preflight', async () => {
  for (const method of ['GET', 'PUT', 'OPTIONS']) {
    const reply = await send(method, JSON_TYPE);
    expect(reply).toMatchObject({ status: 405, ran: false });
    expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  }
});
