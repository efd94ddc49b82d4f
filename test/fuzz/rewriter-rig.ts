import { silentLog } from '../../common/log.ts';
import type { Receipts } from '../../proxy/ledger/receipt.ts';
import type { MessagesRequest, RewriteOutcome, SubagentSource } from '../../proxy/ports.ts';
import type { CutRule } from '../../proxy/rewrite/cut.ts';
import type { RewriterConfig, RunningRewriter } from '../../proxy/rewrite/index.ts';
import type { PlanRecord } from '../../proxy/rewrite/plan.ts';
import { scanBody } from '../../proxy/wire/json.ts';
import { createFakeMemory, type FakeMemory } from '../helpers/fake-memory.ts';
import { createMemoryPlanStore, openRewriter } from '../helpers/open-rewriter.ts';
import { type AnswerBlock, createJudge, type Judge } from '../mock-anthropic/index.ts';
import type { Refusal } from '../mock-anthropic/refusal.ts';

export type Json = Record<string, unknown>;

/** Cuts after a few short turns or rounds, so that short conversations meet them. */
export function earlyCuts(change: Partial<CutRule> = {}): CutRule {
  return {
    triggerTokens: 300,
    targetTokens: 0,
    keepTurns: 1,
    keepRounds: 4,
    keepRoundTokens: 50,
    keepTokens: 50,
    minDropShare: 0.2,
    margin: 0,
    lossShare: 1,
    pressureShare: 0.8,
    ...change,
  };
}

export function earlyConfig(cut: Partial<CutRule> = {}): RewriterConfig {
  return {
    cut: earlyCuts(cut),
    retrieval: 'auto',
    retrievalTokens: 600,
    systemTokens: 900,
    preambleTokens: 2_000,
    costShare: 0.015,
    leastTokens: 1_000,
    memoryDeadlineMs: 5_000,
  };
}

export interface WireRequest {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  /** What the model says to it. */
  readonly answer: readonly AnswerBlock[];
  readonly stopReason?: string;
  /** The response ends behind this many blocks of the answer. */
  readonly cut?: { readonly after: number; readonly by: 'aborted_by_client' | 'cut_by_upstream' };
}

/**
 * - `late`: the rewrite missed its deadline, what was replayed in its place went out
 * - `past`: it went upstream without us, as through the guard's tunnel
 * - `overloaded`, `uncounted`: upstream did not read it, to answer or to count it
 */
export type Route = 'messages' | 'count_tokens' | 'late' | 'past' | 'overloaded' | 'uncounted';
const COUNTS: readonly Route[] = ['count_tokens', 'uncounted'];

export interface Exchange {
  readonly request: WireRequest;
  readonly sent: Buffer;
  readonly rewritten: boolean;
  readonly refusal: Refusal | null;
  /** The answer as the client holds it from then on. */
  readonly content: readonly Json[];
}

/** Rewriter, memory and the rules of the API on a virtual clock, without sockets. */
export interface WireRig {
  readonly memory: FakeMemory;
  readonly records: readonly PlanRecord[];
  readonly clock: { nowMs: number };
  readonly judge: Judge;
  send(request: WireRequest, route?: Route): Promise<Exchange>;
  /** How many plans were made for a session, or given up. */
  epochs(sessionId: string): number;
  /** A new engine on what the old one left on disk, with these settings where they are given. */
  restart(config?: Partial<RewriterConfig>): Promise<void>;
}

export interface RigOptions {
  readonly config?: Partial<RewriterConfig>;
  readonly enforceThinking?: boolean;
  readonly memory?: FakeMemory;
  readonly heldSessions?: number;
  readonly subagents?: SubagentSource;
}

/** Each would hash both bodies of its request. */
const NO_RECEIPTS: Receipts = {
  add() {},
  settle() {},
  list: () => [],
  ofSession: () => [],
  forget: async () => {},
  close: async () => {},
};
const STEP_MS = 20_000;
const OVERLOADED = { refusal: { status: 529, type: 'overloaded_error', message: 'Overloaded' } } as const;
const SECRET = Buffer.alloc(32, 7);

export async function createWireRig(options: RigOptions = {}): Promise<WireRig> {
  const memory = options.memory ?? createFakeMemory();
  const judge = createJudge({ secret: SECRET, enforceThinking: options.enforceThinking ?? true });
  const clock = { nowMs: Date.UTC(2026, 10, 1) };
  const records: PlanRecord[] = [];
  let drawn = 0;
  let onSaved = (): void => {};
  let requests = 0;
  let changed: Partial<RewriterConfig> = {};
  const open = (): Promise<RunningRewriter> =>
    openRewriter({
      memory,
      plans: {
        ...createMemoryPlanStore(records),
        append: async (_, record) => {
          records.push(record);
          onSaved();
        },
      },
      receipts: NO_RECEIPTS,
      // What went past us before the first request is long ago.
      transcripts: { lastAnswerMs: async () => 0, prompts: async () => [] },
      config: { ...earlyConfig(), ...options.config, ...changed },
      clock: { now: () => clock.nowMs },
      randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
      log: silentLog,
      ...(options.subagents !== undefined && { subagents: options.subagents }),
      ...(options.heldSessions !== undefined && { heldSessions: options.heldSessions }),
    });
  const parsed = new Map<string, Json>();
  let rewriter = await open();

  const rewrite = async (request: WireRequest, route: Route): Promise<RewriteOutcome> => {
    requests += 1;
    const received: MessagesRequest = {
      requestId: `r${requests}`,
      path: COUNTS.includes(route) ? 'count_tokens' : 'messages',
      headers: request.headers,
      body: request.bytes,
      receivedAtMs: clock.nowMs,
    };
    if (route !== 'late') return rewriter.rewrite(received, new AbortController().signal);
    const deadline = new AbortController();
    let replayed: RewriteOutcome | null = null;
    const miss = (): void => {
      onSaved = () => {};
      deadline.abort(new DOMException('late', 'TimeoutError'));
      replayed = rewriter.replay(received);
    };
    const rewriting = rewriter.rewrite(received, deadline.signal);
    // At once, or as late as it can be: while what it made is being saved.
    if (requests % 2 === 0) miss();
    else onSaved = miss;
    const rewritten = await rewriting;
    onSaved = () => {};
    return replayed ?? rewritten;
  };

  let counted = 0;
  const epochs = new Map<string, number>();
  const planOf = new Map<string, string>();
  const count = (): void => {
    for (const record of records.slice(counted)) {
      if (record.kind === 'plan') planOf.set(record.plan.id, record.plan.sessionId);
      if (!['plan', 'broken', 'unsent'].includes(record.kind)) continue;
      const id = record.kind === 'plan' ? record.plan.sessionId : (planOf.get(record.planId) ?? '');
      epochs.set(id, (epochs.get(id) ?? 0) + 1);
    }
    counted = records.length;
  };

  return {
    memory,
    records,
    clock,
    judge,
    epochs(sessionId) {
      count();
      return epochs.get(sessionId) ?? 0;
    },
    async restart(config = changed) {
      changed = config;
      rewriter = await open();
    },
    async send(request, route = 'messages') {
      clock.nowMs += STEP_MS;
      const outcome = route === 'past' ? null : await rewrite(request, route);
      const sent = outcome?.body ?? request.bytes;
      const path = COUNTS.includes(route) ? 'count_tokens' : 'messages';
      const body = parseAgain(sent, parsed) ?? sent;
      const verdict =
        route === 'overloaded' || route === 'uncounted'
          ? OVERLOADED
          : judge.judge({ body, headers: request.headers, atMs: clock.nowMs, path });
      const { cut } = request;
      const content = verdict.refusal === null ? verdict.seal(request.answer.slice(0, cut?.after)) : [];
      const calls = content.some((block) => block['type'] === 'tool_use');
      outcome?.onResponse({
        status: verdict.refusal?.status ?? 200,
        end: cut?.by ?? 'complete',
        errorText: verdict.refusal === null ? '' : JSON.stringify(verdict.refusal),
        message:
          verdict.refusal === null
            ? {
                model: '',
                content,
                stopReason: cut === undefined ? (request.stopReason ?? (calls ? 'tool_use' : 'end_turn')) : null,
                usage: { ...verdict.usage, output: 1 },
              }
            : null,
      });
      await new Promise(setImmediate); // turns are handed to memory off the path of the request
      return { request, sent, rewritten: outcome?.rewritten ?? false, refusal: verdict.refusal, content };
    },
  };
}

/** Parsed, each message that was seen before as the very object it was; null when it is no such body. */
function parseAgain(body: Buffer, known: Map<string, Json>): Json | null {
  const scan = scanBody(body);
  if (scan === null) return null;
  const messages = scan.messages.map(({ start, end }) => {
    const text = body.toString('utf8', start, end);
    const found = known.get(text) ?? (JSON.parse(text) as Json);
    known.set(text, found);
    return found;
  });
  const rest = [...scan.fields].filter(([name]) => name !== 'messages');
  const others = rest.map(([name, at]) => [name, JSON.parse(body.toString('utf8', at.start, at.end))]);
  return { ...Object.fromEntries(others), messages };
}
