/**
 * What real sessions cost with comet-cc. Transcripts are turned into the requests that Claude Code sent, with rewinds,
 * compactions and subagents, and each is played at its time, untouched and through the product's rewriter, ledger and
 * memory (rules write it); both are billed by the rules of the mock API. Transcripts have no tool definitions and no
 * system prompt: as many tokens as the API counted in the first request stand for them. Thinking is left out. The corpus
 * is not part of the project.
 *
 *   npm run bench:replay -- [DIR] [--data DIR | --projects DIR] [--models A,B] [--ttl 5m,1h] [--every N]
 *                           [--set trim.keepTurns=1]... [--at-once N] [--resume | --join] [--forks] [--restart-every N]
 *                           [--lancedb] [--kill N] [--twice] [--simulate] [--json]
 *
 * DIR, or `--projects`, is a folder of transcripts, as `~/.claude/projects`; without one `real` in `--data`, by default
 * `../shared/data` beside the checkout. Every Nth session is played (1: all), the oldest first, in one memory.
 *
 *   --at-once N        N sessions start at the same time, and their requests alternate
 *   --resume           the second half of each session is sent a day later
 *   --join             the first half of each session did not go through the product; the second is sent a day later
 *   --forks            each session is forked in its middle: the fork sends the next requests as well
 *   --restart-every N  after every Nth request the engine starts again with what its stores hold, before the answer
 *   --lancedb          searches the product's index instead of one in memory, for realistic latency
 *   --kill N           instead, real processes: the built daemon, whose engine is killed N times with SIGKILL, cuts as
 *                      early as it may; two sessions at once and their forks, as fast as they are answered. 0 measures the
 *                      engine's memory
 *   --twice            plays the same sessions again afterwards, under other ids
 *   --simulate         only the simulation and the bound; nothing is played
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import { cutRule } from '../engine/cut-config.ts';
import type { PastSession } from '../engine/transcript/cost.ts';
import { createLocalModel } from '../memory/compaction/rules-model.ts';
import { createStaticEmbedder } from '../memory/embeddings/static-embedder.ts';
import { openLanceIndex } from '../memory/search/lancedb/search-index.ts';
import { inputEquivalents } from '../proxy/ledger/cost.ts';
import type { CutRule } from '../proxy/rewrite/index.ts';
import {
  type PastConversation,
  type SimulatedRequest,
  simulateConversation,
  sumRequests,
} from '../proxy/transcript/index.ts';
import { DATA } from './paths.ts';
import { measureAdded } from './real/added.ts';
import { playWithKills } from './real/kill.ts';
import { findLeastCost } from './real/oracle.ts';
import { isPrompt, openPlayer, type Played } from './real/play.ts';
import { countRestored, type Restored } from './real/restored.ts';
import { again, atOnce, forked, joinedNextDay, joinedTranscripts, resumedNextDay } from './real/schedule.ts';
import { withSessions } from './real/sessions.ts';

/** Sessions by their number of requests. */
const LENGTHS = [20, 60, 150, Number.POSITIVE_INFINITY];
/** Rules that the simulation compares. */
const WHAT_IF: Readonly<Record<string, Partial<CutRule>>> = {
  'as configured': {},
  'keepTurns 0, keepTokens 0': { keepTurns: 0, keepTokens: 0 },
  'keepTurns 3, keepTokens 6000': { keepTurns: 3, keepTokens: 6_000 },
  'keepRounds 4': { keepRounds: 4 },
  'margin 0.5': { margin: 0.5 },
  'margin 1': { margin: 1 },
  'margin 2': { margin: 2 },
  'lossShare 0.01': { lossShare: 0.01 },
  'lossShare 0.03': { lossShare: 0.03 },
  'lossShare 0.05': { lossShare: 0.05 },
  'lossShare 1': { lossShare: 1 },
  'triggerTokens 0': { triggerTokens: 0 },
  'triggerTokens 20000': { triggerTokens: 20_000 },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string', default: DATA },
    projects: { type: 'string' },
    models: { type: 'string', default: 'claude-opus-4-8,claude-opus-5-5' },
    ttl: { type: 'string', default: '5m,1h' },
    every: { type: 'string', default: '1' },
    set: { type: 'string', multiple: true, default: [] },
    'at-once': { type: 'string', default: '1' },
    resume: { type: 'boolean', default: false },
    join: { type: 'boolean', default: false },
    forks: { type: 'boolean', default: false },
    'restart-every': { type: 'string' },
    lancedb: { type: 'boolean', default: false },
    kill: { type: 'string' },
    twice: { type: 'boolean', default: false },
    simulate: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

interface Session {
  readonly session_id: string;
  readonly requests: number;
  readonly rewinds: number;
  readonly compactions: number;
  /** Of the product's requests. */
  readonly refused: number;
  /** In tokens of uncached input. */
  readonly direct: number;
  readonly sent: number;
  /** The furthest that it was behind direct after any of its requests, as a share of direct. */
  readonly behind: number;
  /** Tokens of the largest request. */
  readonly peak: { readonly direct: number; readonly sent: number };
  /** Null where Claude Code did not compact. */
  readonly restored: Restored | null;
}

interface Run {
  readonly sessions: readonly Session[];
  readonly refusals: readonly string[];
  readonly unplayable: number;
  /** Requests of subagents, and those that were changed. */
  readonly subagents: { readonly requests: number; readonly changed: number };
  /** `early`: prompts that came before memory was made of the answer before. */
  readonly latency: Readonly<Record<'prompt' | 'early' | 'round', readonly number[]>>;
  /** Of the slowest tenth of prompts: mean milliseconds of each step. */
  readonly slowest: Readonly<Record<string, number>>;
  readonly added: ReturnType<typeof measureAdded>;
  readonly ended: number;
}

const config = getConfig(values.set);
await withSessions({ data: values.data, projects: positionals[0] ?? values.projects }, async (all) => {
  const some = all.filter((_, at) => at % Number(values.every) === 0);
  const sessions = values.twice ? again(some) : some;
  if (values.kill !== undefined) return killAndPrint(sessions, Number(values.kill));
  const reports = [];
  for (const model of values.models.split(',')) {
    for (const ttl of values.ttl.split(',').map(getTtl)) {
      const run = values.simulate ? null : await play(sessions, model, ttl);
      const report = { model, ttl, ...(run === null ? {} : getReport(run)), what_if: simulate(sessions, model, ttl) };
      reports.push({ ...report, sessions: run?.sessions ?? [] });
      if (!values.json) print(report);
    }
  }
  const [first] = reports;
  const { all: { cost = null, refused = 0 } = {}, sessions: list = [] } = first ?? {};
  if (values.json) process.stdout.write(`${JSON.stringify({ cost, refused, sessions: list, reports }, null, 2)}\n`);
});

async function killAndPrint(past: readonly PastSession[], kills: number): Promise<void> {
  const [model = '', ttl = ''] = [values.models.split(',')[0], values.ttl.split(',')[0]];
  const killed = await playWithKills(atOnce(kills > 0 ? past.map(forked) : past, 2), {
    model,
    ttl: getTtl(ttl),
    kills,
  });
  const { refusals, recoveredMs, ...counts } = killed;
  const recovered_ms = percentiles(recoveredMs);
  const report = { model, ttl, ...counts, refused: refusals.length, refusals: [...new Set(refusals)], recovered_ms };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
}

async function play(past: readonly PastSession[], model: string, ttl: '5m' | '1h'): Promise<Run> {
  const embedder = createStaticEmbedder();
  const local = createLocalModel({ embedder });
  const restart = values['restart-every'] === undefined ? {} : { restartEvery: Number(values['restart-every']) };
  const dir = await mkdtemp(path.join(tmpdir(), 'comet-replay-'));
  const stored = values.lancedb ? await openLanceIndex({ dir, embedder, now: Date.now, report: console.error }) : null;
  const player = await openPlayer({
    ...{ config, model, ttl, embedder, memoryModel: local, local, ...restart, ...stored },
    ...(values.join ? { transcripts: joinedTranscripts(past.map(changed)) } : {}),
  });
  const sessions: Session[] = [];
  const prompts: Played[] = [];
  const refusals: string[] = [];
  const latency = { prompt: [] as number[], early: [] as number[], round: [] as number[] };
  const subagents = { requests: 0, changed: 0 };
  for (const group of atOnce(past.map(changed), Number(values['at-once']))) {
    const sums = new Map(group.map(({ sessionId }) => [sessionId, newSum()]));
    await player.play(group, (played) => {
      if (played.refusal !== null) refusals.push(played.refusal);
      if (played.conversation.agentId !== '') {
        subagents.requests += 1;
        subagents.changed += played.direct.cost === played.sent.cost ? 0 : 1;
        return;
      }
      addTo(sums.get(played.conversation.sessionId) as Sum, played);
      if (played.request.kind !== 'main') return;
      if (isPrompt(played)) prompts.push(played);
      latency[!isPrompt(played) ? 'round' : played.rested ? 'prompt' : 'early'].push(played.ms);
    });
    for (const conversation of group.filter(({ agentId }) => agentId === '')) {
      const { sessionId: session_id, rewinds, compactions } = conversation;
      const sum = sums.get(session_id) as Sum;
      if (sum.requests === 0) continue;
      const restored = compactions === 0 ? null : await countRestored(conversation, player.restore);
      sessions.push({ session_id, rewinds, compactions, ...sum, restored });
    }
  }
  const added = measureAdded(player.plans(), prompts.length);
  await stored?.index.close();
  await rm(dir, { recursive: true, force: true });
  const slowest = meanPhases(prompts.toSorted((a, b) => b.ms - a.ms).slice(0, Math.ceil(prompts.length / 10)));
  return {
    slowest,
    sessions,
    refusals,
    unplayable: player.unplayable(),
    subagents,
    latency,
    added,
    ended: player.ended(),
  };
}

/** Mean milliseconds of each step. */
function meanPhases(played: readonly Played[]): Readonly<Record<string, number>> {
  const means: Record<string, number> = {};
  for (const { name, ms } of played.flatMap(({ phases }) => phases)) {
    means[name] = (means[name] ?? 0) + ms / played.length;
  }
  return means;
}

/** As the options ask. */
function changed(session: PastSession): PastSession {
  const resumed = values.resume ? resumedNextDay(session) : values.join ? joinedNextDay(session) : session;
  return values.forks ? forked(resumed) : resumed;
}

function newSum() {
  return { requests: 0, refused: 0, direct: 0, sent: 0, behind: 0, peak: { direct: 0, sent: 0 } };
}
type Sum = ReturnType<typeof newSum>;

function addTo(sum: Sum, { direct, sent, refusal }: Played): void {
  sum.requests += 1;
  sum.refused += refusal === null ? 0 : 1;
  sum.direct += direct.cost;
  sum.sent += sent.cost;
  sum.behind = Math.max(sum.behind, sum.sent / sum.direct - 1);
  sum.peak.direct = Math.max(sum.peak.direct, getSize(direct.usage));
  sum.peak.sent = Math.max(sum.peak.sent, getSize(sent.usage));
}

function getReport({ sessions, latency, refusals, ...rest }: Run) {
  const groups = LENGTHS.map((most, at) => {
    const least = LENGTHS[at - 1] ?? 0;
    const own = sessions.filter(({ requests }) => requests > least && requests <= most);
    const name = Number.isFinite(most) ? `${least + 1} to ${most}` : `over ${least}`;
    return { name, ...getSummary(own) };
  });
  const ratios = sessions.map(({ sent, direct }) => sent / direct).sort((a, b) => a - b);
  const restored = sessions.flatMap((session) => session.restored ?? []);
  const sum = (key: keyof Restored): number => restored.reduce((total, each) => total + each[key], 0);
  return {
    groups,
    all: getSummary(sessions),
    deciles: Array.from({ length: 11 }, (_, tenth) => getShare(ratios, tenth / 10)),
    refusals: [...new Set(refusals.map((text) => text.replace(/^messages[\d.a-z]+: /, '').slice(0, 100)))],
    restore: { sessions: restored.length, messages: sum('messages'), missing: sum('missing') },
    latency_ms: {
      all: percentiles([...latency.prompt, ...latency.early]),
      prompt: percentiles(latency.prompt),
      early: { prompts: latency.early.length, ...percentiles(latency.early) },
      round: percentiles(latency.round),
    },
    ...rest,
  };
}

function getSummary(sessions: readonly Session[]) {
  const sum = (value: (session: Session) => number): number =>
    sessions.reduce((total, session) => total + value(session), 0);
  const ratios = sessions.map(({ sent, direct }) => sent / direct).sort((a, b) => a - b);
  const [direct, sent] = [sum((session) => session.direct), sum((session) => session.sent)];
  return {
    sessions: sessions.length,
    requests: sum(({ requests }) => requests),
    refused: sum(({ refused }) => refused),
    /** Cost of all their requests together, direct 1. */
    cost: sent / Math.max(1, direct),
    median: getShare(ratios, 0.5),
    worst: ratios.at(-1) ?? 0,
    over_direct: ratios.filter((ratio) => ratio > 1).length,
    over_two_percent: ratios.filter((ratio) => ratio > 1.02).length,
    /** After any request of any session. */
    behind: Math.max(0, ...sessions.map(({ behind }) => behind)),
    peak_over_150k: {
      direct: sessions.filter(({ peak }) => peak.direct > 150_000).length,
      sent: sessions.filter(({ peak }) => peak.sent > 150_000).length,
    },
  };
}

/** Costs of other rules by the product's decisions without its memory, and of a planner that knows the future. */
function simulate(past: readonly PastSession[], model: string, ttl: '5m' | '1h') {
  const cut = cutRule(config.trim);
  if (cut === null) return [];
  const own = past.flatMap((session) => session.filter(({ agentId }) => agentId === ''));
  const rule = { cut, plan: config.inject, model, ttl };
  const played = (change: Partial<CutRule>) =>
    own.map((one) => ({ one, requests: simulateConversation(one, { ...rule, cut: { ...cut, ...change } }) }));
  const rows = Object.entries(WHAT_IF).map(([name, change]) => {
    const all = played(change).map(({ one, requests }) => ({
      ...sumRequests(requests),
      ends: turnEnds(one, requests),
    }));
    const ends = all.flatMap((each) => each.ends);
    const sum = (side: 'direct' | 'sent') => all.reduce((total, { [side]: { equivalents } }) => total + equivalents, 0);
    const over = all.filter(({ sent, direct }) => sent.equivalents > 1.02 * direct.equivalents).length;
    const endsOver = ends.filter((ratio) => ratio > 1.02).length;
    return { name, cost: sum('sent') / sum('direct'), over_two_percent: over, ends: ends.length, ends_over: endsOver };
  });
  const direct = played({}).reduce((sum, { requests }) => sum + sumRequests(requests).direct.equivalents, 0);
  const least = own.reduce((sum, one) => sum + findLeastCost(one, rule), 0);
  return [
    ...rows,
    { name: 'knows the future, same keep rules', cost: least / direct, over_two_percent: 0, ends: 0, ends_over: 0 },
  ];
}

/** What a session has cost of direct wherever it might have ended: after each of its turns. */
function turnEnds({ requests: past }: PastConversation, requests: readonly SimulatedRequest[]): number[] {
  let [direct, sent] = [0, 0];
  return requests.flatMap(({ model, ...bills }, at) => {
    direct += inputEquivalents(model, bills.direct);
    sent += inputEquivalents(model, bills.sent);
    const next = past[at + 1];
    return next === undefined || isPrompt({ request: next }) ? [sent / direct] : [];
  });
}

type Report = { readonly model: string; readonly ttl: string; readonly what_if: ReturnType<typeof simulate> } & Partial<
  ReturnType<typeof getReport>
>;

function print({ model, ttl, groups = [], all, what_if, ...rest }: Report): void {
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(20), ...cells.map((cell) => cell.padStart(10))].join('');
  const heads = ['sessions', 'requests', 'refused', 'cost', 'median', 'worst', 'over 1', 'over 1.02'];
  const getCells = (each: ReturnType<typeof getSummary>): string[] => [
    ...[each.sessions, each.requests, each.refused].map(String),
    ...[each.cost, each.median, each.worst].map((ratio) => ratio.toFixed(3)),
    ...[each.over_direct, each.over_two_percent].map(String),
  ];
  const lines = [`${model}, prompt cache of ${ttl}; cost of direct`];
  if (all !== undefined) {
    lines.push(row('requests a session', heads), ...groups.map(({ name, ...group }) => row(name, getCells(group))));
    lines.push(row('all', getCells(all)), ...restLines(all, rest));
  }
  lines.push('', 'simulated: rule, cost of direct, sessions over 1.02, and had each ended after any of its turns');
  for (const { name, cost, over_two_percent, ends, ends_over } of what_if) {
    const over = `${String(over_two_percent).padStart(6)}${ends === 0 ? '' : `${String(ends_over).padStart(8)} of ${ends}`}`;
    lines.push(`${name.padEnd(34)}${cost.toFixed(3).padStart(8)}${over}`);
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function restLines(
  all: ReturnType<typeof getSummary>,
  {
    deciles = [],
    refusals = [],
    restore,
    latency_ms,
    slowest = {},
    subagents,
    added,
    unplayable = 0,
    ended = 0,
  }: Partial<ReturnType<typeof getReport>>,
): string[] {
  const { all: prompts, prompt, early, round } = latency_ms ?? {};
  return [
    `cost by session, deciles: ${deciles.map((ratio) => ratio.toFixed(2)).join(' ')}`,
    `furthest behind direct after any request: ${(100 * all.behind).toFixed(1)} %`,
    `contexts over 150,000 tokens: ${all.peak_over_150k.direct} direct, ${all.peak_over_150k.sent} sent; trimming ended in ${ended} conversations`,
    `refused: ${all.refused}${refusals.map((text) => `; ${text}`).join('')}; left out, refused untouched too: ${unplayable}`,
    `subagents: ${subagents?.requests} requests, ${subagents?.changed} changed`,
    `restore: ${restore?.missing} of ${restore?.messages} messages missing in ${restore?.sessions} compacted sessions`,
    `memory added, mean tokens: ${added?.start.toFixed()} at a start; a recall ${added?.recall.toFixed()}, at ${(100 * (added?.recallShare ?? 0)).toFixed()} % of prompts; a preamble ${added?.cut.tokens.toFixed()}, ${added?.cut.perNode.toFixed()} a node (of rounds ${added?.rounds.tokens.toFixed()} and ${added?.rounds.perNode.toFixed()})`,
    `rewriter, p50 and p95 ms: prompts ${prompts?.p50} and ${prompts?.p95}, tool rounds ${round?.p50} and ${round?.p95}`,
    `of the prompts, ${early?.prompts} came while memory was made of the answer before: ${early?.p50} and ${early?.p95}, the others ${prompt?.p50} and ${prompt?.p95}`,
    `slowest tenth of prompts, mean ms: ${Object.entries(slowest)
      .map(([name, ms]) => `${name} ${ms.toFixed(1)}`)
      .join(', ')}`,
  ];
}

function percentiles(all: readonly number[]) {
  const sorted = [...all].sort((a, b) => a - b);
  return { p50: Number(getShare(sorted, 0.5).toFixed(1)), p95: Number(getShare(sorted, 0.95).toFixed(1)) };
}

function getShare(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function getSize(usage: object): number {
  return Object.values(usage).reduce((sum: number, each: number) => sum + each, 0);
}

function getTtl(text: string): '5m' | '1h' {
  if (text === '5m' || text === '1h') return text;
  throw new Error(`expected 5m or 1h, not ${text}`);
}

/** Of settings as `trim.keepTurns=1`. */
function getConfig(settings: readonly string[]): Config {
  const input: Record<string, Record<string, unknown>> = { llm: 'local' as never };
  for (const setting of settings) {
    const [, group = '', key = '', value = ''] = /^(\w+)\.(\w+)=(.*)$/.exec(setting) ?? [];
    if (group === '') throw new Error(`expected group.key=value, not ${setting}`);
    input[group] = { ...input[group], [key]: JSON.parse(value) as unknown };
  }
  return Config.parse(input);
}
