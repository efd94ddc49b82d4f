import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { makeTestCerts } from './certs.ts';
import { createHomeWithCerts, LOOK_MS, type TestHome } from './cli.ts';
import { sseMessage } from './sse.ts';
import {
  type Answer,
  ask,
  CLIENT,
  openRequest,
  type Reply,
  type StandIn,
  secureThrough,
  startStandIn,
} from './tls-client.ts';

export interface FaultStatus {
  readonly pid: number;
  readonly engine: { readonly state: string; readonly pid: number; readonly restarts: number };
  readonly requests: Readonly<Record<'total' | 'rewritten' | 'passed_through' | 'failed_open', number>>;
  readonly tunnels: { readonly open: number; readonly total: number; readonly failed_open: number };
  readonly problems: readonly { readonly file: string; readonly message: string }[];
}

export type FaultRig = Awaited<ReturnType<typeof startFaultRig>>;

export const MESSAGE = sseMessage('one, two');

/**
 * The built daemon in front of a TLS upstream, which echoes; a path that ends in `stream` gets half an event stream,
 * and the rest on `finish`. A client that trusts the upstream's certificate only gets through where it is tunnelled.
 */
export async function startFaultRig(env: Readonly<Record<string, string>> = {}, answer: Answer = echo) {
  const theirs = makeTestCerts(['api.anthropic.com', '127.0.0.1']);
  let finish = (): void => {};
  const standIn: StandIn = await startStandIn(theirs, (request, response, body) => {
    if (!request.url?.endsWith('stream')) return answer(request, response, body);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(MESSAGE.subarray(0, 500));
    finish = () => void response.end(MESSAGE.subarray(500));
  });
  const home: TestHome = await createHomeWithCerts({
    COMET_CC_UPSTREAM: standIn.origin,
    COMET_CC_UPSTREAM_CA: theirs.caFile,
    // Many of its faults are an engine that nothing waits for any longer.
    COMET_CC_HOLD_MS: '2000',
    ...env,
  });
  const started = await home.run(['start']);
  const access = (await home.json(['env', '--shell', 'json'])) as Record<string, string>;
  const url = new URL(access['HTTPS_PROXY'] as string);
  const credentials = Buffer.from(`${url.username}:${url.password}`).toString('base64');
  const via = { port: Number(url.port), connectHeaders: `Proxy-Authorization: Basic ${credentials}\r\n` };
  const ours = await readFile(access['NODE_EXTRA_CA_CERTS'] as string, 'utf8');
  const status = async (): Promise<FaultStatus> => (await home.status()) as FaultStatus;
  return {
    home,
    standIn,
    via,
    ours,
    theirs: theirs.ca,
    started,
    status,
    /** Through the engine, as its certificate proves. */
    intercepted: (body: string): Promise<Reply> => ask(via, ours, { headers: CLIENT, body }),
    /** Past the engine. */
    tunnelled: (body: string): Promise<Reply> => ask(via, theirs.ca, { headers: CLIENT, body }),
    /** A client that trusts both, and so does not care. */
    either: (body: string): Promise<Reply> => ask(via, ours + theirs.ca, { headers: CLIENT, body }),
    /** Resolves when the first half of the stream has arrived. */
    async stream() {
      const secure = await secureThrough(via, ours);
      secure.on('error', () => {});
      const request = openRequest(secure, { path: '/v1/messages?stream', headers: CLIENT });
      request.on('error', () => {}).end('{"model":"x"}');
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      const whole = new Promise<Buffer>((resolve, reject) => {
        response.once('end', () => resolve(Buffer.concat(chunks))).once('error', reject);
      });
      whole.catch(() => {});
      await once(response, 'data');
      return { whole, finish: () => finish(), close: () => secure.destroy() };
    },
    async statusUntil(test: (status: FaultStatus) => boolean): Promise<FaultStatus> {
      for (;;) {
        const now = await status();
        if (test(now)) return now;
        await after(LOOK_MS);
      }
    },
    async close() {
      await home.close();
      await standIn.close();
    },
  };
}

function echo(_request: IncomingMessage, response: Parameters<Answer>[1], body: Buffer): void {
  response.end(body);
}
