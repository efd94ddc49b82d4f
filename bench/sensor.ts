/**
 * How many turns the sensor can judge by their words alone, and how often it is right, where topics are known to begin.
 *
 *   npm run bench:sensor -- [--data FILE] [--json]
 *
 * On the demo's story, where each part and each late question begins a topic; with `--data` also on a JSON file of
 * dialogues in LoCoMo's shape (`[{ sessions: [{ turns: [{ text }] }] }]`), where each session begins one: two
 * utterances make a turn. Each turn with at least two before it is read against up to five of them.
 *
 * `needs_model` is the share of turns in doubt; `agreement` that of the clear ones which agree with the topics;
 * `missed` counts beginnings read as going on, `invented` the opposite.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { carrierTurns } from '../bin/demo/story/carrier.ts';
import { exportTurns } from '../bin/demo/story/export.ts';
import { flakyTurns } from '../bin/demo/story/flaky.ts';
import { labelTurns } from '../bin/demo/story/labels.ts';
import { migrationTurns } from '../bin/demo/story/migration.ts';
import { rolloutTurns } from '../bin/demo/story/rollout.ts';
import { isQuestion, STORY, type StoryTurn } from '../bin/demo/story.ts';
import { readFlow, SENSOR_THRESHOLDS } from '../memory/core/sensor-gate.ts';
import type { TurnPart, TurnText } from '../memory/ports.ts';

interface Labelled {
  readonly turn: TurnText;
  readonly begins: boolean;
}

interface Outcome {
  readonly name: string;
  readonly turns: number;
  readonly topics: number;
  readonly needs_model: number;
  readonly agreement: number;
  readonly missed: number;
  readonly invented: number;
}

const LEAST_BEFORE = 2;
const SHOWN = 5;

const Dialogues = z.array(
  z.looseObject({ sessions: z.array(z.looseObject({ turns: z.array(z.looseObject({ text: z.string() })) })) }),
);

const { values } = parseArgs({ options: { data: { type: 'string' }, json: { type: 'boolean', default: false } } });
const outcomes = [measure('demo story', storyConversations())];
if (values.data !== undefined) outcomes.push(measure('dialogues', dialoguesOf(values.data)));
if (values.json) process.stdout.write(`${JSON.stringify({ thresholds: SENSOR_THRESHOLDS, outcomes }, null, 2)}\n`);
else for (const outcome of outcomes) process.stdout.write(`${said(outcome)}\n`);

function measure(name: string, conversations: readonly (readonly Labelled[])[]): Outcome {
  const sum = { turns: 0, topics: 0, doubts: 0, agreed: 0, missed: 0, invented: 0 };
  for (const conversation of conversations) {
    for (const [at, { turn, begins }] of conversation.entries()) {
      if (at < LEAST_BEFORE) continue;
      const buffer = conversation.slice(Math.max(0, at - SHOWN), at).map((before) => before.turn);
      const flow = readFlow({ buffer, turn });
      sum.turns += 1;
      if (begins) sum.topics += 1;
      if (flow.kind === 'doubt') sum.doubts += 1;
      else if ((flow.flow === 'BROKEN') === begins) sum.agreed += 1;
      else if (begins) sum.missed += 1;
      else sum.invented += 1;
    }
  }
  const { turns, topics, doubts, agreed, missed, invented } = sum;
  const [needs_model, agreement] = [doubts / Math.max(1, turns), agreed / Math.max(1, turns - doubts)].map(rounded);
  return { name, turns, topics, needs_model: needs_model ?? 0, agreement: agreement ?? 0, missed, invented };
}

function storyConversations(): Labelled[][] {
  const parts = [carrierTurns, migrationTurns, flakyTurns, labelTurns, rolloutTurns, exportTurns];
  const first = new Set(parts.map((part) => part[0]));
  return STORY.map(({ turns }, session) =>
    turns.map((turn) => ({ turn: textOf(turn), begins: first.has(turn) || isQuestion(turn) || session > 0 })),
  );
}

function textOf({ prompt, rounds, answer }: StoryTurn): TurnText {
  const parts = rounds.flatMap(({ text = '', tools }) => [
    partOf('assistant', text),
    ...tools.flatMap(({ name, input, result }) => [
      partOf('tool_use', JSON.stringify(input), name),
      partOf('tool_result', result, name),
    ]),
  ]);
  return { end: prompt, atMs: 0, origin: 'user', user: prompt, parts: [...parts, partOf('assistant', answer ?? '')] };
}

function dialoguesOf(file: string): Labelled[][] {
  const dialogues = Dialogues.parse(JSON.parse(readFileSync(file, 'utf8')));
  return dialogues.map(({ sessions }) =>
    sessions.flatMap(({ turns }) => {
      const pairs = turns.flatMap((turn, at) =>
        at % 2 === 0 ? [[turn.text, turns[at + 1]?.text ?? ''] as const] : [],
      );
      return pairs.map(([user, answer], at): Labelled => {
        const parts = [partOf('assistant', answer)];
        return { begins: at === 0, turn: { end: '', atMs: 0, origin: 'user', user, parts } };
      });
    }),
  );
}

function partOf(kind: TurnPart['kind'], text: string, tool = ''): TurnPart {
  return { kind, origin: 'assistant', tool, text };
}

function rounded(share: number): number {
  return Number(share.toFixed(3));
}

function said({ name, turns, topics, needs_model, agreement, missed, invented }: Outcome): string {
  const [asked, right] = [needs_model, agreement].map((share) => `${(share * 100).toFixed(1)} %`);
  return `${name}: ${turns} turns, ${topics} beginnings of topics; the model is needed for ${asked}; of the clear ones ${right} agree (${missed} missed, ${invented} invented)`;
}
