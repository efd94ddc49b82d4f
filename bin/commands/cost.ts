import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { amount, dollars, formatCount, oneLine } from '../../common/text.ts';
import { type Costs, savedLine } from '../../engine/api/index.ts';
import type { SimulatedSavings } from '../../engine/transcript/index.ts';
import { claudeDirectory } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { count, parseSince } from '../terminal/format.ts';
import { table } from '../terminal/table.ts';

type Flags = CommandFlags<'simulate', 'projects' | 'since'>;

export function registerSavings(program: Command, context: Context): void {
  const description = 'show what memory saved, or would have saved on your past sessions';
  const notes =
    'The simulation reads transcripts only. It needs no daemon and no model, sends nothing and writes nothing.';
  const playing = "play Claude Code's transcripts against the prices of the prompt cache, with and without memory";
  addCommand(program, 'savings', description, 'comet-cc savings\ncomet-cc savings --simulate --since 2w', notes)
    .option('--simulate', playing)
    .option('--projects <dir>', 'with --simulate: folder of transcripts (default: ~/.claude/projects)')
    .option('--since <d>', 'with --simulate: only requests since 30m, 12h, 7d, 2w or a date')
    .jsonAction('document', async (flags: Flags) => {
      if (flags.simulate) return await simulate(flags, context);
      for (const name of ['projects', 'since'] as const) {
        if (flags[name] !== undefined) throw new CometError('usage', `--${name} goes with --simulate`);
      }
      const { savings, by_day } = await context.engine.call('status', {});
      context.term.print(flags, { kind: 'measured', savings, by_day }, () => measuredLines(savings, by_day));
    });
}

function measuredLines({ week, total }: Costs['savings'], days: Costs['by_day']): string[] {
  if (total.requests === 0)
    return ['no requests yet; comet-cc savings --simulate estimates it from your past sessions'];
  const rows = table(days, Number.POSITIVE_INFINITY, [
    { title: 'DAY', cell: ({ day }) => day },
    { title: 'TOKENS', cell: ({ original }) => amount(original), right: true },
    { title: 'SENT', cell: ({ sent }) => amount(sent), right: true },
    { title: 'OWN CALLS', cell: ({ own }) => amount(own), right: true },
  ]);
  return [...rows, '', savedLine(week, 'this week'), savedLine(total, 'in all')];
}

async function simulate(flags: Flags, { env, term, config }: Context): Promise<void> {
  const { simulateSavings } = await import('../../engine/transcript/index.ts');
  const projects = path.resolve(flags.projects ?? path.join(claudeDirectory(env), 'projects'));
  const report = await simulateSavings({
    projects,
    sinceMs: flags.since === undefined ? 0 : parseSince(flags.since, Date.now()),
    config: await config(),
    onProgress: ({ done, total, requests }) => {
      if (!flags.json) term.progress(`${Math.floor((100 * done) / total)} % read, ${count(requests)} requests`);
    },
  });
  for (const { file, message } of report.problems) term.say(`${oneLine(file)}: ${oneLine(message)}`);
  if (report.all.sessions === 0) {
    const since = flags.since === undefined ? '' : ` since ${oneLine(flags.since)}`;
    const problem = `no conversation in ${oneLine(projects)}${since}`;
    throw new CometError('not_found', `${problem}; name Claude Code's folder with --projects`);
  }
  term.print(flags, report, () => simulatedLines(report));
}

type Row = SimulatedSavings['all'];

export function simulatedLines({ all, by_length, subagents, assumptions, ...found }: SimulatedSavings): string[] {
  const rows = [...by_length.filter(({ sessions }) => sessions > 0), { length: 'all', ...all }];
  const column = (title: string, cell: (row: Row) => string) => ({ title, cell, right: true });
  const { models, cache, added_tokens: added } = assumptions;
  const prices = models.map(({ model, usd_per_million }) => `${oneLine(model)} $${usd_per_million}`).join(', ');
  const others = `${formatCount(subagents.requests, 'request')} of subagents`;
  const lifetimes = cache.recorded.length === 0 ? cache.otherwise : `${cache.recorded.join(' or ')} as recorded`;
  return [
    `${formatCount(all.sessions, 'session')}, ${found.from} to ${found.to}; ${formatCount(found.compactions, 'compaction')}, ${formatCount(found.rewinds, 'rewind')}`,
    '',
    ...table(rows, Number.POSITIVE_INFINITY, [
      { title: 'REQUESTS A SESSION', cell: ({ length }) => length },
      column('SESSIONS', ({ sessions }) => count(sessions)),
      column('REQUESTS', ({ requests }) => count(requests)),
      column('TOKENS', ({ original }) => amount(original)),
      column('WITH MEMORY', ({ sent }) => amount(sent)),
      column('COST', ({ cost }) => ratio(cost)),
      column('MEDIAN', ({ median }) => ratio(median)),
      column('WORST', ({ worst }) => ratio(worst)),
    ]),
    '',
    savedSentence(all),
    `${formatCount(all.over_two_percent, 'session')} of ${count(all.sessions)} would have cost over 2 % more`,
    ...(subagents.requests === 0 ? [] : [`${others}, which are never changed, are not in these figures`]),
    '',
    `assumed: prompts only, input prices for a million tokens (${prices}), prompt cache of ${lifetimes}`,
    `assumed: memory adds ${added.start} tokens to a session, ${added.recall} to ${100 * added.recallShare} % of prompts, ${added.line + added.quote} for each turn left out`,
    "not counted: thinking, and memory's own model calls (COMET_CC_LLM=local makes none)",
  ];
}

function savedSentence({ direct_usd: direct, sent_usd: sent }: Row): string {
  const percent = direct === 0 ? 0 : Math.round((100 * (direct - sent)) / direct);
  const change = percent < 0 ? `${-percent} % more` : `${percent} % less`;
  return `prompts cost ${dollars(direct)} at API prices; with memory ${dollars(sent)}, ${change}`;
}

/** Of direct. */
const ratio = (value: number | null): string => (value === null ? '' : value.toFixed(2));
