import { performance } from 'node:perf_hooks';
import { finishesWithin } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { cutRule } from '../../engine/cut-config.ts';
import type { createStaticEmbedder } from '../../memory/embeddings/static-embedder.ts';
import type { Memory } from '../../memory/index.ts';
import type { LanguageModel } from '../../memory/models/model.ts';
import type { ModelQuota } from '../../memory/models/quota.ts';
import type { SearchIndex } from '../../memory/search/search-index.ts';
import { type CostLedger, openCostLedger } from '../../proxy/ledger/index.ts';
import type { MessagesRequest, Phase, PhaseTimer, TranscriptSource, Usage } from '../../proxy/ports.ts';
import type { PlanRecord } from '../../proxy/rewrite/plan.ts';
import {
  findHeadTokens,
  type PastConversation,
  type PastMessage,
  type PastRequest,
} from '../../proxy/transcript/index.ts';
import { createInMemorySearchIndex } from '../../test/helpers/in-memory-search-index.ts';
import { createMemoryRecords } from '../../test/helpers/memory-records.ts';
import { createDisk, openRig } from '../../test/helpers/memory-rig.ts';
import { createMemoryPlanStore, openRewriter } from '../../test/helpers/open-rewriter.ts';
import { makeRequest } from '../../test/helpers/transcripts.ts';
import { type AnswerBlock, createJudge, type Json, type Verdict } from '../../test/mock-anthropic/index.ts';

export interface PlayOptions {
  readonly config: Config;
  /** Of the requests, and how long their prompt cache lives. */
  readonly model: string;
  readonly ttl: '5m' | '1h';
  readonly embedder: ReturnType<typeof createStaticEmbedder>;
  /** One in memory where it is absent. */
  readonly index?: SearchIndex;
  /** Writes the memories. */
  readonly memoryModel: LanguageModel;
  /** Rules where the model fails. */
  readonly local: LanguageModel;
  /** Whether the model may be called; absent where it always may. */
  readonly openQuota?: (ledger: CostLedger) => ModelQuota;
  /** The engine starts again after every nth request, before its answer: only what the stores hold survives. */
  readonly restartEvery?: number;
  /** Absent where every session is played from its start. */
  readonly transcripts?: TranscriptSource;
}

/** One request, untouched and through the product, as the mock API bills both. */
export interface Played {
  readonly conversation: PastConversation;
  readonly request: PastRequest;
  readonly direct: Accepted;
  /** The untouched request's where the API refuses what the product sent. */
  readonly sent: Accepted;
  /** What the mock API says of it; null where it accepts. */
  readonly refusal: string | null;
  /** Of the rewriter. */
  readonly ms: number;
  /** Of its steps. */
  readonly phases: readonly Phase[];
  /** Memory was made of all earlier answers when it came. */
  readonly rested: boolean;
}

type Accepted = Extract<Verdict, { refusal: null }>;

/** Memory takes less. */
const LONGEST_PAUSE_MS = 60_000;

/** A request of the client, in the order of time. */
interface Due {
  readonly conversation: PastConversation;
  readonly request: PastRequest;
}

/** The product's rewriter, ledger and memory on the clock of the sessions that are played through them. */
export async function openPlayer(options: PlayOptions) {
  const { config, model, ttl, embedder } = options;
  const disk = createDisk();
  disk.index = { ...(options.index ?? createInMemorySearchIndex(embedder)), close: async () => {} };
  const clock = { now: () => disk.nowMs };
  const planRecords: PlanRecord[] = [];
  const stores = { plans: createMemoryPlanStore(planRecords), ledger: createMemoryRecords<never>() };
  let drawn = 0;
  let engine = await openEngine();

  async function openEngine() {
    const ledger = await openCostLedger({ store: stores.ledger, rule: config.ledger, clock, log: silentLog });
    const quota = options.openQuota?.(ledger);
    const models = { model: options.memoryModel, local: options.local };
    const memory = await openRig(disk, { ...models, ...(quota === undefined ? {} : { quota }) });
    const rewriter = await openRewriter({
      memory: { ...memory.capture, ...memory.recall },
      ...(options.transcripts === undefined ? {} : { transcripts: options.transcripts }),
      plans: stores.plans,
      config: { ...config.inject, memoryDeadlineMs: 60_000, cut: cutRule(config.trim) },
      ledger,
      clock,
      randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
    });
    return { memory, ledger, rewriter };
  }

  /** By the first message: a fork has the tools of the session that it was made of. */
  const heads = new Map<PastMessage, number>();
  /** Of requests that the API refuses untouched. */
  let unplayable = 0;
  let played = 0;
  const judges = { direct: createJudge({ enforceThinking: false }), sent: createJudge() };
  /** Answers by session, with the thinking that the mock API signed for what the product sent; a fork begins with its parent's. */
  const answers = new Map<string, Map<PastMessage, PastMessage>>();
  const answersOf = (sessionId: string): Map<PastMessage, PastMessage> => {
    const signed = answers.get(sessionId) ?? new Map(answers.get(sessionId.replace(/^fork-/, '')));
    answers.set(sessionId, signed);
    return signed;
  };

  async function send({ conversation, request }: Due, rested: boolean): Promise<Played | null> {
    const signed = answersOf(conversation.sessionId);
    const sending = { model, ttl, index: played, headTokens: getHead(conversation, request) };
    const client = buildRequest(
      conversation,
      { ...request, messages: request.messages.map((one) => signed.get(one) ?? one) },
      sending,
    );
    const { body, headers, receivedAtMs: atMs } = client;
    const direct = judges.direct.judge({ body, headers, atMs });
    if (direct.refusal !== null) {
      unplayable += 1;
      return null;
    }
    const { rewriter } = engine;
    const startMs = performance.now();
    const timer = timerFrom(startMs);
    const outcome = await rewriter.rewrite({ ...client, timer }, new AbortController().signal);
    const ms = performance.now() - startMs;
    const judged = judges.sent.judge({ body: outcome.body, headers, atMs });
    const sent = judged.refusal === null ? judged : direct;
    const { answer } = request;
    // Claude Code strips the thinking of the whole conversation.
    if (judged.refusal !== null) for (const message of request.messages) signed.delete(message);
    if (judged.refusal === null && answer !== null) {
      const blocks = [THINKING, ...answer.content] as readonly AnswerBlock[];
      signed.set(answer, { role: 'assistant', content: judged.seal(blocks) });
    }
    played += 1;
    if (played % (options.restartEvery ?? Number.POSITIVE_INFINITY) === 0) engine = await openEngine();
    else outcome.onResponse(getResponse(signedAnswer(request, signed), sent.usage, judged.refusal?.message ?? null));
    await settle(engine.memory);
    const refusal = judged.refusal?.message ?? null;
    return { conversation, request, direct, sent, refusal, ms, phases: timer.phases, rested };
  }

  function getHead(conversation: PastConversation, { messages: [first] }: PastRequest): number {
    const tokens = heads.get(first as PastMessage) ?? findHeadTokens(conversation);
    heads.set(first as PastMessage, tokens);
    return tokens;
  }

  function signedAnswer(request: PastRequest, signed: ReadonlyMap<PastMessage, PastMessage>): PastRequest {
    return { ...request, answer: (request.answer && signed.get(request.answer)) ?? request.answer };
  }

  return {
    /**
     * Plays these conversations by the time of their requests, then consolidates memory. The pause before a prompt ends
     * when memory is made of all earlier answers.
     */
    async play(conversations: readonly PastConversation[], onPlayed: (played: Played) => void): Promise<void> {
      let answeredMs = 0;
      for (const due of inOrder(conversations)) {
        const { atMs, answeredAtMs } = due.request;
        if (atMs - disk.nowMs > config.compaction.idleMs) await rest(engine.memory);
        const pauseMs = Math.min(Math.max(0, atMs - answeredMs), LONGEST_PAUSE_MS);
        const rested = isPrompt(due) && (await finishesWithin(engine.memory.maintenance.settled(), pauseMs));
        disk.nowMs = atMs;
        const one = await send(due, rested);
        answeredMs = Math.max(answeredMs, answeredAtMs);
        if (one !== null) onPlayed(one);
      }
      await rest(engine.memory);
      await engine.memory.maintenance.dream({ dryRun: false });
    },
    restore(sessionId: string) {
      const { library } = engine.memory;
      return library.restoreSession(sessionId);
    },
    unplayable: () => unplayable,
    plans: (): readonly PlanRecord[] => planRecords,
    /** Conversations in which the ledger ended trimming. */
    ended: () => engine.ledger.disabledConversations().length,
  };
}

export function isPrompt({ request }: Pick<Due, 'request'>): boolean {
  return request.messages.at(-1)?.content.every(({ type }) => type !== 'tool_result') === true;
}

function inOrder(conversations: readonly PastConversation[]): Due[] {
  const all = conversations.flatMap((conversation) =>
    conversation.requests.map((request) => ({ conversation, request })),
  );
  return all.sort((a, b) => a.request.atMs - b.request.atMs);
}

function timerFrom(startMs: number): PhaseTimer {
  const phases: Phase[] = [];
  let lastMs = startMs;
  return {
    phases,
    end(name) {
      const nowMs = performance.now();
      phases.push({ name, ms: nowMs - lastMs });
      lastMs = nowMs;
    },
  };
}

async function settle({ maintenance }: Memory): Promise<void> {
  await new Promise(setImmediate);
  while (Object.values(maintenance.status().queue).some((waiting) => waiting > 0)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function rest({ maintenance }: Memory): Promise<void> {
  if (!(await maintenance.flush(600_000))) throw new Error('memory did not come to rest');
}

interface Sending {
  readonly model: string;
  readonly ttl: '5m' | '1h';
  readonly index: number;
  readonly headTokens: number;
}

/** A request as `claude` sends it; a tool of their size stands for tool definitions and system prompt. */
export function buildRequest(
  conversation: PastConversation,
  request: PastRequest,
  { model, ttl, index, headTokens }: Sending,
) {
  const { sessionId, agentId, projectDir } = conversation;
  const plan = { model, sessionId, cwd: projectDir, ttl: agentId === '' ? ttl : '5m', turns: [] } as const;
  const client = makeRequest(plan, [...request.messages] as object[] as Json[], {
    index,
    turn: index,
    round: 0,
    answer: [],
  });
  const tools = [paddingTool(4 * headTokens), ...(client.body['tools'] as readonly object[])];
  const agent: Record<string, string> = agentId === '' ? {} : { 'x-claude-code-agent-id': agentId };
  return {
    requestId: `r${index}`,
    path: 'messages',
    headers: { ...client.headers, ...agent },
    body: Buffer.from(JSON.stringify({ ...client.body, tools })),
    receivedAtMs: request.atMs,
  } satisfies MessagesRequest;
}

/** The first tool, so that the cache holds it. */
function paddingTool(bytes: number) {
  const description = 'Does what its name says, with the limits that are named here. '.repeat(Math.ceil(bytes / 62));
  const input_schema = { type: 'object', properties: {}, additionalProperties: false };
  return { name: 'Tools', description: description.slice(0, bytes), input_schema };
}

/** Transcripts may have none; each answer gets as much. */
export const THINKING = { type: 'thinking', thinking: 'The next step follows from what was found.' } as const;
export const SUMMARY = [{ type: 'text', text: 'A summary of the conversation.' }];

function getResponse({ answer, model }: PastRequest, billed: Omit<Usage, 'output'>, refusal: string | null) {
  if (refusal !== null)
    return { status: 400, end: 'complete', message: null, errorText: refusal, headers: {} } as const;
  const content = [...(answer?.content ?? SUMMARY)];
  const stopReason = content.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn';
  const message = { model, content, stopReason, usage: { ...billed, output: 0 } };
  return { status: 200, end: 'complete', message, errorText: '', headers: {} } as const;
}
