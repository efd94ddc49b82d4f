import type { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { cutRule } from '../../engine/cut-config.ts';
import type { LanguageModel } from '../../memory/models/model.ts';
import { openCostLedger } from '../../proxy/ledger/index.ts';
import type { Usage } from '../../proxy/ports.ts';
import { createInMemorySearchIndex } from '../../test/helpers/in-memory-search-index.ts';
import { createMemoryRecords } from '../../test/helpers/memory-records.ts';
import { createDisk, openRig } from '../../test/helpers/memory-rig.ts';
import { createMemoryPlanStore, openRewriter } from '../../test/helpers/open-rewriter.ts';
import type { createStaticEmbedder } from '../../test/helpers/static-embedder.ts';
import { makeRequest, replyFrom } from '../../test/helpers/transcripts.ts';
import { createJudge, type Verdict } from '../../test/mock-anthropic/index.ts';
import { type Message, PROJECT_DIR, type RealTurn } from './corpus.ts';
import { sendable } from './replay.ts';

export interface PlayOptions {
  readonly config: Config;
  /** Of the requests, and how long their prompt cache lives. */
  readonly model: string;
  readonly ttl: '5m' | '1h';
  readonly embedder: ReturnType<typeof createStaticEmbedder>;
  /** Writes the memories. */
  readonly memoryModel: LanguageModel;
  /** Rules where the model fails. */
  readonly local: LanguageModel;
  /** Bytes of tool definitions in each request beside its own. */
  readonly toolBytes?: number;
}

/** One request, untouched and through the product, as the mock API bills both. */
export interface Played {
  readonly direct: Accepted;
  /** The untouched request's where the API refuses what the product sent. */
  readonly sent: Accepted;
  readonly isRefused: boolean;
}

type Accepted = Extract<Verdict, { refusal: null }>;

/** The product's rewriter, ledger and memory on the clock of the sessions that are played through them. */
export async function openPlayer(options: PlayOptions) {
  const { config, model, ttl, embedder } = options;
  const disk = createDisk();
  disk.index = { ...createInMemorySearchIndex(embedder), close: async () => {} };
  const clock = { now: () => disk.nowMs };
  const memory = await openRig(disk, { model: options.memoryModel, local: options.local });
  const ledger = await openCostLedger({ store: createMemoryRecords(), rule: config.ledger, clock, log: silentLog });
  let drawn = 0;
  const rewriter = await openRewriter({
    memory: { ...memory.capture, ...memory.recall },
    plans: createMemoryPlanStore(),
    config: { ...config.inject, memoryDeadlineMs: 60_000, cut: cutRule(config.trim) },
    ledger,
    clock,
    randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
  });
  const { maintenance } = memory;
  const padding = options.toolBytes === undefined ? [] : [toolOf(options.toolBytes)];

  async function settle(): Promise<void> {
    await new Promise(setImmediate);
    while (Object.values(maintenance.status().queue).some((waiting) => waiting > 0)) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  async function rest(): Promise<void> {
    if (!(await maintenance.flush(600_000))) throw new Error('memory did not come to rest');
  }

  return {
    /** Requests that the API refuses untouched are left out. Memory is consolidated at the end of the session. */
    async play(turns: readonly RealTurn[], onPlayed: (played: Played) => void): Promise<void> {
      const [judge, directJudge] = [createJudge({ enforceThinking: false }), createJudge({ enforceThinking: false })];
      const sessionId = turns[0]?.sessionId ?? '';
      for (const { history, answer, atMs, index } of requestsOf(turns)) {
        if (atMs - disk.nowMs > config.compaction.idleMs) await rest();
        disk.nowMs = atMs;
        const plan = { model, sessionId, cwd: PROJECT_DIR, ttl, turns: [] } as const;
        const request = makeRequest(plan, sendable(history), { index, turn: index, round: 0, answer: [] });
        const { headers } = request;
        const tools = [...padding, ...(request.body['tools'] as readonly object[])];
        const body = Buffer.from(JSON.stringify({ ...request.body, tools }));
        const direct = directJudge.judge({ body, headers, atMs });
        if (direct.refusal !== null) continue;
        const message = { requestId: `r${index}`, path: 'messages', headers, body, receivedAtMs: atMs } as const;
        const outcome = await rewriter.rewrite(message, new AbortController().signal);
        const judged = judge.judge({ body: outcome.body, headers, atMs });
        const sent = judged.refusal === null ? judged : direct;
        onPlayed({ direct, sent, isRefused: judged.refusal !== null });
        outcome.onResponse(responseOf(model, answer, sent.usage, replyFrom(sent, request).refusal !== null));
        await settle();
      }
      await rest();
      await maintenance.dream({ dryRun: false });
    },
    /** Conversations in which the ledger ended trimming. */
    ended: () => ledger.disabledConversations().length,
  };
}

/** Stands for the definitions of the client's other tools; the first, so that the cache holds it. */
function toolOf(bytes: number) {
  const description = 'Does what its name says, with the limits that are named here. '.repeat(Math.ceil(bytes / 62));
  const input_schema = { type: 'object', properties: {}, additionalProperties: false };
  return { name: 'Tools', description: description.slice(0, bytes), input_schema };
}

/** Every request of a session, at the time of the message that ends it. */
function* requestsOf(turns: readonly RealTurn[]) {
  const messages = turns.flatMap((turn) => turn.messages);
  let index = 0;
  let atMs = 0;
  for (const [at, answer] of messages.entries()) {
    const newest = messages[at - 1];
    if (answer.role !== 'assistant' || newest?.role !== 'user') continue;
    atMs = Math.max(atMs, newest.atMs);
    yield { history: messages.slice(0, at), answer, index, atMs };
    index += 1;
  }
}

function responseOf(model: string, { content }: Message, billed: Omit<Usage, 'output'>, isRefused: boolean) {
  const stopReason = content.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn';
  const message = { id: 'm', model, content: [...content], stopReason, usage: { ...billed, output: 0 } };
  if (isRefused) return { status: 400, end: 'complete', message: null, errorText: '', headers: {} } as const;
  return { status: 200, end: 'complete', message, errorText: '', headers: {} } as const;
}
