import type { TurnPart, TurnText } from '../../memory/model/turn.ts';
import { type Seeded, seeded } from './seeded.ts';
import { PEOPLE, SMALL_TALK, THEMES, type Theme } from './themes.ts';

/** A statement hidden in a turn; a summary keeps it where it holds all of `values`. */
export interface PlantedFact {
  readonly turn: string;
  readonly by: 'user' | 'assistant';
  readonly kind: string;
  readonly values: readonly string[];
}

export interface PlantedConversation {
  readonly turns: readonly { readonly turn: TurnText; readonly begins: boolean; readonly theme: Theme }[];
  readonly facts: readonly PlantedFact[];
}

type Sentence = { readonly text: string; readonly values: readonly string[] };
type Kind = (theme: Theme, random: Seeded) => Sentence;

/** What a person or an agent would be asked about weeks later. */
const KINDS: Readonly<Record<string, Kind>> = {
  port: ({ things }, random) => {
    const port = String(1_025 + random.below(60_000));
    return said(`For local work the ${random.pickOne(things)} listens on port ${port}.`, port);
  },
  limit: ({ things }, random) => {
    const limit = `${2 + random.below(90)} requests`;
    return said(
      `The ${random.pickOne(things)} takes at most ${limit} at one time, more than that and it falls over.`,
      limit,
    );
  },
  path: ({ things, files }, random) => {
    const file = `${random.pickOne(files).replace(/(\.\w+)$/, '')}-${random.below(90) + 10}${/\.\w+$/.exec(random.pickOne(files))?.[0]}`;
    return said(`The ${random.pickOne(things)} is configured in ${file}, nowhere else.`, file);
  },
  command: (_, random) => {
    const command = `make ${random.pickOne(['purge', 'replay', 'warm', 'verify'])}-${random.pickOne(['east', 'west', 'all'])} STAGE=${random.pickOne(['qa', 'live', 'lab'])}${random.below(9)}`;
    return said(`To start over the command is \`${command}\`.`, command);
  },
  decision: ({ things }, random) => {
    const [person, thing] = [random.pickOne(PEOPLE), random.pickOne(things)];
    const choice = random.pickOne([
      'a nightly batch',
      'plain text files',
      'one worker for each customer',
      'a read-only copy',
    ]);
    return said(
      `${person} decided that the ${thing} goes with ${choice}, because the old way broke twice.`,
      person,
      choice,
    );
  },
  rule: ({ things }, random) => {
    const thing = random.pickOne(things);
    const code = `${random.pickOne(['E', 'W', 'X'])}_${random.pickOne(['STALE', 'BUSY', 'TORN', 'LATE'])}_${10 + random.below(90)}`;
    return said(`Never retry the ${thing} when it answers ${code}.`, code);
  },
  cause: ({ things }, random) => {
    const cause = `${random.pickOne(['clock', 'cache', 'lock', 'socket'])}${random.pickOne(['Keeper', 'Pool', 'Guard', 'Table'])}`;
    return said(`The root cause was that ${cause} is shared between threads of the ${random.pickOne(things)}.`, cause);
  },
  version: ({ things }, random) => {
    const version = `${1 + random.below(9)}.${random.below(20)}.${random.below(30)}`;
    return said(`The ${random.pickOne(things)} stays on version ${version} until the summer.`, version);
  },
  deadline: ({ things }, random) => {
    const [person, day] = [random.pickOne(PEOPLE), `2026-${10 + random.below(3)}-${10 + random.below(19)}`];
    return said(`${person} needs the ${random.pickOne(things)} by ${day}.`, person, day);
  },
  measure: ({ things }, random) => {
    const value = `${20 + random.below(900)} ms`;
    return said(`The ${random.pickOne(things)} answers within ${value} now.`, value);
  },
};

const OPENERS = ['By the way:', 'So that you know:', 'Before I forget it,', 'Just checked with the others.', ''];
const TOPICS = 8;

/** A day of invented work: topics of several turns, a fact in most of them, small talk around it. */
export function plantedConversation(seed: number): PlantedConversation {
  const random = seeded(seed);
  const turns: { turn: TurnText; begins: boolean; theme: Theme }[] = [];
  const facts: PlantedFact[] = [];
  for (const theme of random.shuffled(THEMES).slice(0, TOPICS)) {
    const length = 3 + random.below(5);
    for (let at = 0; at < length; at += 1) {
      const turnId = `${seed}-${turns.length}`;
      const plant = (by: PlantedFact['by'], share: number): string => {
        if (random.below(100) >= share) return '';
        const kind = random.pickOne(Object.keys(KINDS));
        const { text, values } = (KINDS[kind] as Kind)(theme, random);
        facts.push({ turn: turnId, by, kind, values });
        return text;
      };
      turns.push({ theme, begins: at === 0 && turns.length > 0, turn: getTurn(turnId, theme, { at, random, plant }) });
    }
  }
  return { turns, facts };
}

interface Place {
  readonly at: number;
  readonly random: Seeded;
  readonly plant: (by: PlantedFact['by'], share: number) => string;
}

function getTurn(turnId: string, theme: Theme, { at, random, plant }: Place): TurnText {
  const told = plant('user', 60);
  const order =
    theme.orders[at] ?? `${random.pickOne(SMALL_TALK.user)} What about the ${random.pickOne(theme.things)}?`;
  const user = [order, told === '' ? '' : `${random.pickOne(OPENERS)} ${told}`.trim()]
    .filter((text) => text !== '')
    .join(' ');
  const talk = random.shuffled(SMALL_TALK.assistant);
  const found = plant('assistant', 60);
  const report = random.pickOne([...theme.reports, `The ${random.pickOne(theme.things)} is done.`]);
  const answer = [...talk.slice(0, 2 + random.below(3)), report, found, ...talk.slice(5, 6 + random.below(2))];
  const call = JSON.stringify({ file_path: `/home/dana/work/${random.pickOne(theme.files)}` });
  const parts: TurnPart[] = [
    { kind: 'tool_use', origin: 'assistant', tool: 'Read', text: call },
    { kind: 'tool_result', origin: 'tool', tool: 'Read', text: 'export const nothing = 0;' },
    { kind: 'assistant', origin: 'assistant', tool: '', text: answer.filter((text) => text !== '').join(' ') },
  ];
  return { turnId, atMs: 0, origin: 'tool', user, parts };
}

function said(text: string, ...values: string[]): Sentence {
  return { text, values };
}
