import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerRequest, sendError } from './exchange.ts';
import { isObject, type Json } from './json.ts';
import { TOO_LARGE } from './refusal.ts';
import { getClass, getSession, type ServedRequest } from './request-record.ts';
import { createJudge } from './request-validator.ts';
import { type Brain, echoBrain } from './responder.ts';
import { listen, readBody } from './server.ts';
import { createThreads } from './threads.ts';
import { addUp, type Totals } from './totals.ts';

export type { Answer, AnswerBlock, Delivery } from './answer.ts';
export { getBlocks as blocksOf, type Json } from './json.ts';
export { newestPrompt, type ServedRequest } from './request-record.ts';
export { createJudge, type Judge, type Verdict } from './request-validator.ts';
export { type Brain, echoBrain, getRound as roundOf, scriptedBrain } from './responder.ts';
export { structuredBrain } from './structured.ts';
export type { Totals } from './totals.ts';

export interface StandinOptions {
  /** PEM; plain http when left out. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Default: {@link echoBrain}. */
  readonly brain?: Brain;
  /** Time of the prompt cache; the real one by default. */
  readonly clock?: { now(): number };
  /** Default true; see the judge. */
  readonly enforceThinking?: boolean;
  /** Signs thinking blocks: give the same one to a stand-in that takes over a conversation. */
  readonly secret?: Buffer;
  /** On every answer of `/v1/messages`, e.g. `anthropic-ratelimit-*`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Paths that get a 404 instead of an echo: Claude Code asks again and again for settings that make no sense. */
  readonly missing?: RegExp;
}

export interface Standin {
  /** `http(s)://127.0.0.1:port` */
  readonly origin: string;
  readonly port: number;
  /** In order of arrival, refused and echoed ones included. */
  readonly requests: readonly ServedRequest[];
  /** Those the rules refused. */
  readonly refused: readonly ServedRequest[];
  totals(): Totals;
  /** Resolves with the first request, past or to come, that `test` accepts; tested at arrival and when answered. */
  waitFor(test: (request: ServedRequest) => boolean): Promise<ServedRequest>;
  /** Idempotent; ends open connections. */
  close(): Promise<void>;
}

const MAX_BYTES = 32 * 1024 * 1024;

/** An API of our own on loopback: refuses what the real one refuses, bills by its prompt cache, keeps all it saw. */
export async function createStandin(options: StandinOptions = {}): Promise<Standin> {
  const { clock = Date, brain = echoBrain, headers = {}, missing = null, tls } = options;
  const judge = createJudge(options);
  const threads = createThreads();
  const requests: ServedRequest[] = [];
  const waiting = new Set<() => void>();
  const announce = () => {
    for (const look of waiting) look();
  };

  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const atMs = clock.now();
    const upload = await readBody(incoming, MAX_BYTES);
    const request = record(incoming, upload.bytes, { index: requests.length, atMs });
    if (upload.end === 'aborted') request.end = 'aborted';
    requests.push(request);
    announce();
    if (upload.end === 'aborted') return;
    try {
      if (upload.end === 'whole') await answerRequest({ judge, threads, brain, headers, missing }, request, response);
      else await refuseSize(request, response);
    } catch (error) {
      await fail(request, response, error);
    }
    announce();
  };

  const listener = await listen(tls, (incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  return {
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${listener.port}`,
    port: listener.port,
    requests,
    get refused() {
      return requests.filter((request) => request.refusal !== null);
    },
    totals: () => addUp(requests),
    waitFor: (test) => waitFor(requests, waiting, test),
    close: () => listener.close(),
  };
}

function refuseSize(request: ServedRequest, response: ServerResponse): Promise<void> {
  request.refusal = TOO_LARGE;
  return sendError(request, response, request.refusal);
}

/** A brain that throws is a 500, so that the test sees it and the client does not hang. */
async function fail(request: ServedRequest, response: ServerResponse, error: unknown): Promise<void> {
  if (response.headersSent) {
    request.end = 'cut';
    response.destroy();
    return;
  }
  const message = error instanceof Error ? error.message : String(error);
  await sendError(request, response, { status: 500, type: 'api_error', message: `stand-in: ${message}` });
}

function waitFor(
  requests: readonly ServedRequest[],
  waiting: Set<() => void>,
  test: (request: ServedRequest) => boolean,
): Promise<ServedRequest> {
  return new Promise((resolve) => {
    const look = () => {
      const found = requests.find(test);
      if (!found) return;
      waiting.delete(look);
      resolve(found);
    };
    waiting.add(look);
    look();
  });
}

function record(
  incoming: IncomingMessage,
  bytes: Buffer,
  at: { readonly index: number; readonly atMs: number },
): ServedRequest {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) headers[name] = String(value);
  const path = incoming.url ?? '/';
  const kind = getKind(incoming.method ?? '', path);
  const body = kind === 'other' ? null : parse(bytes);
  return {
    ...at,
    method: incoming.method ?? '',
    path,
    kind,
    rawHeaders: incoming.rawHeaders,
    headers,
    bytes,
    body,
    model: String(body?.model ?? ''),
    sessionId: getSession(headers, body),
    class: getClass(headers, body),
    status: 0,
    refusal: null,
    usage: null,
    cost: 0,
    answer: [],
    end: 'pending',
  };
}

function getKind(method: string, path: string): ServedRequest['kind'] {
  const [name] = path.split('?');
  if (method !== 'POST') return 'other';
  if (name === '/v1/messages') return 'messages';
  return name === '/v1/messages/count_tokens' ? 'count_tokens' : 'other';
}

function parse(bytes: Buffer): Json | null {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
