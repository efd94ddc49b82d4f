import type { CapturedTurn } from '../../common/turn.ts';
import { capturedTurn } from '../recall/product.ts';
import { CHATTER, type Dice, ELSEWHERE, SERVICES, TOPICS, type Topic, UNKNOWN_SERVICES } from './topics.ts';

export interface Asked {
  readonly question: string;
  readonly topic: string;
  /** The turn that answers, and what it says; null where nothing does. */
  readonly answer: { readonly turnId: string; readonly value: string } | null;
}

export interface History {
  readonly turns: readonly CapturedTurn[];
  readonly asked: readonly Asked[];
}

export const PROJECT_DIR = '/bench/coding';
const FIRST_MS = Date.UTC(2026, 2, 2, 8);
const TURN_MS = 90_000;
const DAY_MS = 86_400_000;
const TOPICS_IN_SESSION = 8;
/** Topics that are never settled for each service: what is asked of them has near answers and no right one. */
const WITHHELD = 2;
const NEAR_QUESTIONS = 20;

/** A history of settled things about many services, and questions about it; the same for the same seed. */
export function createHistory(seed: number): History {
  const dice = createDice(seed);
  const settled: { readonly service: string; readonly topic: Topic }[] = [];
  const open: typeof settled = [];
  for (const service of SERVICES) {
    for (const [at, topic] of shuffled(TOPICS, dice).entries()) {
      (at < WITHHELD ? open : settled).push({ service, topic });
    }
  }
  const turns: CapturedTurn[] = [];
  const asked: Asked[] = [];
  for (const [at, { service, topic }] of shuffled(settled, dice).entries()) {
    const session = Math.floor(at / TOPICS_IN_SESSION);
    const value = topic.value(dice);
    const fill = (text: string): string => text.replaceAll('{s}', service).replaceAll('{v}', value);
    const place = (): Parameters<typeof capturedTurn>[2] => ({
      sessionId: `coding-${seed}-${session}`,
      projectDir: PROJECT_DIR,
      atMs: FIRST_MS + session * DAY_MS + turns.length * TURN_MS,
    });
    const telling = capturedTurn(
      `${seed} ${service} ${topic.name}`,
      [
        ['user', fill(dice.pick(topic.said))],
        ['assistant', fill(dice.pick(topic.replied))],
      ],
      place(),
    );
    turns.push(telling);
    if (dice.roll(2) === 0) {
      const [prompt, reply] = dice.pick(CHATTER);
      turns.push(
        capturedTurn(
          `${seed} ${service} ${topic.name} chatter`,
          [
            ['user', prompt],
            ['assistant', reply],
          ],
          place(),
        ),
      );
    }
    asked.push({
      question: fill(dice.pick(topic.asked)),
      topic: topic.name,
      answer: { turnId: telling.turnId, value },
    });
  }
  const near = shuffled(open, dice).slice(0, NEAR_QUESTIONS);
  const unanswered = [
    ...near.map(({ service, topic }) => ({
      question: dice.pick(topic.asked).replaceAll('{s}', service),
      topic: 'near',
    })),
    ...UNKNOWN_SERVICES.flatMap((service) =>
      [0, 1].map(() => ({ question: dice.pick(dice.pick(TOPICS).asked).replaceAll('{s}', service), topic: 'unknown' })),
    ),
    ...ELSEWHERE.map((question) => ({ question, topic: 'elsewhere' })),
  ];
  return { turns, asked: [...asked, ...unanswered.map((each) => ({ ...each, answer: null }))] };
}

/** mulberry32: small, and the same everywhere. */
function createDice(seed: number): Dice {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const roll = (sides: number): number => Math.floor(next() * sides);
  return { roll, pick: <T>(list: readonly T[]): T => list[roll(list.length)] as T };
}

function shuffled<T>(list: readonly T[], dice: Dice): T[] {
  const mixed = [...list];
  for (let at = mixed.length - 1; at > 0; at -= 1) {
    const other = dice.roll(at + 1);
    [mixed[at], mixed[other]] = [mixed[other] as T, mixed[at] as T];
  }
  return mixed;
}
