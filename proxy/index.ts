import type { Socket } from 'node:net';
import { carryWebSocket, type ExchangeDeps, type ProxyStats, runExchange } from './http/exchange.ts';
import { Mitm, type MitmOptions } from './http/mitm.ts';
import { createUpstream, type UpstreamOptions } from './http/upstream.ts';

export type { ProxyStats } from './http/exchange.ts';
export { createAssembler, createSseDecoder } from './http/response.ts';
export type { Receipt } from './ledger/receipt.ts';
export type * from './ports.ts';
export type { RecallCounts } from './rewrite/recall.ts';
export { applyEdits, scanBody, scanObject } from './wire/json.ts';

export interface ProxyDeps
  extends Omit<ExchangeDeps, 'upstream' | 'origin' | Limit>,
    Pick<MitmOptions, 'certs' | 'secret'>,
    Partial<Pick<ExchangeDeps & MitmOptions, Limit>> {
  readonly upstream: UpstreamOptions;
}
type Limit = 'bodyCapBytes' | 'teeCapBytes' | 'handshakeMs' | 'headersMs';

export type Proxy = ReturnType<typeof createProxy>;

const MAX_CAPTURE_BYTES = 64 * 1024 * 1024;

/** @throws CometError `ca_unreadable` when the upstream's CA cannot be read */
export function createProxy(deps: ProxyDeps) {
  const stats: ProxyStats = { total: 0, rewritten: 0, passed_through: 0, failed_open: 0 };
  const running = new Set<Promise<void>>();
  let lastRequestMs = 0;
  const upstream = createUpstream(deps.upstream);
  const exchange = {
    ...deps,
    upstream,
    origin: deps.upstream.origin,
    bodyCapBytes: deps.bodyCapBytes ?? MAX_CAPTURE_BYTES,
    teeCapBytes: deps.teeCapBytes ?? MAX_CAPTURE_BYTES,
  };
  const mitm = new Mitm({
    authority: `${deps.targetHost}:443`,
    secret: deps.secret,
    certs: deps.certs,
    log: deps.log,
    handshakeMs: deps.handshakeMs ?? 10_000,
    headersMs: deps.headersMs ?? 60_000,
    onRequest(incoming) {
      const run = runExchange(exchange, incoming, stats).finally(() => running.delete(run));
      running.add(run);
      lastRequestMs = deps.clock.now();
    },
    onUpgrade: (...upgrade) => void carryWebSocket(exchange, ...upgrade),
  });
  return {
    /** Loopback port for the guard. */
    listen: (): Promise<number> => mitm.listen(),
    /** Accepts a client's connection from the guard; null when the client has disconnected. */
    acceptClient: (name: string, client: Socket | null): void => mitm.acceptClient(name, client),
    problems: upstream.problems,
    stats: (): Readonly<ProxyStats> => ({ ...stats }),
    /** Requests whose answer is not complete, and when the newest request came, ms; 0 for none. */
    activity: () => ({ answering: running.size, lastRequestMs }),
    /** Accepts no new connection; resolves when every exchange has ended. */
    async drain(): Promise<void> {
      mitm.drain();
      while (running.size > 0) await Promise.all(running);
    },
    /** Aborts running exchanges; idempotent. */
    async close(): Promise<void> {
      await mitm.close();
      await upstream.close();
      await Promise.all(running);
    },
  };
}
