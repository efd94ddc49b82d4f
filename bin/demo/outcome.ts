import { createHash } from 'node:crypto';
import { isRecord } from '../../common/text.ts';
import { applyEdits, type Receipt, scanBody, scanObject } from '../../proxy/index.ts';
import { blocksOf, createJudge, type Json, type ServedRequest } from '../../test/mock-anthropic/index.ts';
import type { SentRequest } from './client.ts';
import type { Stage } from './harness.ts';
import type { Channel, Found } from './replies.ts';
import { isQuestion, type StorySession } from './story.ts';

/** What `--json` prints. */
export interface Outcome {
  readonly ok: boolean;
  readonly problems: readonly string[];
  readonly sessions: number;
  readonly turns: number;
  readonly requests: number;
  readonly refused: number;
  readonly tokens: { readonly received: number; readonly sent: number; readonly saved: number };
  readonly cache: {
    readonly read: number;
    readonly written: number;
    readonly direct: { readonly read: number; readonly written: number };
  };
  /** In tokens of uncached input. */
  readonly cost: { readonly direct: number; readonly through: number; readonly saved: number };
  /** What the engine's own ledger says of the same requests. */
  readonly ledger: { readonly received: number; readonly sent: number; readonly saved_usd: number };
  /** Receipts whose edits turn what the client sent into what the mock upstream received. */
  readonly receipts: { readonly checked: number; readonly true: number };
  /** Messages that `memory restore` gives back as the client had sent them. */
  readonly restored: { readonly messages: number; readonly equal: number };
  readonly nodes: number;
  readonly epochs: number;
  readonly cuts: number;
  readonly questions: readonly Answered[];
  readonly duration_ms: number;
  /** Null unless it was kept. */
  readonly home: string | null;
}

export interface Answered {
  readonly question: string;
  /** What came back to the client. */
  readonly answer: string;
  readonly answered: boolean;
  readonly node_id: string | null;
  /** Of that node; null where there is none by that id. */
  readonly summary: string | null;
  readonly channel: Channel | null;
  readonly line: string | null;
  /** Whether the answer stood in what Claude Code itself sent with the question. */
  readonly in_client_request: boolean;
}

export interface Evidence {
  readonly direct: Bill;
  readonly found: ReadonlyMap<string, Found>;
  /** The client's own body by the prompt it asked. */
  readonly asked: ReadonlyMap<string, Buffer>;
  readonly answers: ReadonlyMap<string, string>;
  /** Every body as the client sent it. */
  readonly bodies: readonly Buffer[];
  readonly story: readonly StorySession[];
  readonly keep: boolean;
  readonly startedMs: number;
}

export async function outcomeOf(stage: Stage, evidence: Evidence): Promise<Outcome> {
  const { direct, story } = evidence;
  const through = billOf(stage.standin.requests);
  const { epochs, cuts } = epochsOf(stage.standin.requests);
  const nodes = await stage.engine.call('nodes/list', { all: true });
  const { tokens, savings } = await stage.engine.call('status', {});
  const receipts = checkReceipts(await stage.engine.call('receipts/list', {}), evidence.bodies, stage.standin.requests);
  const restored = await checkRestored(stage, story, evidence.bodies);
  const questions = story
    .flatMap((session) => session.turns.filter(isQuestion))
    .map((question): Answered => {
      const found = evidence.found.get(question.prompt) ?? null;
      const answer = evidence.answers.get(question.prompt) ?? '';
      return {
        question: question.prompt,
        answer,
        answered: question.right.test(answer),
        node_id: found?.nodeId ?? null,
        summary: nodes.find((node) => node.node_id === found?.nodeId)?.summary ?? null,
        channel: found?.channel ?? null,
        line: found?.line ?? null,
        in_client_request: question.right.test(evidence.asked.get(question.prompt)?.toString('utf8') ?? ''),
      };
    });
  const problems = [
    ...(through.refused > 0 ? [`${through.refused} requests were refused`] : []),
    ...(cuts === 0 ? ['nothing was cut'] : []),
    ...(receipts.true < receipts.checked ? [`${receipts.checked - receipts.true} receipts are wrong`] : []),
    ...(restored.equal < restored.messages ? [`${restored.messages - restored.equal} messages are not as sent`] : []),
    ...questions.filter(({ answered }) => !answered).map(({ question }) => `nothing answered "${question}"`),
    ...questions
      .filter(({ node_id, summary }) => node_id !== null && summary === null)
      .map(({ node_id }) => `there is no memory ${node_id}`),
  ];
  return {
    ok: problems.length === 0,
    problems,
    sessions: story.length,
    turns: story.reduce((sum, session) => sum + session.turns.length, 0),
    requests: through.requests,
    refused: through.refused,
    tokens: { received: direct.tokens, sent: through.tokens, saved: direct.tokens - through.tokens },
    cache: {
      read: through.cacheRead,
      written: through.cacheWrite,
      direct: { read: direct.cacheRead, written: direct.cacheWrite },
    },
    cost: {
      direct: Math.round(direct.cost),
      through: Math.round(through.cost),
      saved: Math.round(direct.cost - through.cost),
    },
    ledger: { received: tokens.original, sent: tokens.sent, saved_usd: savings.total.net_saved_usd },
    receipts,
    restored,
    // As many as memory ls shows: what tools did in a turn stands below its node.
    nodes: nodes.filter(({ parent_node_id }) => parent_node_id === null).length,
    epochs,
    cuts,
    questions,
    duration_ms: Date.now() - evidence.startedMs,
    home: evidence.keep ? stage.paths.home : null,
  };
}

/** Holds every receipt against what left the client and what arrived upstream. */
export function checkReceipts(
  receipts: readonly Receipt[],
  bodies: readonly Buffer[],
  served: readonly Pick<ServedRequest, 'bytes'>[],
): { checked: number; true: number } {
  const received = new Map(bodies.map((body) => [sha256(body), body]));
  const arrived = new Set(served.map(({ bytes }) => sha256(bytes)));
  const isTrue = (receipt: Receipt): boolean => {
    const body = received.get(receipt.received.sha256);
    if (body === undefined) return false;
    const edits = receipt.edits.map(({ start, end, text }) => ({ start, end, bytes: Buffer.from(text) }));
    const sent = sha256(applyEdits(body, edits));
    return sent === receipt.sent.sha256 && arrived.has(sent);
  };
  return { checked: receipts.length, true: receipts.filter(isTrue).length };
}

/** Holds the restored messages of each session against every form in which the client sent them. */
export async function checkRestored(
  stage: Pick<Stage, 'engine'>,
  story: readonly StorySession[],
  bodies: readonly Buffer[],
): Promise<{ messages: number; equal: number }> {
  const sent = new Set(bodies.flatMap(contentDigests));
  let messages = 0;
  let equal = 0;
  for (const session of story) {
    const last = bodies.findLast((body) => body.includes(session.id));
    // The last answer was not sent any more.
    const count = last === undefined ? 0 : contentDigests(last).length;
    const restored = await stage.engine.call('sessions/restore', { sessionId: session.id });
    messages += count;
    equal += restored.slice(0, count).filter((message) => sent.has(message.sha256)).length;
  }
  return { messages, equal };
}

function contentDigests(body: Buffer): string[] {
  return (scanBody(body)?.messages ?? []).flatMap((at) => {
    const content = scanObject(body, at.start)?.values.get('content');
    return content === undefined ? [] : [sha256(body.subarray(content.start, content.end))];
  });
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Prompts only; tokens as the mock upstream counts them, cost in tokens of uncached input. */
export interface Bill {
  readonly requests: number;
  readonly refused: number;
  readonly tokens: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly cost: number;
}

const NO_COST: Bill = { requests: 0, refused: 0, tokens: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };

/** The same conversation sent direct: the client's own bodies before a judge with a cache of its own. */
export interface Direct {
  add(request: SentRequest, atMs: number): void;
  bill(): Bill;
}

export function createDirect(): Direct {
  // What the proxy changed is not in these bodies, so the signatures of the answers cannot fit them.
  const judge = createJudge({ enforceThinking: false });
  let bill = NO_COST;
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
  return requests
    .filter((request) => request.kind === 'messages')
    .reduce((bill, request) => added(bill, request.usage, request.cost), NO_COST);
}

/** Number of epochs of a session: its first request, and every cut. */
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
