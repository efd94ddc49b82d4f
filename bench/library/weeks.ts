/**
 * Questions about the twelve simulated weeks of the tests, months later: what holds now, and what held before and from
 * when to when. A reader without a model takes the first line that speaks of the matter; for what held before, a line
 * must have the value and its first day, and some line about it the last one.
 *
 * - `pages`: INDEX.md and the pages that it lists, in its order, without a search.
 * - `search`: the first five memories that `memory search` shows, with their days.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { homePaths } from '../../common/paths.ts';
import { countTokens } from '../../common/text.ts';
import type { Memory } from '../../memory/index.ts';
import { SENTENCES, WEEK_MS, WEEKS_START_MS } from '../../test/helpers/library-weeks.ts';
import { talk } from '../../test/helpers/turns.ts';
import { openRealMemory } from '../real/product.ts';
import { type DrawnStatement, getStatements } from './statements.ts';

const PROJECT_DIR = '/home/dev/shop';
const FLUSH_MS = 120_000;
const HITS = 5;

interface Question {
  readonly prompt: string;
  /** Lines that speak of it; the first one decides. */
  readonly about: RegExp;
  readonly answer: RegExp;
  /** Days from which and until which it held; for what holds now the first alone, or none. */
  readonly days?: readonly string[];
}

const PORT = /port \d{4}/;
const CACHE = /Redis.*session cache/;
const MIRA = /^\W*Mira\b|\bMira is\b/;
const PLACE = /based in/;

const NOW: readonly Question[] = [
  { prompt: 'Which port does the payments API listen on?', about: PORT, answer: /9191/ },
  { prompt: 'Do we use Redis for the session cache?', about: CACHE, answer: /Redis.* again/ },
  { prompt: 'What does Mira do?', about: MIRA, answer: /head of platform/ },
  { prompt: 'Where am I based?', about: PLACE, answer: /Lisbon/ },
  { prompt: 'Do I prefer tabs or spaces?', about: /tabs/, answer: /tabs over spaces/ },
  { prompt: 'What has to run before a deploy?', about: /migrations/, answer: /migrations before the deploy/ },
  { prompt: 'Since when does the payments API listen on 9191?', about: PORT, answer: /9191/, days: ['2026-04-27'] },
];
const BEFORE: readonly Question[] = [
  ['On which port did the payments API listen first?', PORT, /8080/, ['2026-03-02', '2026-03-23']],
  ['On which port did the payments API listen in April?', PORT, /9090/, ['2026-03-23', '2026-04-27']],
  ['When did we use no Redis for the session cache?', CACHE, /no longer/, ['2026-04-06', '2026-05-04']],
  ['What did Mira do before?', MIRA, /release manager/, ['2026-03-02', '2026-04-20']],
  ['Where was I based before?', PLACE, /Hamburg/, ['2026-04-06', '2026-05-11']],
].map(([prompt, about, answer, days]) => ({ prompt, about, answer, days }) as Question);

export interface WeeksReport {
  readonly now: { readonly of: number; readonly pages: number; readonly search: number };
  readonly before: { readonly of: number; readonly pages: number; readonly search: number };
  /** What was read for a question, in tokens; of search the mean. */
  readonly tokens: { readonly pages: number; readonly search: number };
  readonly misses: readonly string[];
}

export async function askWeeks(): Promise<WeeksReport> {
  return withWeeks(async (memory, home) => askAll(memory, await readPages(memory, home)));
}

export async function weeksStatements(): Promise<DrawnStatement[]> {
  return withWeeks((memory) => getStatements(memory, () => 'invented weeks'));
}

async function withWeeks<T>(use: (memory: Memory, home: string) => Promise<T>): Promise<T> {
  const home = await mkdtemp(path.join(tmpdir(), 'comet-bench-'));
  const memory = await openRealMemory(home);
  try {
    await sayWeeks(memory);
    return await use(memory, home);
  } finally {
    await memory.maintenance.close();
    await rm(home, { recursive: true, force: true });
  }
}

async function sayWeeks({ capture, maintenance }: Memory): Promise<void> {
  for (const [nth, sentences] of SENTENCES.entries()) {
    const atMs = WEEKS_START_MS + nth * WEEK_MS;
    const place = { sessionId: `week-${nth}`, projectDir: PROJECT_DIR };
    capture.captureTurns(
      sentences.map((text, at) => talk(text, 'Noted.', { ...place, atMs: atMs + at * 60_000, key: `${nth}-${at}` })),
    );
    if (!(await maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
    await maintenance.dream({ dryRun: false });
  }
}

/** INDEX.md, then the lines of the pages that it lists. */
async function readPages({ library }: Memory, home: string): Promise<readonly string[]> {
  const index = await readFile(path.join(homePaths(path.join(home, '.comet-cc')).home, 'library', 'INDEX.md'), 'utf8');
  const lines = index.split('\n').filter((line) => !line.includes('/memory/'));
  for (const [, name = ''] of index.matchAll(/\(topics\/([^)]+)\.md\)/g)) {
    const topic = await library.readTopic(decodeURIComponent(name), {});
    lines.push(...topic.lines.map(({ text }) => text));
  }
  return lines;
}

async function askAll(memory: Memory, pages: readonly string[]): Promise<WeeksReport> {
  const misses: string[] = [];
  let tokens = 0;
  const ask = async (questions: readonly Question[]) => {
    const sums = { of: questions.length, pages: 0, search: 0 };
    for (const question of questions) {
      const hits = await memory.recall.search(question.prompt, { top: HITS, projectDir: PROJECT_DIR });
      const found = hits.flatMap(({ isFar, line, raw, node }) =>
        isFar
          ? []
          : [[line.text, raw?.text ?? '', node.valid_from.slice(0, 10), node.valid_to?.slice(0, 10)].join(' ')],
      );
      tokens += getTokens(found);
      for (const [how, lines] of Object.entries({ pages, search: found })) {
        const isRight = answers(lines, question);
        sums[how as 'pages' | 'search'] += Number(isRight);
        if (!isRight) misses.push(`${how} miss: ${question.prompt}`);
      }
    }
    return sums;
  };
  const [now, before] = [await ask(NOW), await ask(BEFORE)];
  const search = Math.round(tokens / (NOW.length + BEFORE.length));
  return { now, before, tokens: { pages: getTokens(pages), search }, misses };
}

function answers(lines: readonly string[], { about, answer, days = [] }: Question): boolean {
  const [from = '', until] = days;
  const isAnswer = (line: string): boolean => answer.test(line) && line.includes(from);
  const own = lines.filter((line) => about.test(line));
  if (until !== undefined) return own.some(isAnswer) && own.some((line) => line.includes(until));
  return own[0] !== undefined && isAnswer(own[0]);
}

function getTokens(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + countTokens(line), 0);
}
