import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import os from 'node:os';
import tls from 'node:tls';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { makeTestCerts } from '../../../helpers/certs.ts';
import { busyness, median } from '../../../helpers/cpu-load.ts';
import { type Rig, type RigOptions, removeRigCerts, SECRET, startRig } from '../../../helpers/proxy-rig.ts';
import { sseMessage } from '../../../helpers/sse.ts';
import {
  CLIENT,
  closed,
  connectThrough,
  openRequest,
  secureThrough,
  startStandIn,
} from '../../../helpers/tls-client.ts';

let rig: Rig | null = null;

async function start(options: RigOptions = {}): Promise<Rig> {
  rig = await startRig(options);
  return rig;
}

afterEach(async () => {
  await rig?.close();
  rig = null;
});
afterAll(removeRigCerts);

/** Raw bytes over an own TLS connection; resolves with all that came back before the close. */
async function sendRaw({ via, ca }: Rig, bytes: string): Promise<string> {
  const secure = await secureThrough(via, ca);
  let text = '';
  secure.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  secure.write(bytes);
  await closed(secure);
  return text;
}

function resetUpstream(): void {
  for (const socket of rig?.standIn.sockets ?? []) socket.resetAndDestroy();
}

describe('a hostile client of the engine', () => {
  it.each([
    ['without the secret', 'api.anthropic.com:443', ''],
    ['with a wrong secret', 'api.anthropic.com:443', 'x-comet-cc-guard: guessed\r\n'],
    ['for another host', 'evil.example:443', `x-comet-cc-guard: ${SECRET}\r\n`],
    ['for a prototype', 'constructor:443', `x-comet-cc-guard: ${SECRET}\r\n`],
    ['for a path', '../../pwned:443', `x-comet-cc-guard: ${SECRET}\r\n`],
    ['for a subdomain', 'x.api.anthropic.com:443', `x-comet-cc-guard: ${SECRET}\r\n`],
  ])('gets no tunnel %s', async (_name, authority, connectHeaders) => {
    const before = readdirSync(os.tmpdir()).filter((name) => name.includes('pwned'));
    const { via, ask } = await start();
    const { status, socket } = await connectThrough({ ...via, authority, connectHeaders });
    expect([400, 403]).toContain(status);
    socket.destroy();
    expect(readdirSync(os.tmpdir()).filter((name) => name.includes('pwned'))).toEqual(before);
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
  });

  it('is disconnected when it sends garbage instead of TLS', async () => {
    const out = ['log', 'info', 'debug', 'warn', 'error'].map((name) => vi.spyOn(console, name as 'log'));
    const { via, ask } = await start();
    const junk = [randomBytes(400), Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.from([0x16, 3, 1, 0xff, 0xff, 9, 9])];
    for (const bytes of junk) {
      const { socket } = await connectThrough(via);
      socket.resume();
      socket.end(bytes);
      await closed(socket);
    }
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
    for (const spy of out) expect(spy).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });

  it('gets the same leaf for every server name, and no other is issued', async () => {
    const { via, ask } = await start();
    const shown = new Set<string>();
    for (const name of Array.from({ length: 60 }, (_, at) => `h${at}.example`)) {
      const { socket } = await connectThrough(via);
      const secure = tls.connect({ socket, servername: name, rejectUnauthorized: false });
      await once(secure, 'secureConnect');
      shown.add(secure.getPeerCertificate().fingerprint256);
      secure.destroy();
    }
    expect(shown.size).toBe(1);
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
  });

  it('survives a storm of connections cut at any moment', async () => {
    const { via, ask } = await start();
    await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const socket = net.connect(via.port, '127.0.0.1');
        socket.on('error', () => {});
        await once(socket, 'connect');
        if (i % 3 > 0) socket.write(`CONNECT api.anthropic.com:443 HTTP/1.1\r\n${via.connectHeaders}\r\n`);
        if (i % 3 > 1) socket.write(randomBytes(50));
        socket.resetAndDestroy();
      }),
    );
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
  });
});

describe('a request that is not plainly for the target', () => {
  async function refused(_name: string, bytes: string, status: number): Promise<void> {
    const made = await start();
    expect(await sendRaw(made, bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(made.standIn.received).toEqual([]);
    expect(made.rewrites).toEqual([]);
  }

  it.each([
    ['another Host', 'POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n', 421],
    ['another port', 'GET / HTTP/1.1\r\nHost: api.anthropic.com:80\r\n\r\n', 421],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: api.anthropic.com\r\nHost: evil.example\r\n\r\n', 400],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
  ])('is refused for %s, and never reaches the upstream', refused);

  it.each([
    [
      'both lengths',
      'POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    [
      'two lengths',
      'POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde',
      400,
    ],
    [
      'a coding before chunked',
      'POST /x HTTP/1.1\r\nHost: api.anthropic.com\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['a bad line', 'NONSENSE\r\n\r\n', 400],
    ['headers without measure', `GET / HTTP/1.1\r\nHost: api.anthropic.com\r\nx: ${'a'.repeat(80_000)}\r\n\r\n`, 400],
  ])('is refused for %s before it reaches the upstream', refused);

  it.each([
    ['another protocol', upgradeTo('h2c'), 501],
    ['another Host', upgradeTo('websocket', 'evil.example'), 501],
  ])('is refused an upgrade to %s, and never reaches the upstream', async (_name, bytes, status) => {
    const made = await start();
    expect(await sendRaw(made, bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(made.standIn.sockets.size).toBe(0);
    expect((await made.ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
  });

  it('is refused outside TLS', async () => {
    const { via, standIn } = await start();
    const socket = net.connect(via.port, '127.0.0.1');
    socket.write('POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 0\r\n\r\n');
    const [reply] = (await once(socket, 'data')) as [Buffer];
    expect(reply.toString()).toMatch(/^HTTP\/1\.1 421 /);
    socket.destroy();
    expect(standIn.received).toEqual([]);
  });
});

function upgradeTo(protocol: string, host = 'api.anthropic.com'): string {
  const keys = 'Sec-WebSocket-Version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==';
  return `GET /api/ws/x?a=1 HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${keys}\r\n\r\n`;
}

async function readBytes(socket: tls.TLSSocket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  while (bytes < length) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    chunks.push(chunk);
    bytes += chunk.length;
  }
  return Buffer.concat(chunks);
}

describe('a WebSocket', () => {
  const ACCEPTED = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nConnection: Upgrade\r\n\r\n';

  it('is carried both ways byte for byte, and ends with either side', async () => {
    const { via, ca, standIn, rewrites } = await start();
    const upstream: net.Socket[] = [];
    const heads: string[] = [];
    standIn.server.on('upgrade', (request: IncomingMessage, socket: net.Socket, head: Buffer) => {
      upstream.push(socket);
      heads.push(`${request.method} ${request.url} ${request.rawHeaders.join()}`);
      socket.write(Buffer.concat([Buffer.from(ACCEPTED), head]));
      socket.on('error', () => {}).pipe(socket);
    });
    const frames = randomBytes(300_000);
    const ends = [(client: net.Socket) => client.destroy(), () => upstream.at(-1)?.destroy()];
    for (const end of ends) {
      const client = await secureThrough(via, ca);
      client.on('error', () => {}).write(Buffer.concat([Buffer.from(upgradeTo('websocket')), frames]));
      const bytes = await readBytes(client, ACCEPTED.length + frames.length);
      expect(bytes.equals(Buffer.concat([Buffer.from(ACCEPTED), frames]))).toBe(true);
      const gone = [client, upstream.at(-1) as net.Socket].map(closed);
      end(client);
      await Promise.all(gone);
    }
    const [line, ...fields] = upgradeTo('websocket').trim().split('\r\n');
    const head = `${line?.replace(' HTTP/1.1', '')} ${fields.map((field) => field.replace(': ', ',')).join()}`;
    expect(heads).toEqual([head, head]);
    expect(rewrites).toEqual([]);
  });

  it('that the upstream refuses, or that cannot reach it, is told so', async () => {
    const made = await start();
    made.standIn.server.on('upgrade', (_request, socket: net.Socket) => socket.end('HTTP/1.1 403 No\r\n\r\nbecause'));
    expect(await sendRaw(made, upgradeTo('websocket'))).toBe('HTTP/1.1 403 No\r\n\r\nbecause');
    await made.standIn.close();
    expect(await sendRaw(made, upgradeTo('websocket'))).toMatch(/^HTTP\/1\.1 502 /);
  });

  it('whose client leaves while it connects leaves nothing open', async () => {
    const { via, ca, standIn, ask } = await start();
    standIn.server.on('upgrade', (_request, socket: net.Socket) => socket.on('error', () => {}).resume());
    const client = await secureThrough(via, ca);
    const connected = once(standIn.server, 'secureConnection') as Promise<[net.Socket]>;
    client.write(upgradeTo('websocket'), () => client.destroy());
    const [remote] = await connected;
    if (!remote.destroyed) await once(remote.resume(), 'close');
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
  });
});

describe('a client that leaves', () => {
  it('in the middle of a stream ends the upstream request within 50 ms, and its turn is aborted', async () => {
    let upstreamClosed: Promise<number> = Promise.resolve(0);
    const { via, ca, nextSeen } = await start({
      answer(_request, response) {
        upstreamClosed = new Promise((resolve) => response.once('close', () => resolve(performance.now())));
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(sseMessage('never ended').subarray(0, 500));
      },
    });
    const tookMs: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      const secure = await secureThrough(via, ca);
      const request = openRequest(secure, { headers: CLIENT });
      request.on('error', () => {}).end('{}');
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.on('error', () => {});
      await once(response, 'data');
      const leftAt = performance.now();
      secure.destroy();
      tookMs.push((await upstreamClosed) - leftAt);
      expect(await nextSeen()).toMatchObject({ end: 'aborted_by_client', status: 200 });
    }
    expect(median(tookMs)).toBeLessThan(50 * busyness());
  });

  it('before any answer closes the upstream connection too', async () => {
    const arrived: ServerResponse[] = [];
    let hear: () => void = () => {};
    const heard = new Promise<void>((resolve) => {
      hear = resolve;
    });
    const { via, ca } = await start({
      answer(_request, response) {
        arrived.push(response);
        hear();
      },
    });
    const secure = await secureThrough(via, ca);
    openRequest(secure, { headers: CLIENT })
      .on('error', () => {})
      .end('{}');
    await heard;
    const closed = once(arrived[0] as ServerResponse, 'close');
    secure.destroy();
    await closed;
  });

  it('in the middle of an upload that would be parsed forwards nothing', async () => {
    const { via, ca, standIn, rewrites, proxy } = await start();
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { headers: [...CLIENT, 'Content-Length', String(32 * 1024 * 1024)] });
    request.on('error', () => {});
    await new Promise<void>((resolve) => request.write(randomBytes(16 * 1024 * 1024), () => resolve()));
    secure.destroy();
    await proxy.drain();
    expect(rewrites).toEqual([]);
    expect(standIn.sockets.size).toBe(0);
  });

  it('in the middle of a streamed upload leaves no orphan upstream', async () => {
    let opened: (request: IncomingMessage) => void = () => {};
    const upstreamRequest = new Promise<IncomingMessage>((resolve) => {
      opened = resolve;
    });
    const { via, ca, standIn } = await start({ early: (request) => opened(request) });
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { path: '/api/batch', headers: ['Content-Length', String(32 * 1024 * 1024)] });
    request.on('error', () => {});
    request.write(randomBytes(1024 * 1024));
    const arrived = await upstreamRequest;
    const closed = new Promise((resolve) => arrived.once('close', resolve));
    secure.destroy();
    await closed;
    expect(standIn.received).toEqual([]);
  });

  it('or reads slowly holds back the upstream instead of filling memory', async () => {
    const total = 48 * 1024 * 1024;
    let written = 0;
    let stalled: () => void = () => {};
    const stall = new Promise<void>((resolve) => {
      stalled = resolve;
    });
    const { via, ca } = await start({
      answer(_request, response) {
        response.writeHead(200, { 'content-length': total });
        const pump = (): void => {
          while (written < total) {
            written += 65_536;
            if (!response.write(Buffer.alloc(65_536))) {
              // Long enough without a drain means that backpressure has reached the source.
              const timer = setTimeout(stalled, 400);
              response.once('drain', () => {
                clearTimeout(timer);
                pump();
              });
              return;
            }
          }
          response.end();
        };
        pump();
      },
    });
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { path: '/big', method: 'GET' });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.pause();
    await stall;
    // Kernel buffers of four loopback sockets hold some megabytes; our own may hold one.
    expect(written).toBeLessThan(24 * 1024 * 1024);
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    response.resume();
    await once(response, 'end');
    expect(bytes).toBe(total);
    secure.destroy();
  });
});

describe('an upstream in trouble', () => {
  it.each<[string, (socket: net.Socket) => void, RegExp]>([
    ['refuses connections', () => {}, /refuses connections.*ECONNREFUSED/],
    ['has no address', () => {}, /has no address.*(ENOTFOUND|EAI_AGAIN)/],
    ['accepts and then says nothing', () => {}, /did not accept a connection in time.*CONNECT_TIMEOUT/],
    ['closes in the handshake', (socket) => socket.destroy(), /closed the connection/],
    ['speaks no TLS', (socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'), /does not speak TLS.*WRONG_VERSION/],
  ])('that %s gives a fast 502 with a hint', async (name, hear, says) => {
    const server = net.createServer((socket) => hear(socket.on('error', () => {}))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    if (name.startsWith('refuses')) await new Promise((resolve) => server.close(resolve));
    const host = name.startsWith('has no') ? 'no-such-host.invalid' : '127.0.0.1';
    const connectMs = name.startsWith('accepts') ? 500 : 60_000;
    const { ask } = await start({ deps: { upstream: { origin: `https://${host}:${port}`, connectMs } } });
    const startedAt = performance.now();
    const reply = await ask({ headers: CLIENT, body: '{}' });
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    expect(reply.status).toBe(502);
    const body = JSON.parse(reply.body.toString());
    expect(body).toMatchObject({ type: 'error', error: { type: 'api_error' } });
    expect(body.error.message).toMatch(says);
    server.close();
  });

  it('that is slow to shake hands is waited for longer than for a connection', async () => {
    const certs = makeTestCerts(['127.0.0.1']);
    const standIn = await startStandIn(certs, (_request, response) => void response.end('{}'));
    const slow = net.createServer((socket) => {
      const remote = net.connect(standIn.port, '127.0.0.1').on('error', () => socket.destroy());
      socket.on('error', () => remote.destroy()).pipe(remote);
      setTimeout(() => remote.pipe(socket), 4_000);
    });
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    const origin = `https://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const { ask } = await start({ deps: { upstream: { origin, caFile: certs.caFile, connectMs: 2_000 } } });
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
    slow.close();
    await standIn.close();
    rmSync(certs.dir, { recursive: true });
  });

  it('with an untrusted certificate gets no request', async () => {
    const { ask, standIn } = await start({ trustUpstream: false });
    const reply = await ask({ headers: [...CLIENT, 'authorization', 'Bearer secret'], body: '{}' });
    expect(reply.status).toBe(502);
    expect(reply.body.toString()).toMatch(/NODE_EXTRA_CA_CERTS/);
    expect(standIn.received).toEqual([]);
  });

  it('with a certificate of another time asks for a look at the clock', async () => {
    const certs = makeTestCerts(['127.0.0.1'], Date.now() - 30 * 86_400_000);
    const standIn = await startStandIn(certs, (_request, response) => void response.end('{}'));
    const { ask } = await start({ deps: { upstream: { origin: standIn.origin, caFile: certs.caFile } } });
    const reply = await ask({ headers: CLIENT, body: '{}' });
    expect(reply.body.toString()).toMatch(/not valid now; is the clock of this machine right\? \(CERT_HAS_EXPIRED\)/);
    await standIn.close();
    rmSync(certs.dir, { recursive: true });
  });

  it('that a pause or another network may have cut off is not asked over a connection from before', async () => {
    const certs = makeTestCerts(['127.0.0.1']);
    const standIn = await startStandIn(certs, (_request, response) => void response.end('{}'));
    standIn.server.keepAliveTimeout = 0;
    let [nowMs, network, connections] = [0, 'at home', 0];
    standIn.server.on('connection', () => {
      connections += 1;
    });
    const upstream = { origin: standIn.origin, caFile: certs.caFile, now: () => nowMs, network: () => network };
    const { ask } = await start({ deps: { upstream } });
    const used = async (): Promise<number> => {
      expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(200);
      return connections;
    };
    expect([await used(), await used()]).toEqual([1, 1]);
    nowMs += 60_000;
    expect([await used(), await used()]).toEqual([2, 2]);
    network = 'on the train';
    await expect.poll(() => standIn.sockets.size, { timeout: 20_000 }).toBe(0);
    expect([await used(), await used()]).toEqual([3, 3]);
    await standIn.close();
    rmSync(certs.dir, { recursive: true });
  });

  it('is trusted where the store of the machine does, also by requests that come at once', async () => {
    const certs = makeTestCerts(['127.0.0.1']);
    const standIn = await startStandIn(certs, (_request, response) => void response.end('{}'));
    const other = makeTestCerts(['127.0.0.1']);
    const systemRoots = vi.fn(() => [other.ca, certs.ca]);
    const { ask, proxy } = await start({ deps: { upstream: { origin: standIn.origin, systemRoots } } });
    const statuses = () => Promise.all([1, 2, 3].map(async () => (await ask({ headers: CLIENT, body: '{}' })).status));
    expect(await statuses()).toEqual([200, 200, 200]);
    expect(systemRoots).toHaveBeenCalledTimes(1);
    expect(proxy.problems()).toEqual([]);
    await standIn.close();
    expect(await statuses()).toEqual([502, 502, 502]);
    expect(proxy.problems()).toEqual([
      { file: 'upstream', message: expect.stringMatching(/^https:.* refuses connections/) },
    ]);
    for (const { dir } of [certs, other]) rmSync(dir, { recursive: true });
  });

  it('is trusted by what the CA file holds when the proxy starts, whatever was read before', async () => {
    const [certs, others] = [makeTestCerts(['127.0.0.1']), makeTestCerts(['127.0.0.1'])];
    const standIn = await startStandIn(certs, (_request, response) => void response.end('{}'));
    const upstream = { origin: standIn.origin, caFile: certs.caFile };
    const statuses: number[] = [];
    for (const ca of [others.ca, certs.ca, certs.ca, others.ca]) {
      writeFileSync(certs.caFile, ca);
      const { ask, close } = await startRig({ deps: { upstream } });
      statuses.push((await ask({ headers: CLIENT, body: '{}' })).status);
      await close();
    }
    expect(statuses).toEqual([502, 200, 200, 502]);
    await standIn.close();
    for (const { dir } of [certs, others]) rmSync(dir, { recursive: true });
  });

  it('that cuts the stream cuts the client, adds no event, and stores no whole turn', async () => {
    const part = sseMessage('cut').subarray(0, 400);
    const { via, ca, nextSeen, standIn } = await start({
      answer(_request, response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(part);
        setImmediate(resetUpstream);
      },
    });
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { headers: CLIENT });
    request.on('error', () => {}).end('{}');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    const [error] = (await once(response, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNRESET');
    expect(part.subarray(0, Buffer.concat(chunks).length).equals(Buffer.concat(chunks))).toBe(true);
    expect(await nextSeen()).toMatchObject({ end: 'cut_by_upstream' });
    expect(standIn.received.length).toBe(1);
  });

  it('that dies after the request was sent gets no second request', async () => {
    const { ask, standIn } = await start({ answer: resetUpstream });
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(502);
    expect(standIn.received.length).toBe(1);
  });

  it('that answers before the upload is over is heard by the client', async () => {
    const { via, ca } = await start({
      answer() {},
      early: (_request, response) => void response.writeHead(413, { connection: 'close' }).end('too large'),
    });
    const secure = await secureThrough(via, ca);
    const request = openRequest(secure, { path: '/api/batch', headers: ['Content-Length', '9000000'] });
    request.on('error', () => {});
    request.write(randomBytes(10_000));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(413);
    secure.destroy();
  });

  it('redirecting is not followed', async () => {
    const { ask, standIn } = await start({
      answer: (_request, response) => void response.writeHead(307, { location: 'https://127.0.0.1:1/' }).end(),
    });
    expect((await ask({ headers: CLIENT, body: '{}' })).status).toBe(307);
    expect(standIn.received.length).toBe(1);
  });
});

describe('the leaf', () => {
  it('is not served when it may not be, and the engine says so before TLS', async () => {
    const { via } = await start({ deps: { certs: { leaf: () => null } } });
    const { status, socket } = await connectThrough(via);
    expect(status).toBe(503);
    socket.destroy();
  });
});
