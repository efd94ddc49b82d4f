/**
 * What it costs to understand and rewrite a request: scan, lineage, class, plan match, splice, validation; nothing of the
 * network.
 *
 *   npm run bench:hot-path [-- --json]
 *
 * Each request is the next one of a tool loop, with a cut in force, so that all of the body but its end was seen in the
 * request before. `first` is a request of which nothing was seen, as after a restart. `held` is what stays in memory of
 * a conversation once a request is done, by its bytes.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { applyPlan, type EpochPlan, validateRewrite } from '../proxy/rewrite/plan.ts';
import { PlanIndex } from '../proxy/rewrite/plan-store.ts';
import {
  ConversationCache,
  type ConversationView,
  classify,
  findSessionId,
  parseConversation,
} from '../proxy/wire/conversation.ts';
import { splitTurns } from '../proxy/wire/turns.ts';
import { createConversation } from './latency/conversation.ts';
import { nowMs, type Spread, spread } from './latency/stats.ts';
import type { Sent } from './latency/way.ts';

interface Row {
  readonly bytes: number;
  readonly messages: number;
  readonly sent_bytes: number;
  readonly next_ms: Spread;
  readonly first_ms: Spread;
  /** Memory held for each byte of the body. */
  readonly held: number;
}

const LARGEST_BYTES = 1_000_000;
const TURN_BYTES = 30_000;
const REQUESTS = 200;
const FIRSTS = 20;
const CONVERSATIONS = 4;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const rows = [8, 4, 2, 1].map((part) => measure(LARGEST_BYTES / part));
if (process.argv.includes('--json')) console.log(JSON.stringify({ node: process.version, rows }, null, 2));
else print(rows);

function measure(bytes: number): Row {
  const conversation = grown(bytes);
  const cache = new ConversationCache();
  const book = planFor(view(conversation.loop(), cache));
  const next: number[] = [];
  let [last, sentBytes] = [conversation.loop(), 0];
  for (let at = 0; at < REQUESTS; at += 1) {
    last = conversation.loop();
    const from = nowMs();
    sentBytes = rewrite(last, book, cache);
    next.push(nowMs() - from);
  }
  const first = Array.from({ length: FIRSTS }, () => {
    const sent = conversation.loop();
    const from = nowMs();
    rewrite(sent, book, new ConversationCache());
    return nowMs() - from;
  });
  const messages = view(last, cache).infos.length;
  const held = heldBytes(bytes) / last.body.length;
  return {
    bytes: last.body.length,
    messages,
    sent_bytes: sentBytes,
    next_ms: spread(next),
    first_ms: spread(first),
    held,
  };
}

/** A conversation of about `bytes`, at the end of a turn. */
function grown(bytes: number): ReturnType<typeof createConversation> {
  const conversation = createConversation(TURN_BYTES);
  let sent = conversation.next();
  while (sent.body.length < bytes - TURN_BYTES) sent = conversation.next();
  return conversation;
}

function view({ body }: Sent, cache: ConversationCache): ConversationView {
  const seen = parseConversation(body, cache);
  if (seen === null) throw new Error('the request was not understood');
  return seen;
}

/** A book with one plan, which drops two thirds of the turns and says something in their place. */
function planFor(seen: ConversationView): PlanIndex {
  const turns = splitTurns(seen);
  const through = turns[Math.floor((turns.length * 2) / 3)]?.endHash as string;
  const plan: EpochPlan = {
    id: 'p',
    sessionId: seen.userId,
    createdAtMs: 0,
    epoch: 1,
    cut: { through, preamble: 'What was said before. '.repeat(100), nodeIds: [] },
    strippedThrough: through,
    systemBlock: 'What is known. '.repeat(100),
    systemNodeIds: [],
    injections: [],
    rounds: [],
    broken: false,
  };
  const book = new PlanIndex();
  book.apply({ kind: 'plan', plan, served: through, use: { atMs: 0, model: seen.model, effort: '' } });
  return book;
}

/** @returns bytes of the body that would go out */
function rewrite(sent: Sent, book: PlanIndex, cache: ConversationCache): number {
  const seen = view(sent, cache);
  const kind = classify(seen, sent.headers);
  const sessionId = findSessionId(seen, sent.headers);
  const match = book.match(seen, sessionId);
  const spliced = match === null ? null : applyPlan(seen, match.plan);
  if (kind !== 'main' || spliced === null || spliced.body.length >= sent.body.length)
    throw new Error('nothing was cut');
  const request = { requestId: 'r', path: 'messages', ...sent, receivedAtMs: 0 } as const;
  const context = { request, view: seen, sessionId, kind, isSubagent: false };
  if (match === null || validateRewrite(context, match.plan, spliced, cache) !== null) throw new Error('not valid');
  return spliced.body.length;
}

/** What one conversation leaves in memory after many requests. */
function heldBytes(bytes: number): number {
  const used = (): number => {
    collect();
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const caches = Array.from({ length: CONVERSATIONS }, () => new ConversationCache());
  const before = used();
  for (const cache of caches) {
    const conversation = grown(bytes);
    for (let at = 0; at < 10; at += 1) view(conversation.loop(), cache);
  }
  const after = used();
  return caches.length > 0 ? (after - before) / caches.length : 0;
}

function print(all: readonly Row[]): void {
  console.log(`Understand and rewrite a request, ms (p50 / p95 / p99), Node ${process.version}`);
  for (const row of all) {
    const size = `${String(row.bytes).padStart(8)} B, ${String(row.messages).padStart(3)} messages`;
    console.log(
      `${size}  next ${line(row.next_ms)}  first ${line(row.first_ms)}  held ${row.held.toFixed(2)} of its bytes`,
    );
  }
}

function line({ p50, p95, p99 }: Spread): string {
  return [p50, p95, p99].map((value) => value.toFixed(2).padStart(6)).join(' /');
}
