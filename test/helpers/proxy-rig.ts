import { rmSync } from 'node:fs';
import type http from 'node:http';
import { createProxy, type Proxy as EngineProxy, type ProxyDeps } from '../../proxy/index.ts';
import type { MessagesRequest, ObservedResponse, RewriteOutcome, Rewriter } from '../../proxy/ports.ts';
import { makeTestCerts, type TestCerts } from './certs.ts';
import {
  type Answer,
  ask as askVia,
  type Reply,
  type Send,
  type StandIn,
  startStandIn,
  type Via,
} from './tls-client.ts';

export interface Rig {
  readonly via: Via;
  readonly ca: string;
  readonly proxy: EngineProxy;
  readonly standIn: StandIn;
  readonly rewrites: MessagesRequest[];
  readonly warnings: { message: string; fields: Record<string, unknown> }[];
  /** Resolves with the next response that the rewriter is told of. */
  nextSeen(): Promise<ObservedResponse>;
  ask(send: Send): Promise<Reply>;
  close(): Promise<void>;
}

export interface RigOptions {
  readonly answer?: Answer;
  readonly early?: Answer;
  readonly rewrite?: (request: MessagesRequest) => Promise<Buffer> | Buffer;
  readonly replay?: (request: MessagesRequest) => Buffer;
  readonly deps?: Partial<ProxyDeps>;
  readonly trustUpstream?: boolean;
}

export const SECRET = 'the-secret-of-the-guard';
let certs: { ours: TestCerts; theirs: TestCerts } | null = null;

/** Made once for each test file. */
function rigCerts(): { ours: TestCerts; theirs: TestCerts } {
  certs ??= { ours: makeTestCerts(['api.anthropic.com']), theirs: makeTestCerts(['127.0.0.1', 'localhost']) };
  return certs;
}

export function removeRigCerts(): void {
  for (const made of Object.values(certs ?? {})) rmSync(made.dir, { recursive: true });
  certs = null;
}

/** The engine's proxy in this process, in front of a stand-in; the tests play the guard. */
export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const { ours, theirs } = rigCerts();
  const rewrites: MessagesRequest[] = [];
  const warnings: Rig['warnings'] = [];
  const seen: ObservedResponse[] = [];
  const waiting: ((response: ObservedResponse) => void)[] = [];
  const outcome = (body: Buffer, request: MessagesRequest): RewriteOutcome => ({
    body,
    rewritten: body !== request.body,
    onResponse(response) {
      const next = waiting.shift();
      if (next) next(response);
      else seen.push(response);
    },
  });
  const rewriter: Rewriter = {
    async rewrite(request) {
      rewrites.push(request);
      return outcome((await options.rewrite?.(request)) ?? request.body, request);
    },
    replay: (request) => outcome(options.replay?.(request) ?? request.body, request),
  };
  const standIn = await startStandIn(theirs, options.answer ?? echo, options.early);
  const proxy = createProxy({
    rewriter,
    certs: { leaf: () => ours },
    upstream: { origin: standIn.origin, ...(options.trustUpstream === false ? {} : { caFile: theirs.caFile }) },
    targetHost: 'api.anthropic.com',
    rewriteDeadlineMs: 60_000,
    secret: SECRET,
    log: {
      debug() {},
      info() {},
      warn: (message, fields = {}) => void warnings.push({ message, fields }),
      error: (message, fields = {}) => void warnings.push({ message, fields }),
    },
    clock: { now: () => Date.now() },
    ...options.deps,
  });
  const via: Via = { port: await proxy.listen(), connectHeaders: `x-comet-cc-guard: ${SECRET}\r\n` };
  return {
    via,
    ca: ours.ca,
    proxy,
    standIn,
    rewrites,
    warnings,
    nextSeen: () =>
      new Promise((resolve) => {
        const past = seen.shift();
        if (past) resolve(past);
        else waiting.push(resolve);
      }),
    ask: (send) => askVia(via, ours.ca, send),
    async close() {
      await proxy.close();
      await standIn.close();
    },
  };
}

function echo(_request: http.IncomingMessage, response: http.ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream' });
  response.end(body);
}
