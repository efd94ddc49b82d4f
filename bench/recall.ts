/**
 * How well turns are found again: long dialogues through the product's own journal, nodes, index and recall.
 *
 *   npm run bench:recall -- --data FILE [--facts] [--ablate] [--json]
 *
 * FILE is JSON in LoCoMo's shape, see `recall/dialogues.ts`; each dialogue is a project of one store. `--facts` takes
 * its observations for the facts of a model. Recall is that of evidence turns; `through the filter` is the share of
 * questions for which one of the first five sessions of what recall gives a prompt has evidence, and `silent` the share
 * of the next dialogue's questions for which it gives nothing; the ablation leaves out one part at a
 * time, or joins the lanes in another way, and prints what that changes (`--ablate` is for it, as in `bench:real`).
 */
import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import type { CapturedTurn } from '../common/turn.ts';
import { createRecaller, type RecallConfig, type Recaller } from '../memory/recall/recall.ts';
import type { Reranker } from '../memory/recall/reranking.ts';
import type { TurnWeights } from '../memory/search/ranking.ts';
import { FACT_LANES, type Hit, NODE_LANES, type SearchIndex, TURN_LANES } from '../memory/search/search-index.ts';
import { createWordReranker } from '../test/helpers/word-reranker.ts';
import { spread } from './latency/stats.ts';
import { type Dialogue, getTurns, modelWithFacts, projectOf, readDialogues } from './recall/dialogues.ts';
import { openProduct, type Product } from './recall/product.ts';
import { getMean, getScore, type Score } from './recall/score.ts';

const FLUSH_MS = 600_000;
const RANKED = 50;
/** `rerank.candidates` */
const RERANKED = 40;
const TIMED = 200;
const EVERY_LANE = [...TURN_LANES, ...FACT_LANES, ...NODE_LANES];

const defaults = Config.parse({}).recall;
const weights = (over: Partial<TurnWeights>): RecallConfig => ({
  ...defaults,
  weights: { ...defaults.weights, ...over },
});
const alone = (over: Partial<TurnWeights>): RecallConfig => {
  const none = Object.fromEntries(Object.keys(defaults.weights).map((part) => [part, 0])) as unknown as TurnWeights;
  return weights({ ...none, ...over });
};

const ABLATION: readonly (readonly [string, RecallConfig])[] = [
  ['full text alone', alone({ raw: 1 })],
  ['vectors alone', alone({ meaning: 1 })],
  ['full text and vectors', alone({ raw: 1, meaning: defaults.weights.meaning })],
  ['without vectors', weights({ meaning: 0 })],
  ['without neighbors', weights({ before: 0, after: 0 })],
  ['without windows', weights({ window: 0 })],
  ['without dates', weights({ date: 0 })],
  ['without times', weights({ when: 0 })],
  ['without facts', weights({ fact: 0, factMeaning: 0 })],
  ['with names and identifiers', weights({ entity: 0.5 })],
  ['with triggers', weights({ trigger: 0.5 })],
  ['reciprocal ranks', { ...defaults, fusion: 'rrf' }],
  ['as CoMeT', { ...defaults, fusion: 'comet' }],
];

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    facts: { type: 'boolean', default: false },
    ablate: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
if (values.data === undefined) throw new Error('say which file: npm run bench:recall -- --data FILE');
const dialogues = readDialogues(values.data);
const product = await openProduct(values.facts ? { model: modelWithFacts(dialogues) } : {});
try {
  await ingest(product, dialogues);
  const report = await measure(product);
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else print(report);
} finally {
  await product.close();
}

interface Question {
  readonly text: string;
  readonly category: number;
  readonly projectDir: string;
  /** Ids of turns. */
  readonly evidence: readonly string[];
}

async function ingest({ memory, index }: Product, all: readonly Dialogue[]): Promise<void> {
  for (const dialogue of all) {
    memory.capture.captureTurns(getTurns(dialogue).map(({ turn }) => turn));
    if (!(await memory.maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
    process.stderr.write(`${dialogue.id} is in memory\n`);
  }
  // As it is the next day: word statistics of rows that no tidying has seen are not those of the others.
  await index.optimize();
}

async function measure({ memory, index }: Product) {
  const questions = dialogues.flatMap(getQuestions);
  const times: number[] = [];
  for (const { text, projectDir } of questions.slice(0, TIMED)) {
    const start = performance.now();
    await memory.recall.search(text, { top: 10, projectDir });
    times.push(performance.now() - start);
  }
  const asked = remembering(index);
  const ways = [['all', defaults] as const, ...ABLATION].map(([name, config]) => ({
    name,
    recaller: recallerOn(asked, config),
    scores: [] as Score[],
  }));
  for (const question of questions) {
    for (const { recaller, scores } of ways) scores.push(await scored(recaller, question));
  }
  const texts = new Map(dialogues.flatMap(getTurns).map(({ turn }) => [turn.turnId, getText(turn)]));
  const inOrder = recallerOn(asked, defaults);
  const reranker = createWordReranker();
  const reordered: Score[] = [];
  for (const question of questions) reordered.push(await scoredBy(reranker, inOrder, question, texts));
  const filtered = await throughFilter(memory);
  const [whole, ...parts] = ways as [(typeof ways)[number], ...typeof ways];
  const categories = [...new Set(questions.map(({ category }) => category))].sort();
  const byCategory = categories.map((category) => [
    category,
    getMean(whole.scores.filter((_, at) => questions[at]?.category === category)),
  ]);
  const { p50, p95 } = spread(times);
  return {
    questions: questions.length,
    turns: dialogues.reduce((sum, dialogue) => sum + getTurns(dialogue).length, 0),
    facts: values.facts,
    overall: getMean(whole.scores),
    filtered,
    by_category: Object.fromEntries(byCategory) as Record<string, Score>,
    ablation: [
      ...parts.map(({ name, scores }) => ({ name, ...getMean(scores) })),
      { name: 'reranked by shared words', ...getMean(reordered) },
    ],
    latency_ms: { p50: Number(p50.toFixed(1)), p95: Number(p95.toFixed(1)) },
  };
}

function getQuestions(dialogue: Dialogue): Question[] {
  const turnIds = new Map(getTurns(dialogue).map(({ id, turn }) => [id, turn.turnId]));
  return dialogue.qa.flatMap(({ question, category, evidence }) => {
    const known = evidence.flatMap((id) => turnIds.get(id) ?? []);
    return known.length === 0 ? [] : [{ text: question, category, projectDir: projectOf(dialogue), evidence: known }];
  });
}

/** Sessions of what a prompt is given. */
async function throughFilter(memory: Product['memory']) {
  const sessions = new Map(dialogues.flatMap(getTurns).map(({ turn }) => [turn.turnId, turn.sessionId]));
  const given = async (text: string, projectDir: string): Promise<readonly string[]> => {
    const none = { recent: [], visibleTurns: new Set<string>(), shown: new Set<string>() };
    const request = { sessionId: 'asker', projectDir, prompt: text, ...none };
    const hits = await memory.recall.recall(request, new AbortController().signal);
    return [...new Set(hits.map(({ node }) => node.session_id))].slice(0, 5);
  };
  const right = new Map<number, boolean[]>();
  const silent: boolean[] = [];
  for (const [at, dialogue] of dialogues.entries()) {
    for (const { text, category, projectDir, evidence } of getQuestions(dialogue)) {
      const own = new Set(evidence.map((turnId) => sessions.get(turnId)));
      const found = (await given(text, projectDir)).some((session) => own.has(session));
      right.set(category, [...(right.get(category) ?? []), found]);
    }
    const others = getQuestions(dialogues[(at + 1) % dialogues.length] as Dialogue);
    for (const { text } of others) silent.push((await given(text, projectOf(dialogue))).length === 0);
  }
  const share = (all: readonly boolean[]): number => all.filter(Boolean).length / Math.max(1, all.length);
  return {
    all: share([...right.values()].flat()),
    by_category: Object.fromEntries([...right].sort().map(([category, all]) => [category, share(all)])),
    silent: dialogues.length < 2 ? null : share(silent),
  };
}

/** The lanes do not depend on how they are joined: each question is asked once, then joined in every way. */
function remembering(index: SearchIndex): SearchIndex {
  let last = { key: '', hits: null as Promise<readonly Hit[]> | null };
  return {
    ...index,
    search(query, filter, limit) {
      const key = JSON.stringify([query, filter, limit]);
      last = last.key === key ? last : { key, hits: index.search(query, filter, limit, EVERY_LANE) };
      return last.hits as Promise<readonly Hit[]>;
    },
  };
}

function recallerOn(index: SearchIndex, config: RecallConfig): Recaller {
  const projectOfDirectory = (directory: string | null): string => directory ?? '';
  return createRecaller({
    index,
    getNode: () => null,
    turnText: () => null,
    getProject: projectOfDirectory,
    config,
    now: Date.now,
  });
}

async function scored(recaller: Recaller, { text, projectDir, evidence }: Question): Promise<Score> {
  const ranked = await recaller.turns(text, { top: RANKED, projectDir });
  return getScore(ranked, evidence);
}

/** The best turns, ordered again by a reranker: it proves the way, a model would judge better. */
async function scoredBy(
  reranker: Reranker,
  recaller: Recaller,
  { text, projectDir, evidence }: Question,
  texts: ReadonlyMap<string, string>,
): Promise<Score> {
  const ranked = await recaller.turns(text, { top: RANKED, projectDir });
  const first = ranked.slice(0, RERANKED);
  const signal = new AbortController().signal;
  const worth = await reranker.score(
    text,
    first.map((turnId) => texts.get(turnId) ?? ''),
    signal,
  );
  const order = [...first.keys()].sort((one, other) => (worth[other] ?? 0) - (worth[one] ?? 0) || one - other);
  return getScore([...order.map((at) => first[at] as string), ...ranked.slice(RERANKED)], evidence);
}

function getText({ messages }: CapturedTurn): string {
  return messages.map(({ content }) => JSON.parse(content) as string).join('\n');
}

function print(report: Awaited<ReturnType<typeof measure>>): void {
  const line = (name: string, { r5, r10, mrr }: Score): string =>
    `${name.padEnd(28)} R@5 ${r5.toFixed(3)}  R@10 ${r10.toFixed(3)}  MRR ${mrr.toFixed(3)}\n`;
  const { questions, turns, facts, overall, by_category, filtered, ablation, latency_ms } = report;
  process.stdout.write(`${questions} questions over ${turns} turns${facts ? ', with facts' : ''}\n`);
  process.stdout.write(line('all', overall));
  for (const [category, score] of Object.entries(by_category)) {
    process.stdout.write(line(`category ${category}`, score));
  }
  const shares = Object.entries(filtered.by_category).map(([category, share]) => `${category} ${share.toFixed(3)}`);
  process.stdout.write(`right session through the filter ${filtered.all.toFixed(3)} (category ${shares.join(', ')})\n`);
  if (filtered.silent !== null) {
    process.stdout.write(`silent for questions of the next dialogue ${filtered.silent.toFixed(3)}\n`);
  }
  const change = (value: number): string => `${value < 0 ? '' : '+'}${value.toFixed(3)}`;
  for (const row of ablation) {
    const by = `(R@10 ${change(row.r10 - overall.r10)}, MRR ${change(row.mrr - overall.mrr)})`;
    process.stdout.write(line(row.name, row).replace('\n', `  ${by}\n`));
  }
  process.stdout.write(`one search: ${latency_ms.p50} ms, 95 % below ${latency_ms.p95} ms\n`);
}
