/**
 * Whether topic pages serve real work: the transcripts of `bench:real` are imported with the rules in charge, pages are
 * written by a pass, and each question is asked as the first prompt of a new session. Before that, questions about the
 * twelve simulated weeks of the tests (`library/weeks.ts`).
 *
 *   npm run bench:library -- [--data DIR] [--json] [--misses]
 *   npm run bench:library -- --statements 200   share of junk on pages of these and of invented sessions; `--show`: texts
 *   npm run bench:library -- --topics 5000      how long many topics take, in ms
 *
 * - `recall`: the answer is in what the rewriter adds for the prompt; `pages`: it is in the sections of pages that pass
 *   the relevance filter, three at most; `both`: in either, where sections whose memories are all recalled are left out;
 *   `read`: it is in one of the three lines of all pages that share most words with the question, without a search.
 * - of questions that nothing answers: for how many either adds something.
 */
import { parseArgs } from 'node:util';
import type { Memory } from '../memory/index.ts';
import { contentTokens } from '../memory/text/keywords.ts';
import {
  codingStatements,
  type DrawnStatement,
  drawStatements,
  type GroupReport,
  getHalf,
  getStatements,
  judgeStatements,
  readLabels,
} from './library/statements.ts';
import { timeTopics } from './library/topics.ts';
import { askWeeks, type WeeksReport, weeksStatements } from './library/weeks.ts';
import { DATA } from './paths.ts';
import { type Corpus, PROJECT_DIR, withCorpus } from './real/corpus.ts';
import { importCorpus, openAsker, openRealMemory } from './real/product.ts';
import { HARD, PARAPHRASES } from './real/questions.ts';
import { type Asked, holdsAnswer } from './real/right.ts';

const PATIENT_MS = 60_000;
const SECTIONS = 3;

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: DATA },
    json: { type: 'boolean', default: false },
    misses: { type: 'boolean', default: false },
    topics: { type: 'string', default: '' },
    statements: { type: 'string', default: '' },
    show: { type: 'boolean', default: false },
  },
});
if (values.statements !== '') {
  await withCorpus(values.data, judge);
} else if (values.topics === '') {
  const weeks = await askWeeks();
  if (!values.json) printWeeks(weeks);
  await withCorpus(values.data, (corpus, home) => run(corpus, home, weeks));
} else {
  for (const [name, ms] of Object.entries(await timeTopics(Number(values.topics)))) console.log(`${name}: ${ms} ms`);
}

interface Told {
  readonly recalled: string;
  /** Sections that fit, without those whose memories are recalled. */
  readonly fresh: string;
  readonly sections: string;
}

async function judge(corpus: Corpus, home: string): Promise<void> {
  const memory = await openRealMemory(home);
  let real: readonly DrawnStatement[];
  try {
    await importCorpus(memory, home);
    await memory.maintenance.dream({ dryRun: false });
    real = await getStatements(memory, getHalf(corpus));
  } finally {
    await memory.maintenance.close();
  }
  const all = [...real, ...(await weeksStatements()), ...(await codingStatements(1)), ...(await codingStatements(2))];
  const drawn = drawStatements(all, Number(values.statements));
  const report = judgeStatements(drawn);
  if (values.json) console.log(JSON.stringify(report, null, 2));
  else printGroups(report);
  const labels = readLabels();
  if (!values.show) return;
  for (const { digest, group, text } of drawn) console.log(`${digest} ${labels[digest] ?? '?'} ${group}: ${text}`);
}

function printGroups(report: Readonly<Record<string, GroupReport>>): void {
  console.log('| pages made from | statements | useful | weak | junk | not labeled | share of junk, 95 % |');
  console.log('|---|---|---|---|---|---|---|');
  for (const [name, { statements, useful, weak, junk, unlabeled, junk_share, junk_interval }] of Object.entries(report))
    console.log(
      `| ${name} | ${statements} | ${useful} | ${weak} | ${junk} | ${unlabeled} | ${junk_share}, ${junk_interval?.join(' to ')} |`,
    );
}

async function run(corpus: Corpus, home: string, weeks: WeeksReport): Promise<void> {
  const memory = await openRealMemory(home);
  try {
    await importCorpus(memory, home);
    const { pages } = await memory.maintenance.dream({ dryRun: false });
    const { topics } = await memory.library.listTopics({ projectDir: PROJECT_DIR });
    const asker = await openAsker(memory, PATIENT_MS);
    const tell = async (prompt: string): Promise<Told> => {
      const { recalled } = await asker.send(prompt);
      return { recalled, ...(await sectionsFor(memory, prompt, recalled)) };
    };
    const report = {
      pages: topics.length,
      statements: pages.added,
      weeks,
      ...(await askAll(corpus, tell, await pageLines(memory))),
    };
    if (values.json) console.log(JSON.stringify({ ...report, misses: undefined }, null, 2));
    else print(report);
    if (values.misses) for (const line of [...weeks.misses, ...report.misses]) console.log(line);
  } finally {
    await memory.maintenance.close();
  }
}

async function pageLines({ library }: Memory): Promise<readonly string[]> {
  const { topics } = await library.listTopics({ projectDir: PROJECT_DIR });
  const pages = await Promise.all(topics.map(({ name }) => library.readTopic(name, { projectDir: PROJECT_DIR })));
  return pages.flatMap(({ lines }) => lines.map(({ text }) => text));
}

/** What a reader of all pages finds on the matter: the lines with most of its words. */
function linesAbout(question: string, lines: readonly string[]): string {
  const asked = new Set(contentTokens(question));
  const shared = (line: string): number => contentTokens(line).filter((token) => asked.has(token)).length;
  const ranked = lines.map((line) => ({ line, shared: shared(line) })).filter((each) => each.shared > 0);
  return ranked
    .toSorted((one, other) => other.shared - one.shared)
    .slice(0, SECTIONS)
    .map(({ line }) => line)
    .join('\n');
}

async function sectionsFor(memory: Memory, prompt: string, recalled: string): Promise<Omit<Told, 'recalled'>> {
  const hits = await memory.library.searchTopics(prompt, { top: SECTIONS, projectDir: PROJECT_DIR });
  const fitting = hits.filter(({ fits }) => fits);
  const fresh = fitting.filter(({ nodes }) => nodes.length === 0 || !nodes.every((id) => recalled.includes(id)));
  const getText = (all: typeof hits): string => all.map(({ title, lines }) => [title, ...lines].join('\n')).join('\n');
  return { fresh: getText(fresh), sections: getText(fitting) };
}

async function askAll(
  { questions: { answerable, unanswerable } }: Corpus,
  tell: (prompt: string) => Promise<Told>,
  lines: readonly string[],
) {
  const misses: string[] = [];
  const ask = async (all: readonly Asked[]) => {
    const sums = { of: all.length, recall: 0, pages: 0, both: 0, read: 0, pages_said_something: 0 };
    for (const asked of all) {
      const { recalled, fresh, sections } = await tell(asked.prompt);
      const inRecall = holdsAnswer(recalled, asked);
      const inBoth = inRecall || holdsAnswer(fresh, asked);
      sums.recall += Number(inRecall);
      sums.pages += Number(holdsAnswer(sections, asked));
      sums.both += Number(inBoth);
      sums.read += Number(holdsAnswer(linesAbout(asked.prompt, lines), asked));
      sums.pages_said_something += Number(sections !== '');
      if (inBoth && !inRecall) misses.push(`only pages answer: ${asked.prompt}\n  ${fresh.replaceAll('\n', '\n  ')}`);
    }
    return sums;
  };
  const listen = async (prompts: readonly string[]) => {
    const sums = { of: prompts.length, recall: 0, pages: 0, both: 0 };
    for (const prompt of prompts) {
      const { recalled, fresh, sections } = await tell(prompt);
      sums.recall += Number(recalled !== '');
      sums.pages += Number(sections !== '');
      sums.both += Number(recalled !== '' || fresh !== '');
      if (sections !== '') misses.push(`nothing answers: ${prompt}\n  ${sections.replaceAll('\n', '\n  ')}`);
    }
    return sums;
  };
  return {
    questions: await ask(answerable.map((each) => ({ ...each, prompt: each.question }))),
    rewordings: await ask(answerable.map((each, at) => ({ ...each, prompt: PARAPHRASES[at] ?? each.question }))),
    unanswerable: { easy: await listen(unanswerable), hard: await listen(HARD) },
    misses,
  };
}

function printWeeks({ now, before, tokens }: WeeksReport): void {
  console.log('| twelve weeks | of | pages alone | search alone |\n|---|---|---|---|');
  console.log(`| what holds now | ${now.of} | ${now.pages} | ${now.search} |`);
  console.log(`| what held before, with both days | ${before.of} | ${before.pages} | ${before.search} |`);
  console.log(`| tokens read for a question | | ${tokens.pages} | ${tokens.search} |\n`);
}

function print({
  pages,
  statements,
  questions,
  rewordings,
  unanswerable,
}: Awaited<ReturnType<typeof askAll>> & {
  readonly pages: number;
  readonly statements: number;
}): void {
  console.log(`${pages} pages, ${statements} statements\n`);
  console.log('| | of | recall | pages | both | read |\n|---|---|---|---|---|---|');
  const rows: Record<string, { of: number; recall: number; pages: number; both: number; read?: number }> = {
    'questions answered': questions,
    'rewordings answered': rewordings,
    'injected though nothing answers, easy': unanswerable.easy,
    'the same, hard': unanswerable.hard,
  };
  for (const [name, { of, recall, pages: own, both, read = '' }] of Object.entries(rows))
    console.log(`| ${name} | ${of} | ${recall} | ${own} | ${both} | ${read} |`);
}
