/**
 * What a long coding session costs sent direct, through comet-cc, and through a plain "summarise and drop" rewriter,
 * all against the same rules and the same prompt-cache bill, in one run.
 *
 *   npm run bench:cost -- [--turns 20,100,300] [--rounds 300] [--mode auto] [--model claude-opus-5-5]
 *                         [--ttl 5m|1h] [--thinking on|off] [--ledger on|off] [--json]
 *
 * The `system-field` row writes the top-level system prompt anew for each prompt, which is what other rewriters do.
 * Cost is in tokens of uncached input. `answers_present` is the share of late questions whose answer stood in the
 * body sent; `refused` counts answers of status 400. With `--ledger off` trimming goes on where it loses.
 */

import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import { silentLog } from '../common/log.ts';
import { cutRule } from '../engine/cut-config.ts';
import { openCostLedger } from '../proxy/ledger/index.ts';
import type { Usage } from '../proxy/ports.ts';
import { createMemoryRecords } from '../test/helpers/memory-records.ts';
import { createDisk, openRig } from '../test/helpers/memory-rig.ts';
import { createMemoryPlanStore, openRewriter } from '../test/helpers/open-rewriter.ts';
import { type ClientRequest, growConversation, type Reply, replyFrom } from '../test/helpers/transcripts.ts';
import { createJudge, type Judge } from '../test/mock-anthropic/index.ts';
import { summariseAndDrop } from './cost-naive.ts';
import { type CostStory, codingSession, getVariant, onePrompt, type Variant } from './cost-story.ts';

interface Run {
  readonly name: string;
  readonly turns: number;
  readonly requests: number;
  readonly refused: number;
  readonly cost: number;
  readonly ratio_to_direct: number;
  /** Prompt tokens of the last request. */
  readonly final_context: number;
  readonly answers_present: number;
  /** Why the ledger ended trimming; null where it did not. */
  readonly trimming_off: string | null;
}

/** Gives the body that goes upstream, and is told what came back. */
interface Sender {
  send(request: ClientRequest, atMs: number): Promise<Buffer>;
  seen(request: ClientRequest, reply: Reply, usage: Billed): Promise<void>;
  /** Why nothing new is trimmed any more; null while it is. */
  off?(): string | null;
}

type Billed = Omit<Usage, 'output'>;

const BREAK_MS = 3 * 3_600_000;
const NEVER_ENDS = { tolerance: 0, credit: Number.POSITIVE_INFINITY, longestHorizon: 60 };

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '20,100,300' },
    rounds: { type: 'string', default: '300' },
    mode: { type: 'string', default: 'auto' },
    model: { type: 'string', default: 'claude-opus-5-5' },
    ttl: { type: 'string', default: '1h' },
    thinking: { type: 'string', default: 'on' },
    ledger: { type: 'string', default: 'on' },
    json: { type: 'boolean', default: false },
  },
});

const variant: Variant = { ttl: pickOne(values.ttl, ['1h', '5m']), thinking: pickOne(values.thinking, ['on', 'off']) };
const runs: Run[] = [];
for (const turns of values.turns.split(',').filter(Boolean).map(Number))
  await compare(codingSession(turns, values.model), `${turns} turns`);
if (values.rounds !== '0')
  await compare(onePrompt(Number(values.rounds), values.model), `1 prompt, ${values.rounds} rounds`);
if (values.json) process.stdout.write(`${JSON.stringify({ runs }, null, 2)}\n`);

function pickOne<T extends string>(value: string, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found === undefined) throw new Error(`expected one of ${known.join(', ')}, not ${value}`);
  return found;
}

async function compare(plain: CostStory, title: string): Promise<void> {
  const story = getVariant(plain, variant);
  const direct = await measure('direct', story, direct_(), null);
  const ours = await measure('comet-cc', story, await rewritten('auto'), direct.cost);
  const field = await measure('comet-cc, system-field', story, await rewritten('system-field'), direct.cost);
  const naive = await measure('summarise and drop', story, summariseAndDrop(), direct.cost);
  const rows = [direct, ours, field, naive];
  runs.push(...rows);
  if (!values.json) print(title, rows);
}

async function measure(name: string, story: CostStory, sender: Sender, directCost: number | null): Promise<Run> {
  const judge = createJudge({ enforceThinking: true });
  const lenient = createJudge({ enforceThinking: false });
  const sum = { requests: 0, refused: 0, cost: 0, context: 0, present: 0 };
  await growConversation(story.plan, async (request) => {
    const atMs = request.atMs + [...story.breaks].filter((turn) => turn <= request.turn).length * BREAK_MS;
    const body = await sender.send(request, atMs);
    sum.requests += 1;
    const question = story.questions.find(({ turn }) => turn === request.turn);
    if (question !== undefined && body.includes(question.right)) sum.present += 1;
    let verdict = judged(judge, body, request, atMs);
    if (verdict.refusal !== null) {
      // The client would strip its thinking and ask again; the bill is that of a request without the check.
      sum.refused += 1;
      verdict = judged(lenient, verdict.refusal.message.includes('thinking') ? body : request.bytes, request, atMs);
    }
    if (verdict.refusal === null) {
      sum.cost += verdict.cost;
      const { input, cacheRead, cacheWrite5m, cacheWrite1h } = verdict.usage;
      sum.context = input + cacheRead + cacheWrite5m + cacheWrite1h;
    }
    const reply = replyFrom(verdict, request);
    if (verdict.refusal === null) await sender.seen(request, reply, verdict.usage);
    return reply;
  });
  const share = story.questions.length === 0 ? 1 : sum.present / story.questions.length;
  return {
    name,
    turns: story.plan.turns.length,
    requests: sum.requests,
    refused: sum.refused,
    cost: Math.round(sum.cost),
    ratio_to_direct: Number((sum.cost / (directCost ?? sum.cost)).toFixed(3)),
    final_context: sum.context,
    answers_present: Number(share.toFixed(3)),
    trimming_off: sender.off?.() ?? null,
  };
}

function judged(judge: Judge, body: Buffer, request: ClientRequest, atMs: number) {
  return judge.judge({ body, headers: request.headers, atMs });
}

function direct_(): Sender {
  return { send: async (request) => request.bytes, seen: async () => {} };
}

/** The product's rewriter and memory with the local adapter, on a virtual clock. */
async function rewritten(retrieval: Config['inject']['retrieval']): Promise<Sender> {
  const config = Config.parse({ llm: 'local', trim: { mode: values.mode }, inject: { retrieval } });
  const disk = createDisk();
  const memory = await openRig(disk, { llm: 'local', model: null });
  let drawn = 0;
  let outcome: Awaited<ReturnType<typeof rewriter.rewrite>>;
  const clock = { now: () => disk.nowMs };
  const ledger = await openCostLedger({
    store: createMemoryRecords(),
    rule: values.ledger === 'off' ? NEVER_ENDS : config.ledger,
    clock,
    log: silentLog,
  });
  const rewriter = await openRewriter({
    memory: { ...memory.capture, ...memory.recall },
    plans: createMemoryPlanStore(),
    config: { ...config.inject, memoryDeadlineMs: 10_000, cut: cutRule(config.trim) },
    ledger,
    clock,
    randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
    log: silentLog,
  });
  return {
    async send(request, atMs) {
      disk.nowMs = atMs;
      const { headers, bytes: body } = request;
      const message = {
        requestId: String(request.index),
        path: 'messages',
        headers,
        body,
        receivedAtMs: atMs,
      } as const;
      outcome = await rewriter.rewrite(message, new AbortController().signal);
      return outcome.body;
    },
    off: () => ledger.disabledConversations()[0]?.off?.because ?? null,
    async seen(request, reply, billed) {
      if (reply.refusal !== null) return;
      const stopReason = reply.content.some((block) => block['type'] === 'tool_use') ? 'tool_use' : 'end_turn';
      const usage = { ...billed, output: 0 };
      const message = { model: String(request.body['model']), content: reply.content, stopReason, usage };
      outcome.onResponse({ status: 200, end: 'complete', message, errorText: '' });
      await new Promise(setImmediate);
      await settled(memory.maintenance);
    },
  };
}

/** A tool runs for seconds, a person thinks for minutes; memory is done by then. */
async function settled(memory: { status(): { queue: Record<string, number> } }): Promise<void> {
  await new Promise(setImmediate);
  while (Object.values(memory.status().queue).some((waiting) => waiting > 0)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function print(title: string, rows: readonly Run[]): void {
  const line = (cells: readonly string[]): string =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(22) : cell.padStart(11))).join(' ');
  const head = line([title, 'requests', 'refused', 'cost', 'of direct', 'context', 'answers']);
  const body = rows.map((run) =>
    line([
      run.name,
      String(run.requests),
      String(run.refused),
      run.cost.toLocaleString('en'),
      run.ratio_to_direct.toFixed(2),
      run.final_context.toLocaleString('en'),
      `${Math.round(run.answers_present * 100)} %`,
    ]),
  );
  const ended = rows.flatMap(({ name, trimming_off: why }) =>
    why === null ? [] : [`${name}: trimming ended, ${why}`],
  );
  process.stdout.write(`${[head, ...body, ...ended].join('\n')}\n\n`);
}
