/**
 * What the calls of memory's own models cost a session, beside what trimming saves in it: real sessions are replayed,
 * request by request, through the product's rewriter and memory. The model is scripted: it answers with what the rules
 * write, and counts the tokens of the prompt that `claude -p` would get and of the answer. A model's thinking and its
 * failures are not counted. The corpus is not part of the project.
 *
 *   npm run bench:memory-cost -- [--data DIR] [--every N] [--mode auto] [--model claude-opus-5-5] [--ttl 1h]
 *     [--share .02] [--json]
 *
 * DIR holds `real/cli`; `../shared/data` beside the checkout unless told, and where it is missing nothing is measured.
 * Every Nth session is replayed (1: all), the oldest first, in one memory. `--share` is `models.costShare`; 1000 lets
 * every call pass. The baseline, the same requests untouched, is
 * billed in the same run by the rules of the mock API. Money is at API prices, as the ledger counts it.
 */

import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import type { PastSession } from '../engine/transcript/cost.ts';
import { createLocalModel } from '../memory/compaction/rules-model.ts';
import { createStaticEmbedder } from '../memory/embeddings/static-embedder.ts';
import { DEFAULT_ONTOLOGY } from '../memory/facts/default-ontology.ts';
import type { LanguageModel } from '../memory/models/model.ts';
import { mergePrompt } from '../memory/models/prompts/merge.ts';
import type { Prompt } from '../memory/models/prompts/prompt.ts';
import { summarizerPrompt } from '../memory/models/prompts/summary.ts';
import { topicDetectorPrompt } from '../memory/models/prompts/topic-detector.ts';
import { decideQuota, type ModelQuota, type QuotaDecision } from '../memory/models/quota.ts';
import { costUsd, sumBill } from '../proxy/ledger/cost.ts';
import type { CostLedger } from '../proxy/ledger/index.ts';
import { estimateTokens } from '../test/mock-anthropic/tokens.ts';
import { DATA } from './paths.ts';
import { openPlayer } from './real/play.ts';
import { withSessions } from './real/sessions.ts';

/** What Claude Code 2.1.332 adds to each prompt: its name, the environment, the tool for the answer; test/claude-code/model.test.ts. */
const CLIENT_TOKENS = 310;
/** The models that the names of the configuration stood for in Claude Code 2.1.197. */
const FULL_NAMES: Readonly<Record<string, string>> = { haiku: 'claude-haiku-4-5', sonnet: 'claude-sonnet-5' };
const FENCE = '0'.repeat(16);
const NO_BILL = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: DATA },
    every: { type: 'string', default: '1' },
    mode: { type: 'string', default: 'auto' },
    model: { type: 'string', default: 'claude-opus-5-5' },
    ttl: { type: 'string', default: '1h' },
    share: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const config = Config.parse({
  trim: { mode: values.mode },
  ...(values.share === undefined ? {} : { models: { costShare: Number(values.share) } }),
});
const { models } = config;
const ttl = values.ttl === '5m' ? '5m' : '1h';
await withSessions({ data: values.data }, run);

interface Call {
  readonly what: 'topic shift' | 'summary' | 'merge';
  /** As configured. */
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly usd: number;
}

interface SessionCost {
  readonly session_id: string;
  readonly requests: number;
  /** Of the rewriter's requests; those that the mock API refuses untouched are left out. */
  readonly refused: number;
  readonly calls: readonly Call[];
  /** Prompt tokens, untouched and as sent. */
  readonly direct: number;
  readonly sent: number;
  readonly direct_usd: number;
  readonly saved_usd: number;
}

async function run(past: readonly PastSession[]): Promise<void> {
  const product = await openProduct();
  const sessions: SessionCost[] = [];
  for (const session of past.filter((_, at) => at % Number(values.every) === 0)) {
    sessions.push(await product.replay(session));
  }
  const report = getReport(sessions);
  if (values.json) process.stdout.write(`${JSON.stringify({ ...report, sessions }, null, 2)}\n`);
  else print(report);
}

/** The product in front of the mock API, and what memory's own calls cost. */
async function openProduct() {
  const embedder = createStaticEmbedder();
  const calls: Call[] = [];
  const local = createLocalModel({ embedder });
  let ledger: CostLedger | null = null;
  const memoryModel = countingModel(local, (call, sessionId) => {
    calls.push(call);
    const { input, output, usd } = call;
    ledger?.recordOwnCall({ conversation: sessionId ?? '', calls: 1, tokens: input + output, usd });
  });
  const decide = (): QuotaDecision => {
    const recent = ledger?.recentTotals(0) ?? null;
    return decideQuota([], { rule: models, tokensToday: 0, recent, nowMs: 0 });
  };
  const openQuota = (opened: CostLedger): ModelQuota => {
    ledger = opened;
    return { decide };
  };
  const player = await openPlayer({ config, model: values.model, ttl, embedder, memoryModel, local, openQuota });

  return {
    async replay(session: PastSession): Promise<SessionCost> {
      const sum = { requests: 0, refused: 0, direct: 0, sent: 0, direct_usd: 0, saved_usd: 0 };
      calls.length = 0;
      await player.play(session, ({ request, direct, sent, refusal }) => {
        sum.requests += 1;
        sum.refused += refusal === null ? 0 : 1;
        sum.direct += sumBill(direct.usage);
        sum.sent += sumBill(sent.usage);
        const output = estimateTokens(JSON.stringify(request.answer?.content ?? ''));
        const directUsd = costUsd(values.model, direct.usage, output);
        sum.direct_usd += directUsd;
        sum.saved_usd += directUsd - costUsd(values.model, sent.usage, output);
      });
      return { session_id: session[0]?.sessionId ?? '', ...sum, calls: [...calls] };
    },
  };
}

/** Answers as the rules do. */
function countingModel(
  local: LanguageModel,
  onCall: (call: Call, sessionId: string | undefined) => void,
): LanguageModel {
  function count<T>(what: Call['what'], model: string, prompt: Prompt<T>, answer: T, sessionId?: string): T {
    const { system, user, schema } = prompt;
    const input =
      CLIENT_TOKENS + estimateTokens(system) + estimateTokens(user) + estimateTokens(JSON.stringify(schema));
    // A model names turns by labels.
    const output = estimateTokens(JSON.stringify(answer).replace(/"[0-9a-f]{64}"/g, '"t1"'));
    const name = FULL_NAMES[model] ?? model;
    onCall({ what, model, input, output, usd: costUsd(name, { ...NO_BILL, input }, output) }, sessionId);
    return answer;
  }

  return {
    ...local,
    name: 'claude',
    async detectTopicShift(input, signal) {
      const answer = await local.detectTopicShift(input, signal);
      return count('topic shift', models.sensor, topicDetectorPrompt(input, FENCE), answer, input.sessionId);
    },
    async summarize(input, signal) {
      const answer = await local.summarize(input, signal);
      const prompt = summarizerPrompt({ ...input, ontology: DEFAULT_ONTOLOGY }, FENCE);
      return count('summary', models.summarizer, prompt, answer, input.sessionId);
    },
    async merge(input) {
      const [first] = input.notes;
      const answer = { fits: true, summary: first?.summary ?? '', trigger: first?.trigger ?? '' };
      return count('merge', models.summarizer, mergePrompt(input, FENCE), answer);
    },
  };
}

function getReport(sessions: readonly SessionCost[]) {
  const spent = sessions.map(({ calls }) => calls.reduce((sum, { input, output }) => sum + input + output, 0));
  const all = sessions.flatMap(({ calls }) => calls);
  const kinds = [...new Set(all.map(({ what, model }) => `${what} (${model})`))].map((name) => {
    const own = all.filter(({ what, model }) => `${what} (${model})` === name);
    const mean = (value: (call: Call) => number): number =>
      own.reduce((sum, call) => sum + value(call), 0) / sessions.length;
    return {
      name,
      calls: mean(() => 1),
      input: mean((c) => c.input),
      output: mean((c) => c.output),
      usd: mean((c) => c.usd),
    };
  });
  const getUsd = ({ calls }: SessionCost): number => calls.reduce((sum, { usd }) => sum + usd, 0);
  const ratios = sessions.map((each) => 1 + (getUsd(each) - each.saved_usd) / each.direct_usd);
  const total = (value: (each: SessionCost) => number): number => sessions.reduce((sum, each) => sum + value(each), 0);
  return {
    replayed: sessions.length,
    requests: sessions.reduce((sum, { requests }) => sum + requests, 0),
    refused: sessions.reduce((sum, { refused }) => sum + refused, 0),
    /** Means of a session. */
    kinds,
    calls: getDistribution(sessions.map(({ calls }) => calls.length)),
    tokens: getDistribution(spent),
    usd: getDistribution(sessions.map(getUsd)),
    direct_usd: getDistribution(sessions.map(({ direct_usd }) => direct_usd)),
    saved_tokens: getDistribution(sessions.map(({ direct, sent }) => direct - sent)),
    saved_usd: getDistribution(sessions.map(({ saved_usd }) => saved_usd)),
    prompt_tokens: getDistribution(sessions.map(({ direct }) => direct)),
    /** Price of the requests as sent and memory's calls, of the untouched requests; `all`: the sums of all sessions. */
    ratio: {
      all: 1 + (total(getUsd) - total(({ saved_usd }) => saved_usd)) / total(({ direct_usd }) => direct_usd),
      ...getDistribution(ratios),
      worst: Math.max(...ratios),
      over: ratios.filter((ratio) => ratio > 1.02).length,
    },
    over_budget: spent.filter((tokens) => tokens > models.sessionTokens).length,
  };
}

function getDistribution(numbers: readonly number[]) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { mean: numbers.reduce((sum, each) => sum + each, 0) / numbers.length, median: at(0.5), p90: at(0.9) };
}

function print(report: ReturnType<typeof getReport>): void {
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(34), ...cells.map((cell) => cell.padStart(12))].join('');
  const whole = (value: number): string => Math.round(value).toLocaleString('en');
  const small = (value: number): string => value.toFixed(1);
  const money = (value: number): string => `$${value.toFixed(3)}`;
  const spread = (name: string, { mean, median, p90 }: ReturnType<typeof getDistribution>, text = whole): string =>
    row(name, [mean, median, p90].map(text));
  const ratio = (value: number): string => value.toFixed(3);
  const { all, median, p90, worst, over } = report.ratio;
  const lines = [
    `${report.replayed} sessions, ${whole(report.requests)} requests (${report.refused} refused), ${values.model}`,
    '',
    row('calls of a session, mean', ['calls', 'tokens in', 'tokens out', 'price']),
    ...report.kinds.map(({ name, calls, input, output, usd }) =>
      row(name, [small(calls), whole(input), whole(output), money(usd)]),
    ),
    '',
    row('a session', ['mean', 'median', 'p90']),
    spread('calls', report.calls, small),
    spread('tokens of these calls', report.tokens),
    spread('their price', report.usd, money),
    spread('prompt tokens, untouched', report.prompt_tokens),
    spread('prompt tokens that trimming saved', report.saved_tokens),
    spread('price of the requests, untouched', report.direct_usd, money),
    spread('price that trimming saved', report.saved_usd, money),
    '',
    `requests and these calls, price of untouched requests: all ${ratio(all)}, median ${ratio(median)}, 90 % ${ratio(p90)}, worst ${ratio(worst)}; over 1.02: ${over}`,
    `above models.sessionTokens (${whole(models.sessionTokens)}): ${report.over_budget} sessions`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
