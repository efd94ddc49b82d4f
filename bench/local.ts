/**
 * How good memory is that no model wrote.
 *
 *   npm run bench:local -- [--data FILE] [--json]
 *
 * Summaries: invented days of work with facts planted among small talk (`bench/local/planted.ts`; seeds 1 to 3 were
 * looked at while the adapter was made, 4 to 9 were not). A fact is kept where the summary of its node holds its
 * values. Beside it what the first characters of the same turns keep, as many as the summary may have.
 *
 * Topics: where a turn is read as the beginning of another topic, on those days, on the demo's story, and with
 * `--data` on dialogues in LoCoMo's shape, where each session begins one; no time of day is given. Beside it a cut
 * after every so many turns, the number that is best for it.
 */

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createLocalModel } from '../memory/compaction/rules-model.ts';
import { summarizeByRules } from '../memory/compaction/rules-summary.ts';
import { createStaticEmbedder } from '../memory/embeddings/static-embedder.ts';
import type { TurnText } from '../memory/model/turn.ts';
import { dialogues, type Labelled, storyConversations } from './labeled.ts';
import { type PlantedConversation, plantedConversation } from './local/planted.ts';

const SHOWN = 5;
const LEAST_BEFORE = 2;
/** Of a summary. */
const CHARS = 600;
const BATCH = 10;

interface Kept {
  readonly name: string;
  readonly summary_chars: number;
  readonly facts: number;
  readonly kept: number;
  readonly lead: number;
}

interface Found {
  readonly name: string;
  readonly turns: number;
  readonly topics: number;
  readonly gate: Score;
  readonly fixed: Score & { readonly every: number };
}

interface Score {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

const { values } = parseArgs({ options: { data: { type: 'string' }, json: { type: 'boolean', default: false } } });
const local = createLocalModel({ embedder: createStaticEmbedder() });
const calm = new AbortController().signal;
const sets = { 'seeds 1-3': [1, 2, 3], 'seeds 4-9, held out': [4, 5, 6, 7, 8, 9] };
const days = Object.entries(sets).map(([name, seeds]) => ({ name, days: seeds.map(plantedConversation) }));
const summaries = days.map(({ name, days: own }) => kept(name, own, CHARS));
const topics: Found[] = [];
for (const { name, days: own } of days)
  topics.push(
    await found(
      `days, ${name}`,
      own.map(({ turns }) => turns),
    ),
  );
topics.push(await found('demo story', storyConversations()));
if (values.data !== undefined) topics.push(await found('dialogues', dialogues(readFileSync(values.data, 'utf8'))));
if (values.json) process.stdout.write(`${JSON.stringify({ summaries, topics }, null, 2)}\n`);
else for (const line of [...summaries.map(keptLine), ...topics.map(foundLine)]) process.stdout.write(`${line}\n`);

function kept(name: string, conversations: readonly PlantedConversation[], chars: number): Kept {
  const sum = { facts: 0, kept: 0, lead: 0 };
  for (const { turns, facts } of conversations) {
    for (let at = 0; at < turns.length; at += BATCH) {
      const batch = turns.slice(at, at + BATCH).map(({ turn }) => turn);
      const { nodes } = summarizeByRules({ turns: batch, knownTags: [], brief: '' });
      for (const node of nodes) {
        const own = batch.filter(({ turnId }) => node.turns.includes(turnId));
        const lead = own.map(saidIn).join(' ').slice(0, chars);
        for (const fact of facts.filter(({ turn }) => node.turns.includes(turn))) {
          sum.facts += 1;
          if (fact.values.every((value) => node.summary.includes(value))) sum.kept += 1;
          if (fact.values.every((value) => lead.includes(value))) sum.lead += 1;
        }
      }
    }
  }
  const [share, lead] = [sum.kept, sum.lead].map((count) => rounded(count / Math.max(1, sum.facts)));
  return { name, summary_chars: chars, facts: sum.facts, kept: share ?? 0, lead: lead ?? 0 };
}

function saidIn(turn: TurnText): string {
  return [turn.user, ...turn.parts.filter(({ kind }) => kind === 'assistant').map(({ text }) => text)].join(' ');
}

async function found(name: string, conversations: readonly (readonly Labelled[])[]): Promise<Found> {
  const gate: boolean[][] = [];
  for (const turns of conversations) {
    const read = turns.map(async ({ turn }, at) => {
      if (at < LEAST_BEFORE) return false;
      const buffer = turns.slice(Math.max(0, at - SHOWN), at).map((before) => before.turn);
      return (await local.detectTopicShift({ buffer, turn }, calm)).logic_flow === 'BROKEN';
    });
    gate.push(await Promise.all(read));
  }
  const everies = Array.from({ length: 28 }, (_, at) => at + 3);
  const fixed = everies.map((every) => ({
    every,
    ...scored(
      conversations,
      conversations.map((turns) => turns.map((_, at) => at % every === 0)),
    ),
  }));
  const best = fixed.reduce((top, each) => (each.f1 > top.f1 ? each : top));
  const judged = conversations.flatMap((turns) => turns.slice(LEAST_BEFORE));
  const began = judged.filter(({ begins }) => begins).length;
  return { name, turns: judged.length, topics: began, gate: scored(conversations, gate), fixed: best };
}

function scored(truth: readonly (readonly Labelled[])[], read: readonly (readonly boolean[])[]): Score {
  const sum = { right: 0, invented: 0, missed: 0 };
  for (const [nth, turns] of truth.entries()) {
    for (const [at, { begins }] of turns.entries()) {
      if (at < LEAST_BEFORE) continue;
      const isBroken = read[nth]?.[at] === true;
      if (isBroken && begins) sum.right += 1;
      else if (isBroken) sum.invented += 1;
      else if (begins) sum.missed += 1;
    }
  }
  const precision = sum.right / Math.max(1, sum.right + sum.invented);
  const recall = sum.right / Math.max(1, sum.right + sum.missed);
  const f1 = (2 * precision * recall) / Math.max(Number.EPSILON, precision + recall);
  return { precision: rounded(precision), recall: rounded(recall), f1: rounded(f1) };
}

function rounded(share: number): number {
  return Number(share.toFixed(3));
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function keptLine({ name, summary_chars, facts, kept: share, lead }: Kept): string {
  return `summaries of ${summary_chars} characters, ${name}: ${percent(share)} of ${facts} facts kept; the first ${summary_chars} characters keep ${percent(lead)}`;
}

function foundLine({ name, turns, topics: count, gate, fixed }: Found): string {
  const score = ({ precision, recall, f1 }: Score): string =>
    `precision ${percent(precision)}, recall ${percent(recall)}, F1 ${f1.toFixed(3)}`;
  return `topics, ${name} (${count} beginnings in ${turns} turns): ${score(gate)}; every ${fixed.every} turns: ${score(fixed)}`;
}
