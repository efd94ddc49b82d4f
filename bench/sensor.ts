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
import { readFlow, TOPIC_THRESHOLDS } from '../memory/compaction/topic-detector.ts';
import { dialogues, type Labelled, storyConversations } from './labeled.ts';

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

const { values } = parseArgs({ options: { data: { type: 'string' }, json: { type: 'boolean', default: false } } });
const outcomes = [measure('demo story', storyConversations())];
if (values.data !== undefined) outcomes.push(measure('dialogues', dialogues(readFileSync(values.data, 'utf8'))));
if (values.json) process.stdout.write(`${JSON.stringify({ thresholds: TOPIC_THRESHOLDS, outcomes }, null, 2)}\n`);
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
      if (flow === null) sum.doubts += 1;
      else if ((flow === 'BROKEN') === begins) sum.agreed += 1;
      else if (begins) sum.missed += 1;
      else sum.invented += 1;
    }
  }
  const { turns, topics, doubts, agreed, missed, invented } = sum;
  const [needs_model, agreement] = [doubts / Math.max(1, turns), agreed / Math.max(1, turns - doubts)].map(rounded);
  return { name, turns, topics, needs_model: needs_model ?? 0, agreement: agreement ?? 0, missed, invented };
}

function rounded(share: number): number {
  return Number(share.toFixed(3));
}

function said({ name, turns, topics, needs_model, agreement, missed, invented }: Outcome): string {
  const [asked, right] = [needs_model, agreement].map((share) => `${(share * 100).toFixed(1)} %`);
  return `${name}: ${turns} turns, ${topics} beginnings of topics; the model is needed for ${asked}; of the clear ones ${right} agree (${missed} missed, ${invented} invented)`;
}
