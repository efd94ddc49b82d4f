import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import http from 'node:http';
import { finishesWithin } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { isPipe } from '../../common/paths.ts';
import { watchSocket } from '../../proxy/guard/index.ts';
import { heldOpen, socketPresent } from '../lifecycle/control.ts';
import { type Call, MAX_BODY_BYTES, type Reply, runOperation } from './run.ts';
import type { EngineServices } from './service.ts';

const LEAVING_MS = 10_000;
/** A command that runs for longer may hang, and no longer delays the restart after an update. */
const COMMAND_MS = 3_600_000;

/**
 * The engine's API: `POST /v1/<operation>` with a JSON body over a Unix socket, 0600. The engine that holds it is the
 * one writer of its home.
 * @param onLost  called once when `socket` is no longer this one
 * @throws CometError `unsafe_file` when something else is at `socket`, `daemon_unhealthy` when another engine runs
 */
export async function openApiServer(socket: string, log: Log, onLost: () => void = () => undefined) {
  await clearStale(socket);
  let services: EngineServices | null = null;
  const running = new Map<Promise<void>, number>();
  const server = http.createServer(apiListener((call) => runOperation(services, call, log), running));
  server.headersTimeout = 5_000;
  await listen(server, socket);
  if (!isPipe(socket)) await chmod(socket, 0o600);
  const watch = isPipe(socket) ? null : watchSocket(socket, onLost);
  let closing: Promise<void> | null = null;
  return {
    /** Before this every operation fails with `daemon_down`. */
    serve: (ready: EngineServices): void => {
      services = ready;
    },
    isBusy: (): boolean => [...running.values()].some((sinceMs) => performance.now() - sinceMs < COMMAND_MS),
    /** Refuses further operations, which clients send to the next engine, and lets running ones finish for a second. */
    async rest(): Promise<void> {
      services = null;
      await finishesWithin(Promise.all(running.keys()), 1_000);
    },
    /** Ends connections, removes the socket. Idempotent. */
    close: (): Promise<void> => (closing ??= closeServer(server, watch)),
  };
}

/** `running`: when each operation began. */
function apiListener(run: (call: Call) => Promise<Reply>, running: Map<Promise<void>, number>): http.RequestListener {
  return (request, response) => {
    const refused = refusal(request);
    if (refused !== null) {
      response.shouldKeepAlive = false;
      send(response, refused.status, { error: { code: 'usage', message: refused.message } });
      return;
    }
    const operation = (request.url ?? '').replace(/^\/v1\//, '');
    const answered = run({ operation, body: () => readBody(request) }).then(({ status, body }) => {
      running.delete(answered);
      send(response, status, body);
    });
    running.set(answered, performance.now());
  };
}

async function readBody(request: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new CometError('usage', 'the body is larger than 1 MB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Waits for an engine that is stopping (its guard died): two writers would damage the store. */
async function clearStale(socket: string): Promise<void> {
  const patience = AbortSignal.timeout(LEAVING_MS);
  while (await socketPresent(socket)) {
    const wasHeld = await heldOpen(socket, patience);
    if (patience.aborted)
      throw new CometError('daemon_unhealthy', 'another engine works on this home; comet-cc stop ends it');
    if (!wasHeld) break;
  }
  if (isPipe(socket)) return;
  await rm(socket, { force: true });
}

async function listen(server: http.Server, socket: string): Promise<void> {
  server.listen({ path: socket });
  await once(server, 'listening').catch((cause: unknown) => {
    throw new CometError('daemon_unhealthy', `the engine's socket ${socket} cannot be opened`, { cause });
  });
}

async function closeServer(server: http.Server, watch: ReturnType<typeof watchSocket> | null): Promise<void> {
  watch?.end();
  server.closeAllConnections();
  // Closing removes what is at its path, as the socket of the next engine.
  if (watch?.isOurs() === false) return void server.unref();
  await new Promise((resolve) => server.close(resolve));
}

/**
 * Null where the request is allowed: by the name that our clients use, and never from a browser, so that the socket
 * behind a relay of somebody's making is not open to web pages.
 */
function refusal({ method, headers }: http.IncomingMessage) {
  if (headers.host !== 'localhost') return { status: 403, message: 'not a name of this listener' };
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)
    return { status: 403, message: 'not for web pages' };
  if (method !== 'POST') return { status: 405, message: 'POST with a JSON body' };
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  return type === 'application/json' ? null : { status: 415, message: 'POST with a JSON body' };
}
