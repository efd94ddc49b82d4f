/**
 * Whether a long conversation can be asked about when little of it is sent.
 *
 *   npm run bench:comet [-- --seed N] [--json]
 *
 * Two made-up conversations: ten subjects, and twenty whose figures lie next to each other. Each goes through the
 * product's own journal, nodes, index and recall; then each thing that was settled is asked for in other words. Counted
 * are the questions whose answer stands in the text that would be injected for them, and its characters. Beside it the
 * whole conversation, and two plain summaries as long as an injection may be: its end, and the beginnings of all turns.
 * `first` is the share of questions for which the first line with a figure of that kind has the right one.
 */
import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import { isCleanOrigin } from '../common/turn.ts';
import { createLocalModel } from '../memory/compaction/rules-model.ts';
import type { Memory } from '../memory/index.ts';
import { renderRetrieval } from '../proxy/rewrite/render.ts';
import { createStaticEmbedder } from '../test/helpers/static-embedder.ts';
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

const FLUSH_MS = 300_000;
const CHARS_PER_TOKEN = 4;

interface Row {
  readonly name: string;
  readonly answered: number;
  readonly chars: number;
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
  options: { seed: { type: 'string', default: '1' }, json: { type: 'boolean', default: false } },
});
const budgetTokens = Config.parse({}).inject.retrievalTokens;
const runs: Outcome[] = [];
for (const level of ['standard', 'hard'] as const) runs.push(await measure(level, Number(values.seed)));
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
    const recalled = {
      name: 'recalled',
      answered: share(answered.length, questions.length),
      chars: Math.round(asked.reduce((sum, { text }) => sum + text.length, 0) / questions.length),
    };
    return {
      level,
      turns: turns.length,
      questions: questions.length,
      budget_tokens: budgetTokens,
      rows: [recalled, ...plain(conversation, budgetTokens * CHARS_PER_TOKEN)],
      first: share(asked.filter(isFirst).length, questions.length),
      missed: asked.filter((each) => !answered.includes(each)).map(({ question }) => question.text),
      latency_ms: { p50: rounded(p50, 1), p95: rounded(p95, 1) },
    };
  } finally {
    await product.close();
  }
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

function plain({ texts, questions }: CometConversation, chars: number): Row[] {
  const whole = texts.join('\n');
  const each = Math.floor(chars / texts.length) - 1;
  const forms = {
    'full context': whole,
    'its end': whole.slice(-chars),
    'beginnings of turns': texts.map((text) => text.slice(0, each)).join('\n'),
  };
  return Object.entries(forms).map(([name, text]) => {
    const answered = questions.filter(({ answer }) => holds(text, answer));
    return { name, answered: share(answered.length, questions.length), chars: text.length };
  });
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
  for (const { name, answered, chars } of rows) {
    const percent = `${(answered * 100).toFixed(1)} %`.padStart(7);
    process.stdout.write(`  ${name.padEnd(20)} answer in the text ${percent}, ${chars} characters\n`);
  }
  process.stdout.write(
    `  recalled: the first figure of its kind is the right one ${(first * 100).toFixed(1)} %; ` +
      `one recall ${latency_ms.p50} ms, 95 % below ${latency_ms.p95} ms\n`,
  );
}
