import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import type http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { getCookie, setCookie } from 'hono/cookie';
import { type SSEStreamingApi, streamSSE } from 'hono/streaming';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { CometError } from '../../../common/errors.ts';
import type { Log } from '../../../common/log.ts';
import { builtFile, VERSION } from '../../../common/paths.ts';
import { isSecret } from '../../../proxy/guard/index.ts';
import { PAGE_OPERATIONS } from '../contract.ts';
import { MAX_BODY_BYTES, runOperation } from '../run.ts';
import type { EngineServices } from '../service.ts';
import { refuseSender } from './guard.ts';
import type { UiSession, UiSessions } from './session.ts';
import type { Topic, Watch } from './watch.ts';

const HEARTBEAT_MS = 15_000;
const PAGE = builtFile('ui');

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export interface UiServerOptions {
  readonly sessions: UiSessions;
  readonly services: () => EngineServices;
  readonly watch: Watch;
  readonly log: Log;
  readonly page?: string;
}

export type UiServer = Awaited<ReturnType<typeof openUiServer>>;

/** The dashboard's listener on 127.0.0.1. @param ports  tried in order; 0 takes any @throws CometError `port_in_use` */
export async function openUiServer(ports: readonly number[], options: UiServerOptions) {
  let port = 0;
  const app = createApp(options, () => port);
  // The globals of the engine stay those of Node.
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as http.Server;
  server.headersTimeout = 5_000;
  server.maxConnections = 100;
  port = await listenOnFirst(server, ports);
  return {
    port,
    /** Cuts every connection. */
    close: (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function listenOnFirst(server: http.Server, ports: readonly number[]): Promise<number> {
  for (const port of ports.filter((each) => each <= 65_535)) {
    if (await listens(server, port)) return (server.address() as AddressInfo).port;
  }
  throw new CometError('port_in_use', `port ${ports[0]} and those after it are taken; set ui.port to a free one`);
}

async function listens(server: http.Server, port: number): Promise<boolean> {
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return true;
  } catch (error) {
    if (['EADDRINUSE', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

type Variables = { Variables: { session: UiSession } };

function createApp({ sessions, services, watch, log, page = PAGE }: UiServerOptions, getPort: () => number) {
  const app = new Hono<Variables>();
  const cookieName = (): string => `comet-cc-${getPort()}`;
  const getSession = (c: Context): UiSession | null => sessions.verify(getCookie(c, cookieName()) ?? '');

  app.use(async (c, next) => {
    const { method } = c.req;
    const sender = { method, host: c.req.header('host'), origin: c.req.header('origin') };
    const refused = refuseSender({ ...sender, site: c.req.header('sec-fetch-site') }, getPort());
    if (refused === null) await next();
    else c.res = c.json(failure(refused.message), refused.status);
    secure(c.res.headers);
  });
  app.get('/', async (c, next) => {
    const token = c.req.query('token');
    if (token === undefined) return next();
    const cookie = sessions.redeem(token);
    // A browser that is signed in keeps its cookie: the other secret of its open pages goes with it.
    if (getSession(c) !== null) return c.redirect('/');
    if (cookie === null) return c.html(helpPage('This link was used before, or it has expired.'), 403);
    setCookie(c, cookieName(), cookie, {
      ...{ httpOnly: true, sameSite: 'Strict', path: '/', maxAge: sessions.cookieSeconds },
    });
    return c.redirect('/');
  });
  app.use(async (c, next) => {
    const session = getSession(c);
    if (session !== null) {
      c.set('session', session);
      return next();
    }
    const isPage = c.req.method !== 'POST' && c.req.header('sec-fetch-dest') !== 'empty';
    if (isPage && path.extname(c.req.path) === '' && !API.test(c.req.path))
      return c.html(helpPage('This browser is not signed in to the dashboard.'), 403);
    return c.json(failure('not signed in; open the link that comet-cc ui prints'), 401);
  });
  app.get('/events', (c) => streamSSE(c, (stream) => sendChanges(stream, watch)));
  app.get('/session', (c) => c.json({ csrf: c.get('session').csrf, version: VERSION }));
  app.post(
    '/v1/*',
    async (c, next) => {
      if (!isSecret(c.req.header('x-comet-csrf') ?? '', c.get('session').csrf))
        return c.json(failure('the x-comet-csrf header is missing or wrong; reload the page'), 403);
      const type = (c.req.header('content-type') ?? '').split(';')[0]?.trim().toLowerCase();
      return type === 'application/json' ? next() : c.json(failure('POST with a JSON body'), 415);
    },
    bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => c.json(failure('the body is larger than 1 MB'), 413) }),
    async (c) => {
      const operation = c.req.path.replace(/^\/v1\//, '');
      if (!PAGE_OPERATIONS.has(operation)) return c.json(failure('not an operation of the page'), 403);
      const { status, body } = await runOperation(services(), { operation, body: () => c.req.text() }, log);
      return c.json(body, status as ContentfulStatusCode);
    },
  );
  servePage(app, page);
  app.notFound((c) => c.json(failure('nothing here'), 404));
  app.onError((error, c) => {
    log.error('the dashboard failed at a request', { path: c.req.path, error });
    return c.json(failure('the engine failed at it; comet-cc logs says why'), 500);
  });
  return app;
}

/** Until the browser leaves. A slow one gets each topic once. */
async function sendChanges(stream: SSEStreamingApi, watch: Watch): Promise<void> {
  const waiting = new Set<Topic>();
  const bell = new EventEmitter();
  const leave = watch.follow((topics) => {
    for (const topic of topics) waiting.add(topic);
    bell.emit('ring');
  });
  stream.onAbort(() => void bell.emit('ring'));
  try {
    // A comment: the browser learns that it is connected, and that the engine is still there.
    for (await stream.write(': \n\n'); !stream.aborted; ) {
      const late = AbortSignal.timeout(HEARTBEAT_MS);
      if (waiting.size === 0) await once(bell, 'ring', { signal: late }).catch(() => stream.write(': \n\n'));
      const topics = [...waiting];
      waiting.clear();
      for (const topic of topics) await stream.writeSSE({ event: 'change', data: JSON.stringify({ topic }) });
    }
  } finally {
    leave();
  }
}

/** Paths that are never the page. */
const API = /^\/(v1\/|session$|events$)/;

/** The names of assets hold the digest of their content. */
const cacheForever: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.ok) c.res.headers.set('cache-control', 'private, max-age=31536000, immutable');
};

function servePage(app: Hono<Variables>, folder: string): void {
  if (!existsSync(path.join(folder, 'index.html'))) {
    app.get('/', (c) => c.html(helpPage('This build has no page; build it with: npm run build.'), 404));
    return;
  }
  app.get('/assets/*', cacheForever, serveStatic({ root: folder }));
  app.get('*', async (c, next) => {
    if (path.extname(c.req.path) !== '' || API.test(c.req.path)) return next();
    return serveStatic({ root: folder, path: 'index.html' })(c, next);
  });
}

function secure(headers: Headers): void {
  headers.set('content-security-policy', POLICY);
  headers.set('x-content-type-options', 'nosniff');
  headers.set('referrer-policy', 'no-referrer');
  headers.set('cross-origin-opener-policy', 'same-origin');
  headers.set('cross-origin-resource-policy', 'same-origin');
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
}

function failure(message: string) {
  return { error: { code: 'not_allowed', message } } as const;
}

/** @param problem  a constant: nothing of a request is repeated */
function helpPage(problem: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>comet-cc</title>
<h1>comet-cc</h1>
<p>${problem}</p>
<p>Run <code>comet-cc ui</code> again for a new link.</p>
</html>
`;
}
