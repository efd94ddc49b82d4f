import type { ConversationPlan, PlannedRound, PlannedTurn } from '../test/helpers/transcript-plans.ts';

export interface LateQuestion {
  readonly turn: number;
  readonly right: string;
}

export interface CostStory {
  readonly plan: ConversationPlan;
  readonly questions: readonly LateQuestion[];
  /** Turns before which the user was away longer than any cache lives. */
  readonly breaks: ReadonlySet<number>;
}

const THINGS = ['billing', 'search', 'upload', 'invoice', 'login', 'export', 'avatar', 'webhook', 'report', 'cache'];
const KINDS = ['service', 'worker', 'proxy', 'queue', 'store'];
const WORK = ['retry handling', 'pagination', 'error texts', 'the timeout', 'the migration', 'logging', 'a flaky test'];
const WORDS =
  'const await return if throw new Error response status body headers parse map filter push client config timeout retry attempt result value index total'.split(
    ' ',
  );

/**
 * A coding session with tool rounds, made from a seed: the same numbers give the same bytes. Every fourth turn of
 * the first two thirds tells a fact; the last turns ask for facts told in the first half, in other words.
 */
export function codingSession(turns: number, model: string, seed = 1): CostStory {
  const next = random(seed);
  const asked = Math.max(2, Math.floor(turns / 10));
  const facts = Math.max(asked, Math.floor(turns / 6));
  const told = Array.from({ length: facts }, (_, index) => getFact(index, next));
  const planned: PlannedTurn[] = [];
  const questions: LateQuestion[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const late = turn - (turns - asked);
    const fact = told[Math.floor(turn / 4)];
    if (late >= 0) {
      const wanted = told[late % Math.max(1, Math.min(told.length, Math.floor(turns / 8)))] as Fact;
      questions.push({ turn, right: wanted.value });
      planned.push(quiet(wanted.question, 'Let me recall.'));
    } else if (turn % 4 === 1 && fact !== undefined) planned.push(quiet(fact.statement, `Noted: ${fact.short}.`));
    else planned.push(working(turn, next));
  }
  const breaks = new Set(Array.from({ length: Math.floor(turns / 25) }, (_, index) => (index + 1) * 25));
  return { plan: getPlan(planned, model), questions, breaks };
}

/** The same under another cache lifetime, or for a model that does not think. */
export function getVariant(story: CostStory, { ttl, thinking }: Variant): CostStory {
  const plan = { ...story.plan, ttl };
  if (thinking === 'on') return { ...story, plan };
  const turns = plan.turns.map((turn) => {
    const rounds = turn.rounds.map((round) => ({ ...round, thinking: [] }));
    return { ...turn, thinking: [], rounds };
  });
  return { ...story, plan: { ...plan, thinking: 'off', turns } };
}

export interface Variant {
  readonly ttl: '5m' | '1h';
  readonly thinking: 'on' | 'off';
}

/** One prompt and then nothing but tool rounds. */
export function onePrompt(rounds: number, model: string, seed = 2): CostStory {
  const next = random(seed);
  const turn: PlannedTurn = {
    ...quiet('Go through every module, fix what the linter says, and run the tests after each.', 'All done.'),
    rounds: Array.from({ length: rounds }, (_, round) => toolRound(round, next)),
  };
  return { plan: getPlan([turn], model), questions: [], breaks: new Set() };
}

function getPlan(turns: readonly PlannedTurn[], model: string): ConversationPlan {
  return {
    model,
    sessionId: '6f1c2d3e-0000-4000-8000-00000000c057',
    cwd: '/home/ada/parcels',
    ttl: '1h',
    turns,
  };
}

interface Fact {
  readonly statement: string;
  readonly short: string;
  readonly question: string;
  readonly value: string;
}

function getFact(index: number, next: () => number): Fact {
  const name = `${THINGS[index % THINGS.length]} ${KINDS[Math.floor(index / THINGS.length) % KINDS.length]}`;
  const port = String(4_000 + index * 37 + Math.floor(next() * 30));
  return {
    statement: `One thing to keep in mind: the ${name} listens on port ${port} in staging, because the default was taken.`,
    short: `${name} on port ${port} in staging`,
    question: `Which port did we say the ${name} uses in staging?`,
    value: port,
  };
}

function quiet(prompt: string, answer: string): PlannedTurn {
  return { prompt, image: false, note: null, rounds: [], thinking: ['Simple enough.'], answer };
}

function working(turn: number, next: () => number): PlannedTurn {
  const what = `${WORK[turn % WORK.length]} in the ${THINGS[Math.floor(next() * THINGS.length)]} module`;
  const rounds = Array.from({ length: 3 + Math.floor(next() * 6) }, (_, round) => toolRound(turn * 100 + round, next));
  return { ...quiet(`Please improve ${what}.`, `I improved ${what}; the tests pass. ${prose(40, next)}`), rounds };
}

function toolRound(id: number, next: () => number): PlannedRound {
  const file = `src/${THINGS[id % THINGS.length]}/${WORDS[id % WORDS.length]}.ts`;
  const isRead = next() < 0.6;
  const tool = isRead
    ? {
        name: 'Read',
        input: { file_path: `/home/ada/parcels/${file}` },
        result: code(60 + next() * 340, next),
        isError: false,
      }
    : {
        name: 'Bash',
        input: { command: `npm test -- ${file}` },
        result: code(20 + next() * 120, next),
        isError: false,
      };
  return { thinking: [prose(30, next)], text: null, tools: [tool], order: [0], note: null };
}

function code(words: number, next: () => number): string {
  return Array.from(
    { length: Math.floor(words) },
    (_, at) => `${WORDS[Math.floor(next() * WORDS.length)]}${at % 9 === 8 ? ';\n' : ''}`,
  ).join(' ');
}

function prose(words: number, next: () => number): string {
  return Array.from({ length: words }, () => WORDS[Math.floor(next() * WORDS.length)]).join(' ');
}

/** Mulberry32: small, seeded, the same on every machine. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
