/**
 * How memory serves real work: 42 transcripts of one developer, imported by the product with the rules in charge, then
 * asked weeks later, beside BM25 and a keyword count over the same turns. The corpus is not part of the project.
 *
 *   npm run bench:real -- [--data DIR] [--min-coverage N] [--preset comis] [--ablate] [--json] [--misses]
 *
 * DIR holds `real/cli` and `real/cli-questions.json`; `../shared/data` beside the checkout unless told, and where it is
 * missing nothing is measured. Every question is the first prompt of a new session in the project's directory.
 *
 * - `before the filter`: a right turn among the first five of a search; `through it`: of what recall gives a prompt.
 *   A result stands for the turn that it quotes (for every turn of its node where it quotes none); "memory" also counts
 *   a result whose node has a right turn elsewhere. What is right: `real/right.ts`.
 * - `in the prompt`: the answer is in what the rewriter adds to the request for this prompt, in its own budget, with
 *   the deadline of the configuration and without; the block that every session begins with is counted apart.
 * - `as a later prompt`: the same as the second, third and fourth prompt of one session (`real/later.ts`).
 * - `--ablate` asks again without one lane, weight or rule at a time, and with constants of the relevance filter switched
 *   off, halved or doubled; the first row of its table changes nothing.
 * - rewordings and the harder questions without an answer are in `real/questions.ts`; rules are chosen on those of
 *   `real/further.ts`.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Config, loadConfig } from '../common/config.ts';
import { homePaths } from '../common/paths.ts';
import { isCleanOrigin } from '../common/turn.ts';
import type { Memory, RecallHit } from '../memory/index.ts';
import { parseBriefFile } from '../memory/model/markdown.ts';
import { FILTER_RULES, type FilterRules } from '../memory/recall/relevance-filter.ts';
import { spread } from './latency/stats.ts';
import { DATA } from './paths.ts';
import { type Corpus, PROJECT_DIR, type RealTurn, unpackCorpus } from './real/corpus.ts';
import { FURTHER, FURTHER_HARD } from './real/further.ts';
import { type Label, type Labels, readLabels } from './real/labels.ts';
import { askLater, type Later } from './real/later.ts';
import { type Asker, importCorpus, openAsker, openRealMemory, readTurnMap } from './real/product.ts';
import { measureQuality, type Quality } from './real/quality.ts';
import { HARD, PARAPHRASES } from './real/questions.ts';
import { createPlainRanking, type PlainRanking, SNIPPET_CHARS } from './real/rankings.ts';
import { type Asked, holdsAnswer, isRight } from './real/right.ts';

/** A right turn further down counts nothing. */
const RANKED = 20;
const SHOWN = 5;
const PATIENT_MS = 60_000;
const CLIPPED = 180;

type Recall = Config['recall'];

/** Parts that a key switches off; the lanes of nodes and the other ways to fuse are in bench:recall. */
const PARTS: Readonly<Record<string, (recall: Recall) => Recall>> = {
  'full text of turns': weightless('raw'),
  vectors: weightless('meaning'),
  neighbors: weightless('before', 'after'),
  windows: weightless('window'),
  'named dates': weightless('date'),
  'questions for a time': weightless('when'),
  facts: weightless('fact', 'factMeaning'),
  'the relevance filter': (recall) => ({ ...recall, minCoverage: 0 }),
  'the least score': (recall) => ({ ...recall, minScore: 0 }),
};

/** Constants of the relevance filter, switched off, halved or doubled. */
const CONSTANTS: Readonly<Record<string, Partial<FilterRules>>> = {
  'rarity of words off': { commonShare: 1 },
  'commonShare .2': { commonShare: 0.2 },
  'commonShare .8': { commonShare: 0.8 },
  'nearBest off': { nearBest: 0 },
  'nearBest .25': { nearBest: 0.25 },
  'nearBest 1': { nearBest: 1 },
  'second passages off': { secondShare: Number.POSITIVE_INFINITY },
  'secondShare .375': { secondShare: 0.375 },
  'links without a share': { linkCoverage: 0 },
  'linkCoverage .4': { linkCoverage: 0.4 },
  'maxTerms 6': { maxTerms: 6 },
  'maxTerms 24': { maxTerms: 24 },
  'minInformation off': { minInformation: 0 },
  'minInformation 1': { minInformation: 1 },
  'deciding 2': { deciding: 2 },
  'deciding 16': { deciding: 16 },
  'similarity off': { similarityWeight: 0 },
  'similarityWeight .9': { similarityWeight: 0.9 },
  'similarityWeight 3.6': { similarityWeight: 3.6 },
  'usualSimilarity .23': { usualSimilarity: 0.23 },
  'usualSimilarity .33': { usualSimilarity: 0.33 },
};

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: DATA },
    'min-coverage': { type: 'string' },
    preset: { type: 'string' },
    ablate: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    misses: { type: 'boolean', default: false },
  },
});
const home = await mkdtemp(path.join(tmpdir(), 'comet-real-'));
try {
  const corpus = await unpackCorpus(path.resolve(values.data), home);
  if (corpus === null) console.log(`skipped: no corpus in ${values.data}`);
  else await run(corpus);
} finally {
  await rm(home, { recursive: true, force: true });
}

interface Ranks {
  /** Rank of the first right one, from 1; 0 where there is none. */
  readonly search: number;
  readonly searchMemory: number;
  readonly recall: number;
  readonly bm25: number;
  readonly keywords: number;
}

interface Answered {
  readonly asked: Asked;
  readonly ranks: Ranks;
  readonly inPrompt: boolean;
  readonly inPromptUnhurried: boolean;
  readonly inBlock: boolean;
  readonly inSnippet: boolean;
  readonly inEnding: boolean;
  readonly first: string;
}

interface Silence {
  readonly prompt: string;
  readonly injected: string;
}

async function run(corpus: Corpus): Promise<void> {
  const { preset = 'own', 'min-coverage': least } = values;
  const { recall } = loadConfig({ COMET_CC_HOME: home, COMET_CC_RECALL_PRESET: preset }).config;
  if (least !== undefined) recall.minCoverage = Number(least);
  const filter = { ...FILTER_RULES };
  const memory = await openRealMemory(home, recall, filter);
  try {
    const startMs = performance.now();
    const { added } = await importCorpus(memory, home);
    const importMs = performance.now() - startMs;
    const report = {
      turns: corpus.turns.length,
      added,
      import_s: Math.round(importMs / 100) / 10,
      ...(await measure(memory, corpus)),
    };
    const ablation = values.ablate ? await ablate(memory, corpus, { recall, filter }) : [];
    if (values.json) process.stdout.write(`${JSON.stringify({ ...report, ablation, details: undefined }, null, 2)}\n`);
    else print(report);
    if (!values.json) printAblation(ablation);
    if (values.misses) printMisses(report);
  } finally {
    await memory.maintenance.close();
  }
}

async function measure(memory: Memory, corpus: Corpus) {
  const labels = readLabels();
  const turns = await readTurnMap(home, corpus);
  const asked = await askAll(memory, corpus, await openAsker(memory));
  const later: Record<string, Later> = {};
  for (const name of ['questions', 'paraphrases', 'further'] as const) {
    const all = asked.details[name].map((each) => each.asked);
    later[name] = await askLater(memory, name, all);
  }
  return {
    ...asked,
    later,
    quality: measureQuality(memory, corpus, labels),
    briefs: await countClaims(),
    worth: getWorth(memory, turns, corpus, labels),
  };
}

/** Claims of the sessions' briefs; a new session is told those of clean origin only. */
async function countClaims() {
  const { briefsDir } = homePaths(path.join(home, '.comet-cc'));
  const names = (await readdir(briefsDir)).filter((name) => name.endsWith('.md'));
  const briefs = await Promise.all(names.map((name) => readFile(path.join(briefsDir, name), 'utf8')));
  const claims = briefs.map(parseBriefFile).flatMap((brief) => (typeof brief === 'string' ? [] : brief.active));
  return { claims: claims.length, clean: claims.filter(({ origin }) => isCleanOrigin(origin)).length };
}

/** @param hurried  with the deadline of the configuration; without it, all are asked without a deadline */
async function askAll(memory: Memory, corpus: Corpus, hurried?: Asker) {
  const turns = await readTurnMap(home, corpus);
  const plain = createPlainRanking(corpus.turns);
  const patient = await openAsker(memory, PATIENT_MS);
  const asker = hurried ?? patient;
  const parts = { memory, turns, plain, asker, patient };
  const { answerable, unanswerable } = corpus.questions;
  const times: number[] = [];
  const ask = async (all: readonly Asked[]): Promise<Answered[]> => {
    const answers: Answered[] = [];
    for (const asked of all) answers.push(await answer(asked, parts, times));
    return answers;
  };
  const questions = await ask(answerable.map((each) => ({ ...each, prompt: each.question })));
  const paraphrases = await ask(answerable.map((each, at) => ({ ...each, prompt: PARAPHRASES[at] ?? each.question })));
  const further = await ask(FURTHER.map(({ prompt, answer, ...turn }) => ({ question: prompt, prompt, answer, turn })));
  const easy = await listen(unanswerable, patient);
  const hard = await listen(HARD, patient);
  const furtherHard = await listen(FURTHER_HARD, patient);
  return {
    questions: getSummary(questions),
    paraphrases: getSummary(paraphrases),
    further: getSummary(further),
    unanswerable: { easy: getLoudness(easy), hard: getLoudness(hard), further: getLoudness(furtherHard) },
    deadline_misses: { count: asker.misses(), of: questions.length + paraphrases.length + further.length },
    latency_ms: { p50: round(spread(times).p50), p95: round(spread(times).p95) },
    details: { questions, paraphrases, further, easy, hard },
  };
}

function weightless(...names: readonly (keyof Recall['weights'])[]): (recall: Recall) => Recall {
  const none = Object.fromEntries(names.map((name) => [name, 0]));
  return (recall) => ({ ...recall, weights: { ...recall.weights, ...none } });
}

interface Ablated {
  readonly change: string;
  readonly report: Pick<Awaited<ReturnType<typeof askAll>>, 'questions' | 'paraphrases' | 'further' | 'unanswerable'>;
}

interface Changeable {
  readonly recall: Recall;
  readonly filter: FilterRules;
}

/** The memory reads keys and constants for each question. */
async function ablate(memory: Memory, corpus: Corpus, { recall, filter }: Changeable): Promise<Ablated[]> {
  const whole = structuredClone(recall);
  const set = (value: Recall, constants: Partial<FilterRules>): void => {
    Object.assign(recall, { ...value, weights: Object.assign(recall.weights, value.weights) });
    Object.assign(filter, FILTER_RULES, constants);
  };
  const rows: Ablated[] = [];
  const ask = async (change: string): Promise<void> => {
    const { questions, paraphrases, further, unanswerable } = await askAll(memory, corpus);
    rows.push({ change, report: { questions, paraphrases, further, unanswerable } });
    set(structuredClone(whole), {});
  };
  await ask('nothing');
  for (const [part, change] of Object.entries(PARTS)) {
    set(change(structuredClone(whole)), {});
    await ask(`without ${part}`);
  }
  for (const [name, constants] of Object.entries(CONSTANTS)) {
    set(structuredClone(whole), constants);
    await ask(name);
  }
  return rows;
}

function printAblation(rows: readonly Ablated[]): void {
  if (rows.length === 0) return;
  const { questions, unanswerable } = (rows[0] as Ablated).report;
  const { easy, hard, further } = unanswerable;
  const loud = `injected though nothing answers, easy of ${easy.of}; hard of ${hard.of}; further of ${further.of}`;
  const of = `MRR; through the filter; answers, of ${questions.of}`;
  process.stdout.write(
    `\n| change | questions: ${of} | rewordings: the same | further ones | ${loud} |\n|---|---|---|---|---|\n`,
  );
  for (const { change, report } of rows) {
    const figures = ({ mrr, recalled, in_prompt }: Ablated['report']['questions']): string =>
      [mrr.product, recalled, in_prompt.product_without_deadline].join('; ');
    const { easy, hard, further } = report.unanswerable;
    const cells = [
      change,
      figures(report.questions),
      figures(report.paraphrases),
      figures(report.further),
      `${easy.injected}; ${hard.injected}; ${further.injected}`,
    ];
    process.stdout.write(`| ${cells.join(' | ')} |\n`);
  }
}

interface Parts {
  readonly memory: Memory;
  readonly turns: ReadonlyMap<string, RealTurn>;
  readonly plain: PlainRanking;
  readonly asker: Asker;
  readonly patient: Asker;
}

async function answer(
  asked: Asked,
  { memory, turns, plain, asker, patient }: Parts,
  times: number[],
): Promise<Answered> {
  const { prompt } = asked;
  const hurried = await asker.send(prompt);
  const unhurried = asker === patient ? hurried : await patient.send(prompt);
  const startMs = performance.now();
  const recalled = await memory.recall.recall(getRequest(prompt), new AbortController().signal);
  times.push(performance.now() - startMs);
  const found = await memory.recall.search(prompt, { top: RANKED, projectDir: PROJECT_DIR });
  const right = (turn: RealTurn | undefined): boolean => turn !== undefined && isRight(turn, asked);
  const anyRight = (ids: readonly string[]): boolean => ids.some((id) => right(turns.get(id)));
  const rank = <T>(all: readonly T[], test: (each: T) => boolean): number => all.slice(0, RANKED).findIndex(test) + 1;
  const shows = ({ raw, node }: RecallHit): boolean => anyRight(raw === null ? node.turns : [raw.turn]);
  return {
    asked,
    ranks: {
      search: rank(found, shows),
      searchMemory: rank(found, ({ node }) => anyRight(node.turns)),
      recall: rank(recalled, shows),
      bm25: rank(plain.bm25(prompt), right),
      keywords: rank(plain.keywordCount(prompt), right),
    },
    inPrompt: holdsAnswer(hurried.recalled, asked),
    inPromptUnhurried: holdsAnswer(unhurried.recalled, asked),
    inBlock: holdsAnswer(unhurried.block, asked),
    inSnippet: holdsAnswer(plain.snippet(prompt), asked),
    inEnding: holdsAnswer(plain.ending(prompt), asked),
    first: found[0]?.line.text ?? '',
  };
}

function getRequest(prompt: string) {
  const none = { recent: [], visibleTurns: new Set<string>(), shown: new Set<string>() };
  return { sessionId: 'asker', projectDir: PROJECT_DIR, prompt, ...none };
}

async function listen(prompts: readonly string[], asker: Asker): Promise<Silence[]> {
  const heard: Silence[] = [];
  for (const prompt of prompts) heard.push({ prompt, injected: (await asker.send(prompt)).recalled });
  return heard;
}

/** What memories were made from, by a reader's labels of the turns. */
function getWorth(memory: Memory, turns: ReadonlyMap<string, RealTurn>, corpus: Corpus, labels: Labels) {
  const labeled = new Map<RealTurn, Label>();
  for (const turn of corpus.turns) {
    const label = labels.of(turn);
    if (label !== null) labeled.set(turn, label);
  }
  const nodes = memory.library.list({}).map((node) => node.turns.flatMap((id) => turns.get(id) ?? []));
  const made = nodes.filter((own) => own.length > 0 && own.every((turn) => labeled.has(turn)));
  const covered = new Set(nodes.flat());
  const only = (...worth: readonly Label['worth'][]): number =>
    made.filter((own) => own.every((turn) => worth.includes((labeled.get(turn) as Label).worth))).length;
  const coverage = (worth: Label['worth']) => {
    const all = [...labeled].filter(([, label]) => label.worth === worth);
    return { covered: all.filter(([turn]) => covered.has(turn)).length, of: all.length };
  };
  return {
    memories: made.length,
    of_junk_only: only('j'),
    of_weak_or_junk_only: only('j', 'w'),
    turns: { useful: coverage('u'), weak: coverage('w'), junk: coverage('j') },
  };
}

function getSummary(answers: readonly Answered[]) {
  const among = (getRank: (ranks: Ranks) => number): number =>
    share(answers.filter(({ ranks }) => getRank(ranks) > 0 && getRank(ranks) <= SHOWN).length, answers.length);
  const mrr = (getRank: (ranks: Ranks) => number): number =>
    share(
      answers.reduce((sum, { ranks }) => sum + (getRank(ranks) > 0 ? 1 / getRank(ranks) : 0), 0),
      answers.length,
    );
  const count = (test: (each: Answered) => boolean): number => answers.filter(test).length;
  return {
    of: answers.length,
    found: {
      product: among((ranks) => ranks.search),
      product_memory: among((ranks) => ranks.searchMemory),
      bm25: among((ranks) => ranks.bm25),
      keyword_count: among((ranks) => ranks.keywords),
    },
    recalled: among((ranks) => ranks.recall),
    mrr: {
      product: mrr((ranks) => ranks.search),
      bm25: mrr((ranks) => ranks.bm25),
      keyword_count: mrr((ranks) => ranks.keywords),
    },
    in_prompt: {
      product: count((each) => each.inPrompt),
      product_without_deadline: count((each) => each.inPromptUnhurried),
      block: count((each) => each.inBlock),
      bm25_snippet: count((each) => each.inSnippet),
      bm25_ending: count((each) => each.inEnding),
    },
  };
}

function getLoudness(heard: readonly Silence[]) {
  return { injected: heard.filter(({ injected }) => injected !== '').length, of: heard.length };
}

function share(part: number, of: number): number {
  return Math.round((part / Math.max(1, of)) * 1_000) / 1_000;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

type Report = Awaited<ReturnType<typeof measure>> & {
  readonly turns: number;
  readonly added: number;
  readonly import_s: number;
};

function print(report: Report): void {
  const { questions, paraphrases, unanswerable, deadline_misses: late, latency_ms: latency, quality, worth } = report;
  const lines = [
    `${report.turns} turns, ${report.added} imported in ${report.import_s} s`,
    ...(
      [
        ['questions', questions, report.later['questions']],
        ['rewordings', paraphrases, report.later['paraphrases']],
        ['further rewordings', report.further, report.later['further']],
      ] as const
    ).flatMap(([name, each, later = []]) => [
      `${name} (${each.of}), right turn in the first ${SHOWN}: before the filter ${each.found.product} (memory ${each.found.product_memory}), through it ${each.recalled}; BM25 ${each.found.bm25}, keyword count ${each.found.keyword_count}`,
      `  MRR ${each.mrr.product}; BM25 ${each.mrr.bm25}, keyword count ${each.mrr.keyword_count}`,
      `  answer in the prompt ${each.in_prompt.product} of ${each.of}, without a deadline ${each.in_prompt.product_without_deadline}; ${SNIPPET_CHARS} characters of BM25's first turn: the best ${each.in_prompt.bm25_snippet}, the last ${each.in_prompt.bm25_ending}; block of the session ${each.in_prompt.block}`,
      `  as a later prompt: answers ${later.map(({ answered }) => answered).join(', ')} as the second, third and fourth of a session; anything ${later.map(({ given }) => given).join(', ')}`,
    ]),
    `injected though nothing answers: easy ${unanswerable.easy.injected} of ${unanswerable.easy.of}, hard ${unanswerable.hard.injected} of ${unanswerable.hard.of}, further ${unanswerable.further.injected} of ${unanswerable.further.of}`,
    `deadline missed ${late.count} of ${late.of}; one recall ${latency.p50} ms, 95 % below ${latency.p95} ms`,
    ...qualityLines(quality),
    `claims of briefs of clean origin, which a new session may be told: ${report.briefs.clean} of ${report.briefs.claims}`,
    `by a reader's labels: ${worth.of_junk_only} of ${worth.memories} memories are of junk turns only, ${worth.of_weak_or_junk_only} of weak or junk ones; turns with a memory: ${Object.entries(
      worth.turns,
    )
      .map(([name, { covered, of }]) => `${name} ${covered} of ${of}`)
      .join(', ')}`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

function qualityLines(quality: Quality): string[] {
  const part = ({ count, of }: { readonly count: number; readonly of: number }): string =>
    `${count} of ${of} (${(share(count, of) * 100).toFixed(1)} %)`;
  const ranks = Object.entries(quality.by_importance).map(([name, count]) => `${name} ${count}`);
  return [
    `memories ${quality.memories} (${ranks.join(', ')}), superseded marks ${quality.superseded}`,
    `begin as markup, greeting or notification: ${part(quality.begins_as_noise)}`,
    `"user says" that no typed prompt has: ${part(quality.user_says_unsaid)}`,
    `"user says" of what the user only pasted: ${part(quality.user_says_pasted)}; memories with either: ${part(quality.user_misquoted)}`,
    `file links that are no path of a tool: ${part(quality.links_no_path)}`,
  ];
}

function printMisses({ details, quality }: Report): void {
  const clip = (text: string): string => text.replace(/\s+/g, ' ').slice(0, CLIPPED);
  const worst = [...details.questions, ...details.paraphrases].filter(
    ({ ranks, inPromptUnhurried }) => ranks.recall === 0 || ranks.recall > SHOWN || !inPromptUnhurried,
  );
  const lines = [
    ...worst.map(({ asked, ranks, inPromptUnhurried, first }) => {
      const { search, recall, bm25, keywords } = ranks;
      return `${clip(asked.prompt)}\n  search ${search}, recall ${recall}, BM25 ${bm25}, keywords ${keywords}, in the prompt ${inPromptUnhurried}\n  first: ${clip(first)}`;
    }),
    ...[...details.easy, ...details.hard]
      .filter(({ injected }) => injected !== '')
      .map(({ prompt, injected }) => `${clip(prompt)}\n  injected: ${clip(injected.split('\n').slice(1).join(' '))}`),
    ...quality.samples.unsaid.slice(0, 30).map((text) => `unsaid: ${clip(text)}`),
    ...quality.samples.links.slice(0, 30).map((text) => `no path: ${clip(text)}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
