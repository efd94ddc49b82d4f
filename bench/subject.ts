/**
 * Whether a long conversation can be asked about when little of it is sent.
 *
 *   npm run bench:comet [-- --seed N] [--judge claude] [--json]
 *
 * Two made-up conversations: ten subjects, and twenty whose figures lie next to each other. Each goes through the
 * product's own journal, nodes, index and recall; then each thing that was settled is asked for in other words. Counted
 * are the questions whose answer stands in the text that would be injected for them, and its tokens. Beside it the whole
 * conversation, and three plain summaries as long as an injection may be: a running one that keeps the newest turns and
 * the beginnings of older ones, its end, and the beginnings of all turns. With `--judge claude` a model reads each text
 * too and says whether it answers (a call for ten questions, on your login). `first` is the share of questions for which the first line with a figure of that kind has the right one.
 */

import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import { countTokens } from '../common/text.ts';
import { isCleanOrigin } from '../common/turn.ts';
import { createLocalModel } from '../memory/compaction/rules-model.ts';
import { createStaticEmbedder } from '../memory/embeddings/static-embedder.ts';
import type { Memory } from '../memory/index.ts';
import { renderRetrieval } from '../proxy/rewrite/render.ts';
import { spread } from './latency/stats.ts';
import { openProduct } from './recall/product.ts';
import {
  type CometConversation,
  cometConversation,
  holds,
  type Level,
  PROJECT_DIR,
  type Question,
} from './subject/conversation.ts';
import { openJudge } from './subject/judge.ts';

const FLUSH_MS = 300_000;
const CHARS_PER_TOKEN = 4;
/** What a turn leaves in a running summary. */
const BEGINNING_CHARS = 120;

interface Row {
  readonly name: string;
  readonly answered: number;
  /** A model's verdict; null where none was asked. */
  readonly judged: number | null;
  readonly tokens: number;
}

interface Outcome {
  readonly level: Level;
  readonly turns: number;
  readonly questions: number;
  readonly budget_tokens: number;
  readonly rows: readonly Row[];
  readonly first: number;
  readonly missed: readonly string[];
  readonly latency_ms: { readonly p50: number; readonly p95: number };
}

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    judge: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
if (values.judge !== undefined && values.judge !== 'claude') throw new Error('the only judge is claude');
const judge = values.judge === undefined ? null : openJudge(process.env);
const budgetTokens = Config.parse({}).inject.retrievalTokens;
const runs: Outcome[] = [];
for (const level of ['standard', 'hard'] as const) runs.push(await measure(level, Number(values.seed)));
await judge?.close();
if (values.json) process.stdout.write(`${JSON.stringify({ seed: Number(values.seed), runs }, null, 2)}\n`);
else for (const run of runs) print(run);

async function measure(level: Level, seed: number): Promise<Outcome> {
  const conversation = cometConversation(level, seed);
  const { turns, questions } = conversation;
  const product = await openProduct({ local: createLocalModel({ embedder: createStaticEmbedder() }) });
  try {
    product.memory.capture.captureTurns(turns);
    if (!(await product.memory.maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
    const asked = [];
    for (const question of questions) asked.push({ question, ...(await ask(product.memory, question)) });
    const answered = asked.filter(({ question, text }) => holds(text, question.answer));
    const { p50, p95 } = spread(asked.map(({ ms }) => ms));
    const texts = asked.map(({ text }) => text);
    const forms = Object.entries(plain(conversation, budgetTokens));
    const rows = [await getRow('recalled', questions, texts)];
    for (const [name, text] of forms) rows.push(await getRow(name, questions, [text]));
    return {
      level,
      turns: turns.length,
      questions: questions.length,
      budget_tokens: budgetTokens,
      rows,
      first: share(asked.filter(isFirst).length, questions.length),
      missed: asked.filter((each) => !answered.includes(each)).map(({ question }) => question.text),
      latency_ms: { p50: rounded(p50, 1), p95: rounded(p95, 1) },
    };
  } finally {
    await product.close();
  }
}

/** @param texts  one for each question, or one for all */
async function getRow(name: string, questions: readonly Question[], texts: readonly string[]): Promise<Row> {
  const all = questions.map((question, at) => ({ question, text: texts[at] ?? texts[0] ?? '' }));
  const answered = all.filter(({ question, text }) => holds(text, question.answer));
  const verdicts = await judge?.judge(all);
  return {
    name,
    answered: share(answered.length, questions.length),
    judged: verdicts === undefined ? null : share(verdicts.filter(Boolean).length, questions.length),
    tokens: Math.round(texts.reduce((sum, text) => sum + countTokens(text), 0) / texts.length),
  };
}

/** What the proxy would put beside the prompt. */
async function ask(
  memory: Memory,
  { text: prompt }: Question,
): Promise<{ readonly text: string; readonly ms: number }> {
  const place = { sessionId: 'tomorrow', projectDir: PROJECT_DIR, recent: [] };
  const request = { ...place, prompt, visibleTurns: new Set<string>(), shown: new Set<string>() };
  const start = performance.now();
  const hits = await memory.recall.recall(request, new AbortController().signal);
  const ms = performance.now() - start;
  const lines = hits.map(({ line }) => ({ ...line, clean: isCleanOrigin(line.origin) }));
  const channel = { mode: 'auto', takesSystemMessages: true, fence: '0', anchor: '' } as const;
  const injected = renderRetrieval(lines, { ...channel, budgetTokens });
  return { text: injected.map(({ text }) => text).join('\n'), ms };
}

function isFirst({ question, text }: { readonly question: Question; readonly text: string }): boolean {
  const all = [question.answer, ...question.near];
  const line = text.split('\n').find((each) => all.some((figure) => holds(each, figure)));
  return line !== undefined && holds(line, question.answer);
}

function plain({ texts }: CometConversation, tokens: number): Readonly<Record<string, string>> {
  const whole = texts.join('\n');
  const chars = tokens * CHARS_PER_TOKEN;
  const each = Math.floor(chars / texts.length) - 1;
  return {
    'running summary': runningSummary(texts, tokens),
    'full context': whole,
    'its end': whole.slice(-chars),
    'beginnings of turns': texts.map((text) => text.slice(0, each)).join('\n'),
  };
}

/**
 * A summary as it is kept without any model: after each turn the newest turns stay whole in half of the tokens, what
 * falls out of them leaves its beginning, and of those beginnings the oldest go.
 */
function runningSummary(texts: readonly string[], tokens: number): string {
  let older: string[] = [];
  let newest: string[] = [];
  const isOver = (lines: readonly string[]): boolean => lines.length > 0 && countTokens(lines.join('\n')) > tokens / 2;
  for (const text of texts) {
    newest = [...newest, text];
    while (isOver(newest)) older = [...older, (newest.shift() ?? '').slice(0, BEGINNING_CHARS)];
    while (isOver(older)) older = older.slice(1);
  }
  return [...older, ...newest].join('\n');
}

function share(part: number, of: number): number {
  return rounded(part / Math.max(1, of), 4);
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function print({ level, turns, questions, budget_tokens, rows, first, latency_ms }: Outcome): void {
  process.stdout.write(
    `${level}: ${questions} questions about ${turns} turns, at most ${budget_tokens} tokens for each\n`,
  );
  for (const { name, answered, judged, tokens } of rows) {
    const percent = `${(answered * 100).toFixed(1)} %`.padStart(7);
    const verdict = judged === null ? '' : `, judged ${(judged * 100).toFixed(1)} %`;
    process.stdout.write(`  ${name.padEnd(20)} answer in the text ${percent}${verdict}, ${tokens} tokens\n`);
  }
  process.stdout.write(
    `  recalled: the first figure of its kind is the right one ${(first * 100).toFixed(1)} %; ` +
      `one recall ${latency_ms.p50} ms, 95 % below ${latency_ms.p95} ms\n`,
  );
}
