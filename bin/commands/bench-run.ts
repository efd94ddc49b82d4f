import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { CometError } from '../../common/errors.ts';
import { silentLog } from '../../common/log.ts';
import { grouped } from '../../common/map.ts';
import { homePaths } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import { getClaudeEnvironment, onSignals } from '../../engine/lifecycle/index.ts';
import {
  type Answer,
  askForQuestions,
  askQuestions,
  chooseQuestions,
  makeQuestions,
  type Outcome,
  type PastTurn,
  type Question,
  readNodeIds,
  readPastTurns,
  SHOWN,
} from '../../memory/bench/index.ts';
import {
  createIdSetFile,
  createUsageCounter,
  openBudget,
  openLanguageModel,
  openMemory,
  type RecallHit,
} from '../../memory/index.ts';
import { renderRetrieval } from '../../proxy/rewrite/index.ts';
import { createRedactor } from '../../redact/index.ts';
import { type CommandFlags, type Context, projectKey } from '../context.ts';
import { count, parseCount, parseSince } from '../terminal/format.ts';
import { table, truncate } from '../terminal/table.ts';
import { progressLine } from './memory/import.ts';

type Flags = CommandFlags<never, 'project' | 'since' | 'llm' | 'budget'> & { readonly limit: string };

/** Questions about turns of one project. */
interface Sample {
  readonly turns: readonly PastTurn[];
  readonly questions: readonly Question[];
}
type Measured = Pick<Sample, 'turns'> & { readonly outcome: Outcome };

const SETTLE_MS = 600_000;
const MISSES = 10;
const LOW_PRIORITY = 10;

export async function runBench(flags: Flags, defaultCalls: string, { term, ...rest }: Context): Promise<void> {
  const context = { ...rest, term: flags.json ? { ...term, progress: () => undefined } : term };
  const { paths } = context;
  const { limit, calls, since } = readFlags(flags, defaultCalls);
  const dismissed = new Set(await createIdSetFile(path.join(paths.journalDir, 'dismissed')).load());
  const all = await readPastTurns(paths.journalDir, (turnId) => dismissed.has(turnId));
  const project = flags.project === undefined ? null : await projectKey(context, flags.project);
  const isAsked = (of: string): boolean => of !== '' && of === (project ?? of);
  const turns = all.filter((each) => each.turn.atMs >= since && isAsked(each.project));
  if (turns.length === 0) {
    const none = 'memory has no conversations; import those of Claude Code: comet-cc memory import claude';
    const noMatch = 'no conversation of that project or time is in memory; see comet-cc session ls';
    throw new CometError('not_found', all.length === 0 ? none : noMatch);
  }
  try {
    os.setPriority(LOW_PRIORITY);
  } catch {
    // It then competes with a running session for the processor, and nothing else.
  }
  const startMs = Date.now();
  let scratch = '';
  const remove = (): void => {
    if (scratch !== '') rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
  };
  const interrupted = (): never => {
    remove();
    process.exit(130);
  };
  const stopWatching = onSignals(['SIGINT', 'SIGTERM', 'SIGHUP'], interrupted);
  scratch = mkdtempSync(path.join(os.tmpdir(), 'comet-cc-bench-'));
  try {
    const byProject = [...grouped(turns, (each) => each.project).values()];
    const samples: Sample[] = [];
    const budget = { calls };
    for (const own of byProject) {
      const share = Math.max(1, Math.round((limit * own.length) / turns.length));
      const most = Math.min(share, limit - samples.reduce((sum, { questions }) => sum + questions.length, 0));
      samples.push({ turns: own, questions: await draftQuestions(own, { most, budget, scratch }, context) });
    }
    const report = getReport(await measure(samples, scratch, context), turns, await readNodeIds(paths.nodesDir));
    const seconds = Math.round((Date.now() - startMs) / 1_000);
    term.print(flags, { ...report, seconds }, () => reportLines(report, term.width));
  } finally {
    stopWatching();
    remove();
  }
}

/** `calls` is 0 without a model. @throws CometError `usage` */
function readFlags({ llm, budget, limit, since }: Flags, defaultCalls: string) {
  if (budget !== undefined && llm !== 'claude') throw new CometError('usage', '--budget goes with --llm claude');
  return {
    limit: parseCount(limit, '--limit'),
    calls: llm === 'claude' ? parseCount(budget ?? defaultCalls, '--budget') : 0,
    since: since === undefined ? 0 : parseSince(since, Date.now()),
  };
}

async function draftQuestions(
  turns: readonly PastTurn[],
  { most, budget, scratch }: { readonly most: number; readonly budget: { calls: number }; readonly scratch: string },
  { env, paths, config, term }: Context,
): Promise<readonly Question[]> {
  const own = chooseQuestions(makeQuestions(turns), turns, most);
  if (budget.calls === 0 || most === 0) return own;
  const settings = await config();
  const llm = settings.llm === 'openai' ? 'openai' : 'claude';
  const asked = llm === 'openai' ? settings.openai.baseUrl : 'claude -p';
  term.say(`asking ${asked} for questions, at most ${budget.calls} calls`);
  const model = await openLanguageModel({
    env,
    config: { ...settings, llm },
    paths: homePaths(scratch),
    redactor: createRedactor({ markKey: randomBytes(32) }),
    usage: createUsageCounter(Date.now),
    claudeEnvironment: await getClaudeEnvironment(env, paths),
    log: silentLog,
  });
  if (model === null) return own;
  const fence = (): string => randomBytes(8).toString('hex');
  try {
    const { signal } = new AbortController();
    return [...(await askForQuestions(turns, model, { budget, limit: most, fence, signal })), ...own].slice(0, most);
  } finally {
    await model.close();
  }
}

/** Without models, endpoints and consolidation: the rules write, and nothing leaves the machine. */
async function localConfig(config: Context['config']): Promise<Config> {
  const own = await config();
  return {
    ...own,
    llm: 'local',
    embedder: own.embedder === 'endpoint' ? 'static' : own.embedder,
    rerank: { ...own.rerank, mode: 'off' },
    compaction: { ...own.compaction, idleMs: 0 },
    dream: { ...own.dream, idleMinutes: 0 },
    recall: { ...own.recall, scope: 'project' },
  };
}

async function measure(
  samples: readonly Sample[],
  scratch: string,
  { env, config: getConfig, term }: Context,
): Promise<Measured[]> {
  const config = await localConfig(getConfig);
  const usage = createUsageCounter(Date.now);
  const store = { load: async () => null, save: async () => {} };
  const memory = await openMemory({
    env: { ...env },
    config,
    paths: homePaths(scratch),
    redactor: createRedactor({ markKey: randomBytes(32) }),
    budget: await openBudget({ rule: config.models, store, clock: systemClock, log: silentLog }),
    usage,
    claudeEnvironment: { env: {}, bundleFile: '', userCa: '', userProxy: {} },
    log: silentLog,
  });
  const replayed = {
    capture: memory.capture.captureTurns,
    recall: memory.recall.recall,
    inject: (hits: readonly RecallHit[]) => injected(hits, config.inject.retrievalTokens),
    async settle() {
      if (await memory.maintenance.flush(SETTLE_MS)) return;
      throw new CometError('model_timeout', 'memory did not come to rest; try a smaller --project or --since');
    },
  };
  const total = samples.reduce((sum, { questions }) => sum + Math.max(0, ...questions.map(({ before }) => before)), 0);
  const startMs = Date.now();
  const outcomes: Measured[] = [];
  let done = 0;
  try {
    for (const { turns, questions } of samples) {
      const onProgress = (turnCount: number): void =>
        term.progress(progressLine({ done: done + turnCount, total, turns: done + turnCount }, Date.now() - startMs));
      const own = await askQuestions(turns, questions, replayed, onProgress);
      outcomes.push(...own.map((outcome) => ({ turns, outcome })));
      done += Math.max(0, ...questions.map(({ before }) => before));
    }
  } finally {
    await memory.maintenance.close();
  }
  return outcomes;
}

/** What the proxy would put beside the prompt. */
function injected(hits: readonly RecallHit[], budgetTokens: number): string {
  const lines = hits.map(({ line }) => ({ ...line, clean: isCleanOrigin(line.origin) }));
  const channel = { mode: 'auto', takesSystemMessages: true, fence: '', anchor: '' } as const;
  const blocks = renderRetrieval(lines, { ...channel, budgetTokens });
  return blocks.map(({ text }) => text).join('\n');
}

type Report = ReturnType<typeof getReport>;

function getReport(samples: readonly Measured[], turns: readonly PastTurn[], nodeIds: ReadonlyMap<string, string>) {
  const outcomes = samples.map(({ outcome }) => outcome);
  const byId = new Map(turns.map((each) => [each.turn.turnId, each]));
  /** `node_id` is null where the turn has no memory. */
  const getPlace = ({ turn }: PastTurn) => ({
    node_id: nodeIds.get(turn.turnId) ?? null,
    session_id: turn.sessionId,
    date: new Date(turn.atMs).toISOString().slice(0, 10),
  });
  const foundBy = ({ first, firstTurn }: Answer) => {
    const turn = byId.get(firstTurn);
    return turn === undefined ? null : { ...getPlace(turn), text: oneLine(first) };
  };
  const misses = samples
    .filter(({ outcome: { recall } }) => recall.rank === 0 || !recall.holds)
    .map(({ turns: own, outcome: { question, recall, bm25 } }) => ({
      question: oneLine(question.text),
      kind: question.kind,
      answer: oneLine(question.answer),
      at: question.right.flatMap((place) => (own[place] === undefined ? [] : [getPlace(own[place])])),
      right_in_5: recall.rank > 0,
      bm25_right_in_5: bm25.rank > 0,
      found: foundBy(recall),
    }));
  const byKind = grouped(outcomes, ({ question }) => question.kind);
  const weight = ({ right_in_5: isRight, bm25_right_in_5: isEasy }: (typeof misses)[number]): number =>
    (isRight ? 0 : 2) + Number(isEasy);
  return {
    turns: turns.length,
    sessions: new Set(turns.map(({ turn }) => turn.sessionId)).size,
    projects: new Set(turns.map(({ project }) => project)).size,
    ...getScores(outcomes),
    by_kind: Object.fromEntries([...byKind].map(([kind, own]) => [kind, getScores(own)])),
    misses: misses.sort((one, other) => weight(other) - weight(one)),
  };
}

function getScores(outcomes: readonly Outcome[]) {
  const counted = (name: 'recall' | 'bm25') => ({
    right_in_5: outcomes.filter((each) => each[name].rank > 0).length,
    answered: outcomes.filter((each) => each[name].holds).length,
    silent: outcomes.filter((each) => each[name].firstTurn === '').length,
  });
  return { questions: outcomes.length, recall: counted('recall'), bm25: counted('bm25') };
}

function reportLines(report: Report, width: number): string[] {
  const { turns, sessions, projects, questions, misses } = report;
  const summary = `turns ${count(turns)}, sessions ${count(sessions)}, projects ${count(projects)}`;
  if (questions === 0) return [`${summary}: no question could be made from them; try --llm claude`];
  const rows = [...Object.entries(report.by_kind), ['all', report] as const];
  const column = (title: string, of: (row: Pick<Report, 'questions' | 'recall' | 'bm25'>) => number) => ({
    title,
    right: true,
    cell: ([, row]: (typeof rows)[number]) => count(of(row)),
  });
  const lines = table(rows, width, [
    { title: '', cell: ([kind]) => kind },
    column('questions', (row) => row.questions),
    column(`right turn in ${SHOWN}`, (row) => row.recall.right_in_5),
    column('BM25', (row) => row.bm25.right_in_5),
    column('answer in the prompt', (row) => row.recall.answered),
    column('BM25', (row) => row.bm25.answered),
    column('nothing recalled', (row) => row.recall.silent),
  ]);
  const worst = misses.slice(0, MISSES).flatMap(({ question, kind, answer, at, found }) => {
    const where = at.map((place) => `${place.node_id ?? `session ${place.session_id}`} of ${place.date}`).join(', ');
    const instead = found === null ? 'nothing' : `${found.node_id ?? found.session_id} of ${found.date}: ${found.text}`;
    return ['', `${question} (${kind})`, `  answer  “${answer}” in ${where}`, `  found   ${instead}`];
  });
  return [summary, '', ...lines, ...worst.map((line) => truncate(line, Math.min(width, 240)))];
}
