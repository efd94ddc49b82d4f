import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { type ApiServer, apiListener, openApiServer, portRule } from '../../../../engine/api/server.ts';
import { engineServices } from '../../../helpers/engine-services.ts';

const TOKEN = 'b'.repeat(64);
const JSON_TYPE = { 'content-type': 'application/json' };
const BEARER = { authorization: `Bearer ${TOKEN}` };

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
let onSocket: ApiServer;
let onPort: http.Server;
let port = 0;

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'cc-admission-'));
  onSocket = await openApiServer(path.join(dir, 'engine.sock'), silentLog);
  onSocket.serve(services);
  let rule = portRule(0, TOKEN);
  onPort = http.createServer((request, response) => apiListener(rule, () => services, silentLog)(request, response));
  await new Promise<void>((resolve) => onPort.listen(0, '127.0.0.1', resolve));
  port = (onPort.address() as AddressInfo).port;
  rule = portRule(port, TOKEN);
});

afterAll(async () => {
  await onSocket.close();
  await new Promise((resolve) => onPort.close(resolve));
  await rm(dir, { recursive: true, force: true });
});

interface Reply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly ran: boolean;
}

function send(where: http.RequestOptions, method: string, headers: http.OutgoingHttpHeaders): Promise<Reply> {
  const before = flushed;
  return new Promise((resolve, reject) => {
    const request = http.request({ ...where, path: '/v1/flush', method, headers, agent: false }, (response) => {
      response.resume();
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, ran: flushed > before }),
      );
    });
    request.once('error', reject);
    request.end(method === 'GET' ? undefined : '{"timeoutMs": 1}');
  });
}

const tcp = (method: string, headers: http.OutgoingHttpHeaders): Promise<Reply> =>
  send({ host: '127.0.0.1', port }, method, headers);
const unix = (method: string, headers: http.OutgoingHttpHeaders): Promise<Reply> =>
  send({ socketPath: path.join(dir, 'engine.sock') }, method, headers);

describe('on a loopback port', () => {
  async function refused(_: string, headers: Readonly<Record<string, string>>, status: number): Promise<void> {
    const sent = { ...JSON_TYPE, ...BEARER, host: `127.0.0.1:${port}`, ...headers };
    expect(await tcp('POST', sent)).toMatchObject({ status, ran: false });
  }

  it('runs what comes with the token, by our name, from our page or from none', async () => {
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) {
      expect(await tcp('POST', { ...JSON_TYPE, ...BEARER, host })).toMatchObject({ status: 200, ran: true });
      const page = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' };
      expect(await tcp('POST', { ...JSON_TYPE, ...BEARER, host, ...page })).toMatchObject({ status: 200, ran: true });
    }
  });

  const rebound = [
    'evil.example',
    'evil.example:8443',
    '127.0.0.1',
    'localhost',
    '127.0.0.1:1',
    'localhost.evil.example',
  ];
  const strange = [
    'http://evil.example',
    'null',
    'https://127.0.0.1',
    'http://localhost',
    'http://127.0.0.1.evil.example',
  ];
  it.each([
    ...rebound.map((host) => [`the name ${host}`, { host }, 403] as const),
    ...strange.map((origin) => [`the origin ${origin}`, { origin }, 403] as const),
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a page of the same site on another port', { 'sec-fetch-site': 'same-site' }, 403],
    ['no token', { authorization: '' }, 401],
    ['the start of the token', { authorization: `Bearer ${TOKEN.slice(1)}` }, 401],
    ['the token as a password', { authorization: `Basic ${TOKEN}` }, 401],
  ] as const)('refuses %s as DNS rebinding and does nothing', refused);

  it.each([
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['plain text, as a simple request may send it', { 'content-type': 'text/plain' }, 415],
    ['no type at all', { 'content-type': '' }, 415],
  ] as const)('refuses %s as a forged request and does nothing', refused);

  it('changes nothing by GET, and answers no preflight', async () => {
    const named = { ...JSON_TYPE, ...BEARER, host: `127.0.0.1:${port}` };
    for (const method of ['GET', 'PUT', 'OPTIONS']) {
      const reply = await tcp(method, named);
      expect(reply).toMatchObject({ status: 405, ran: false });
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });
});

describe('on the socket', () => {
  it('runs what a command sends', async () => {
    expect(await unix('POST', JSON_TYPE)).toMatchObject({ status: 200, ran: true });
  });

  it.each([
    ['a name of the network', { host: 'evil.example' }, 403],
    ['any origin', { origin: 'http://localhost' }, 403],
    ['a browser', { 'sec-fetch-site': 'same-origin' }, 403],
    ['a form', { 'content-type': 'text/plain' }, 415],
  ] as const)('refuses %s and does nothing', async (_, headers, status) => {
    expect(await unix('POST', { ...JSON_TYPE, ...headers })).toMatchObject({ status, ran: false });
  });
});
