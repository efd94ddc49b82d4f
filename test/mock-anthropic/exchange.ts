import { createHash, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type Answer, getStopReason } from './answer.ts';
import { deliver, holdBack } from './deliver.ts';
import type { Refusal } from './refusal.ts';
import type { ServedRequest } from './request-record.ts';
import type { Accepted, Judge } from './request-validator.ts';
import type { Brain } from './responder.ts';
import { getMessage, type Reply, streamReply } from './sse.ts';
import type { Threads } from './threads.ts';
import { blockTokens } from './tokens.ts';

export interface ExchangeParts {
  readonly judge: Judge;
  readonly brain: Brain;
  readonly threads: Threads;
  /** On every answer of `/v1/messages`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly missing: RegExp | null;
}

/** Judges and answers one request whose body has arrived. */
export async function answerRequest(
  parts: ExchangeParts,
  request: ServedRequest,
  response: ServerResponse,
): Promise<void> {
  response.setHeader('request-id', `req_${randomBytes(12).toString('hex')}`);
  if (request.kind === 'other') {
    if (parts.missing?.test(request.path)) return sendError(request, response, NOT_FOUND);
    return sendEcho(request, response);
  }
  for (const [name, value] of Object.entries(parts.headers)) response.setHeader(name, value);
  const whole = parts.threads.whole(request.body ?? {});
  if ('refusal' in whole) return refuse(request, response, whole.refusal);
  const verdict = parts.judge.judge({
    body: whole.body === request.body || request.body === null ? request.bytes : whole.body,
    headers: request.headers,
    atMs: request.atMs,
    path: request.kind,
  });
  if (verdict.refusal) return refuse(request, response, verdict.refusal);
  request.usage = { ...verdict.usage, output: 0 };
  request.cost = verdict.cost;
  if (request.kind === 'count_tokens') return send(request, response, 200, { input_tokens: verdict.usage.input });
  const answer = await parts.brain({ ...request, body: verdict.body });
  const id = await sendAnswer(request, response, verdict, answer);
  if (id !== null) parts.threads.keep(verdict.body, id, request.answer);
}

function refuse(request: ServedRequest, response: ServerResponse, refusal: Refusal): Promise<void> {
  request.refusal = refusal;
  return sendError(request, response, refusal);
}

const NOT_FOUND: Refusal = { status: 404, type: 'not_found_error', message: 'Not found' };

export function sendError(request: ServedRequest, response: ServerResponse, refusal: Refusal): Promise<void> {
  const { status, type, message, details } = refusal;
  // The size limit is answered in front of the API, without the outer type.
  const outer = status === 413 ? {} : { type: 'error', request_id: response.getHeader('request-id') };
  return send(request, response, status, { ...outer, error: { type, message, ...(details && { details }) } });
}

/** Returns the id of a message that was sent. */
async function sendAnswer(
  request: ServedRequest,
  response: ServerResponse,
  verdict: Accepted,
  answer: Answer,
): Promise<string | null> {
  const delivery = answer.delivery ?? {};
  const extra = { ...(answer.kind === 'error' ? answer.headers : {}), ...delivery.headers };
  for (const [name, value] of Object.entries(extra)) response.setHeader(name, value);
  await holdBack(delivery);
  if (answer.kind === 'error') {
    await sendError(request, response, answer);
    return null;
  }
  const reply = getReply(request, verdict, answer);
  request.answer = reply.blocks;
  request.usage = { ...verdict.usage, output: reply.outputTokens };
  request.status = 200;
  if (delivery.compress) response.setHeader('content-encoding', delivery.compress);
  const streams = verdict.body.stream === true;
  response.writeHead(200, streams ? STREAM_HEADERS : JSON_HEADERS);
  const whole = [{ text: JSON.stringify(getMessage(reply)), isDelta: false }];
  request.end = await deliver(response, streams ? streamReply(reply) : whole, delivery);
  return reply.id;
}

const JSON_HEADERS = { 'content-type': 'application/json' };
const STREAM_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

function getReply(request: ServedRequest, verdict: Accepted, answer: Answer & { kind: 'message' }): Reply {
  const blocks = verdict.seal(answer.blocks);
  return {
    id: `msg_${randomBytes(12).toString('hex')}`,
    model: request.model,
    blocks,
    stopReason: getStopReason(answer),
    usage: verdict.usage,
    outputTokens: blocks.reduce((sum, block) => sum + blockTokens(block), 0),
    dropped: verdict.dropped,
  };
}

function sendEcho(request: ServedRequest, response: ServerResponse): Promise<void> {
  const sha256 = createHash('sha256').update(request.bytes).digest('hex');
  const { method, path, headers } = request;
  return send(request, response, 200, { method, path, headers, bytes: request.bytes.length, sha256 });
}

async function send(request: ServedRequest, response: ServerResponse, status: number, body: object): Promise<void> {
  request.status = status;
  response.writeHead(status, JSON_HEADERS);
  const text = request.method === 'HEAD' ? '' : JSON.stringify(body);
  request.end = await deliver(response, [{ text, isDelta: false }], {});
}
