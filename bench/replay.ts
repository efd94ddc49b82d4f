/**
 * What real sessions cost with comet-cc: each request of a transcript is played at its time, untouched and through the
 * product's rewriter, ledger and memory (rules write it), and both are billed by the rules of the mock API. Transcripts
 * keep no thinking, no system prompt and no tool definitions: 48 KB stand for those, as `claude` sends. The corpus is not
 * part of the project.
 *
 *   npm run bench:replay -- [--data DIR | --projects DIR] [--models A,B] [--ttl 5m,1h] [--every N]
 *                           [--set trim.keepTurns=1]... [--json]
 *
 * DIR holds `real/cli`, or is the `projects` folder of Claude Code; `../shared/data` beside the checkout unless told, and
 * where it is missing nothing is measured. Every Nth session is played (1: all), the oldest first, in one memory.
 */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Config } from '../common/config.ts';
import { createLocalModel } from '../memory/compaction/rules-model.ts';
import { createStaticEmbedder } from '../test/helpers/static-embedder.ts';
import { type RealTurn, readProjects, withCorpus } from './real/corpus.ts';
import { openPlayer } from './real/play.ts';

const TOOL_BYTES = 48_000;
/** Sessions by their number of requests. */
const LENGTHS = [20, 60, 150, Number.POSITIVE_INFINITY];

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: path.resolve(import.meta.dirname, '../../../shared/data') },
    projects: { type: 'string' },
    models: { type: 'string', default: 'claude-opus-4-8,claude-opus-5-5' },
    ttl: { type: 'string', default: '5m,1h' },
    every: { type: 'string', default: '1' },
    set: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
  },
});

interface Session {
  readonly session_id: string;
  readonly requests: number;
  /** Of the product's requests. */
  readonly refused: number;
  /** In tokens of uncached input. */
  readonly direct: number;
  readonly sent: number;
  /** Tokens of the largest request. */
  readonly peak: { readonly direct: number; readonly sent: number };
}

const config = configOf(values.set);
if (values.projects === undefined) await withCorpus(values.data, ({ turns }) => runAll(turns));
else await runAll(await readProjects(values.projects));

async function runAll(turns: readonly RealTurn[]): Promise<void> {
  const reports = [];
  for (const model of values.models.split(',')) {
    for (const ttl of values.ttl.split(',').map(ttlOf)) {
      const { sessions, ended } = await run(turns, model, ttl);
      const report = { model, ttl, ...reportOf(sessions), ended };
      reports.push({ ...report, sessions });
      if (!values.json) print(report);
    }
  }
  if (values.json) process.stdout.write(`${JSON.stringify(reports, null, 2)}\n`);
}

async function run(turns: readonly RealTurn[], model: string, ttl: '5m' | '1h') {
  const started = new Map(turns.filter(({ at }) => at === 0).map(({ sessionId, startMs }) => [sessionId, startMs]));
  const ids = [...started].sort(([, a], [, b]) => a - b).map(([id]) => id);
  const embedder = createStaticEmbedder();
  const local = createLocalModel({ embedder });
  const player = await openPlayer({ config, model, ttl, embedder, memoryModel: local, local, toolBytes: TOOL_BYTES });
  const sessions: Session[] = [];
  for (const id of ids.filter((_, at) => at % Number(values.every) === 0)) {
    const sum = { requests: 0, refused: 0, direct: 0, sent: 0, peak: { direct: 0, sent: 0 } };
    await player.play(
      turns.filter(({ sessionId }) => sessionId === id),
      ({ direct, sent, isRefused }) => {
        sum.requests += 1;
        sum.refused += isRefused ? 1 : 0;
        sum.direct += direct.cost;
        sum.sent += sent.cost;
        sum.peak.direct = Math.max(sum.peak.direct, sizeOf(direct.usage));
        sum.peak.sent = Math.max(sum.peak.sent, sizeOf(sent.usage));
      },
    );
    if (sum.requests > 0) sessions.push({ session_id: id, ...sum });
  }
  return { sessions, ended: player.ended() };
}

function reportOf(sessions: readonly Session[]) {
  const groups = LENGTHS.map((most, at) => {
    const least = LENGTHS[at - 1] ?? 0;
    const own = sessions.filter(({ requests }) => requests > least && requests <= most);
    const name = Number.isFinite(most) ? `${least + 1} to ${most}` : `over ${least}`;
    return { name, ...summaryOf(own) };
  });
  return { groups, all: summaryOf(sessions) };
}

function summaryOf(sessions: readonly Session[]) {
  const sum = (value: (session: Session) => number): number =>
    sessions.reduce((total, session) => total + value(session), 0);
  const ratios = sessions.map(({ sent, direct }) => sent / direct).sort((a, b) => a - b);
  const at = (share: number): number => ratios[Math.min(ratios.length - 1, Math.floor(ratios.length * share))] ?? 0;
  return {
    sessions: sessions.length,
    requests: sum(({ requests }) => requests),
    refused: sum(({ refused }) => refused),
    /** Cost of all their requests together, direct 1. */
    cost:
      sum(({ sent }) => sent) /
      Math.max(
        1,
        sum(({ direct }) => direct),
      ),
    median: at(0.5),
    worst: ratios.at(-1) ?? 0,
    over_direct: ratios.filter((ratio) => ratio > 1).length,
    over_two_percent: ratios.filter((ratio) => ratio > 1.02).length,
    peak_over_150k: {
      direct: sessions.filter(({ peak }) => peak.direct > 150_000).length,
      sent: sessions.filter(({ peak }) => peak.sent > 150_000).length,
    },
  };
}

type Report = ReturnType<typeof reportOf> & { readonly model: string; readonly ttl: string; readonly ended: number };

function print({ model, ttl, groups, all, ended }: Report): void {
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(20), ...cells.map((cell) => cell.padStart(10))].join('');
  const heads = ['sessions', 'requests', 'refused', 'cost', 'median', 'worst', 'over 1', 'over 1.02'];
  const cellsOf = (each: ReturnType<typeof summaryOf>): string[] => [
    ...[each.sessions, each.requests, each.refused].map(String),
    ...[each.cost, each.median, each.worst].map((ratio) => ratio.toFixed(3)),
    ...[each.over_direct, each.over_two_percent].map(String),
  ];
  const lines = [
    `${model}, prompt cache of ${ttl}; cost of direct`,
    row('requests a session', heads),
    ...groups.map(({ name, ...group }) => row(name, cellsOf(group))),
    row('all', cellsOf(all)),
    `contexts over 150,000 tokens: ${all.peak_over_150k.direct} direct, ${all.peak_over_150k.sent} sent; trimming ended in ${ended} conversations`,
  ];
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function sizeOf(usage: object): number {
  return Object.values(usage).reduce((sum: number, each: number) => sum + each, 0);
}

function ttlOf(text: string): '5m' | '1h' {
  if (text === '5m' || text === '1h') return text;
  throw new Error(`expected 5m or 1h, not ${text}`);
}

/** Of settings as `trim.keepTurns=1`. */
function configOf(settings: readonly string[]): Config {
  const input: Record<string, Record<string, unknown>> = { llm: 'local' as never };
  for (const setting of settings) {
    const [, group = '', key = '', value = ''] = /^(\w+)\.(\w+)=(.*)$/.exec(setting) ?? [];
    if (group === '') throw new Error(`expected group.key=value, not ${setting}`);
    input[group] = { ...input[group], [key]: JSON.parse(value) as unknown };
  }
  return Config.parse(input);
}
