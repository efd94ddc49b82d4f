import type { CapturedTurn } from '../../common/turn.ts';
import { type Seeded, seeded } from '../local/seeded.ts';
import { capturedTurn } from '../recall/product.ts';
import { ASPECTS, type Aspect, FILLER, PASSING, SUBJECTS } from './subjects.ts';

export type Level = 'standard' | 'hard';

export interface Question {
  readonly text: string;
  readonly subject: string;
  readonly aspect: string;
  readonly answer: string;
  /** What is settled of the same kind for other subjects. */
  readonly near: readonly string[];
}

export interface CometConversation {
  readonly turns: readonly CapturedTurn[];
  /** What was said, oldest first, a text for each turn. */
  readonly texts: readonly string[];
  readonly questions: readonly Question[];
}

export const PROJECT_DIR = '/bench/comet';
/** The last is said of by the way, while something else is the subject. */
const SETTLED = 3;
const TOPICS = { standard: 10, hard: 20 } as const;
const FIRST_MS = Date.UTC(2026, 2, 2, 8);
const TURN_MS = 120_000;

interface Settled {
  readonly subject: string;
  readonly aspect: Aspect;
  readonly value: string;
}

/**
 * One long conversation with a subject after the other, and a question about each thing that was settled; the same for
 * the same seed. `hard` has twice the subjects, all with the same kinds of figures, each one next to another's.
 */
export function cometConversation(level: Level, seed: number): CometConversation {
  const random = seeded(seed * 2 + Number(level === 'hard'));
  const subjects = random.shuffled(SUBJECTS).slice(0, TOPICS[level]);
  const settled = settle(subjects, level, random);
  const turns: CapturedTurn[] = [];
  const texts: string[] = [];
  const say = (user: string, assistant: string): void => {
    const at = turns.length;
    const place = { sessionId: `comet-${level}-${seed}`, projectDir: PROJECT_DIR, atMs: FIRST_MS + at * TURN_MS };
    const said = [['user', user] as const, ['assistant', assistant] as const];
    turns.push(capturedTurn(`${level} ${seed} ${at}`, said, place));
    texts.push(`${user}\n${assistant}`);
  };
  const passing: Settled[] = [];
  for (const subject of subjects) {
    const own = settled.filter((each) => each.subject === subject);
    const [last, ...now] = own as [Settled, ...Settled[]];
    say(`Let us turn to the ${subject}.`, filler(subject, random));
    for (const each of now) {
      const byUser = random.below(2) === 0;
      const statement = filled(random.pickOne(each.aspect.said), each);
      const order = random.pickOne(PASSING.orders).replaceAll('{s}', subject);
      if (byUser) say(`${statement} ${order}`, filler(subject, random));
      else say(order, `${filler(subject, random)} ${statement} ${filler(subject, random)}`);
      if (random.below(3) === 0) say(random.pickOne(PASSING.thanks), filler(subject, random));
    }
    const before = passing.shift();
    if (before !== undefined) {
      say(`${random.pickOne(PASSING.asides)} ${filled(random.pickOne(before.aspect.said), before)}`, 'Noted.');
    }
    passing.push(last);
  }
  for (const each of passing)
    say(`${random.pickOne(PASSING.asides)} ${filled(random.pickOne(each.aspect.said), each)}`, 'Noted.');
  const questions = settled.map(({ subject, aspect, value }): Question => {
    const near = settled.filter((other) => other.aspect === aspect && other.subject !== subject);
    const text = random.pickOne(aspect.asked).replaceAll('{s}', subject);
    return { text, subject, aspect: aspect.name, answer: value, near: near.map((other) => other.value) };
  });
  return { turns, texts, questions };
}

/** Whether a text names the figure itself, and not one that it is a part of. */
export function holds(text: string, figure: string): boolean {
  return new RegExp(`(?<![\\d.])${figure}(?!\\d)`).test(text);
}

function settle(subjects: readonly string[], level: Level, random: Seeded): Settled[] {
  const used = new Set<string>();
  const bases = ASPECTS.map(({ least, span }) => least + random.below(span));
  const places = ASPECTS.map(() => random.shuffled(subjects));
  const getFigure = (subject: string, kind: number): string => {
    const { least, span } = ASPECTS[kind] as Aspect;
    if (level === 'hard') return String((bases[kind] as number) + (places[kind] as string[]).indexOf(subject));
    for (;;) {
      const value = String(least + random.below(span));
      if (!used.has(value)) return value;
    }
  };
  return subjects.flatMap((subject, at) => {
    const kinds = Array.from({ length: SETTLED }, (_, nth) => (level === 'hard' ? nth : at + nth) % ASPECTS.length);
    return kinds.map((kind): Settled => {
      const value = getFigure(subject, kind);
      used.add(value);
      return { subject, aspect: ASPECTS[kind] as Aspect, value };
    });
  });
}

function filled(text: string, { subject, value }: Settled): string {
  return text.replaceAll('{s}', subject).replaceAll('{v}', value);
}

function filler(subject: string, random: Seeded): string {
  const sentences = random.shuffled(FILLER).slice(0, 3 + random.below(4));
  return sentences.join(' ').replaceAll('{s}', subject);
}
