import { isRecord } from '../../common/text.ts';
import { blocksOf, createJudge, type Json, type ServedRequest } from '../../test/mock-anthropic/index.ts';
import type { SentRequest } from './client.ts';

/** Prompts only; tokens as the mock upstream counts them, cost in tokens of uncached input. */
export interface Bill {
  readonly requests: number;
  readonly refused: number;
  readonly tokens: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly cost: number;
}

/** The same conversation sent direct: the client's own bodies before a judge with a cache of its own. */
export interface Direct {
  add(request: SentRequest, atMs: number): void;
  bill(): Bill;
}

export function createDirect(): Direct {
  // What the proxy changed is not in these bodies, so the signatures of the answers cannot fit them.
  const judge = createJudge({ enforceThinking: false });
  let bill: Bill = { requests: 0, refused: 0, tokens: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
  return {
    add({ body, headers }, atMs) {
      const verdict = judge.judge({ body, headers, atMs });
      const usage = verdict.refusal === null ? verdict.usage : null;
      bill = added(bill, usage, verdict.refusal === null ? verdict.cost : 0);
    },
    bill: () => bill,
  };
}

/** What reached the mock upstream. */
export function billOf(requests: readonly ServedRequest[]): Bill {
  const none: Bill = { requests: 0, refused: 0, tokens: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
  return requests
    .filter((request) => request.kind === 'messages')
    .reduce((bill, request) => added(bill, request.usage, request.cost), none);
}

/** How often a session's prefix was begun anew: its first request, and every cut after it. */
export function epochsOf(requests: readonly ServedRequest[]): { readonly epochs: number; readonly cuts: number } {
  const sessions = new Set(requests.map((request) => request.sessionId));
  const preambles = new Set(requests.flatMap((request) => preambleOf(request.body)));
  return { epochs: sessions.size + preambles.size, cuts: preambles.size };
}

function preambleOf(body: Json | null): string[] {
  const messages = Array.isArray(body?.messages) ? body.messages.filter(isRecord) : [];
  return messages
    .filter((message) => message.role === 'user')
    .map((message) => String(blocksOf(message.content)[0]?.text ?? ''))
    .filter((text) => text.startsWith('<comet-cc-memory'));
}

function added(
  bill: Bill,
  usage: ServedRequest['usage'] | Omit<NonNullable<ServedRequest['usage']>, 'output'>,
  cost: number,
): Bill {
  const written = usage === null ? 0 : usage.cacheWrite5m + usage.cacheWrite1h;
  return {
    requests: bill.requests + 1,
    refused: bill.refused + (usage === null ? 1 : 0),
    tokens: bill.tokens + (usage === null ? 0 : usage.input + usage.cacheRead + written),
    cacheRead: bill.cacheRead + (usage?.cacheRead ?? 0),
    cacheWrite: bill.cacheWrite + written,
    cost: bill.cost + cost,
  };
}
