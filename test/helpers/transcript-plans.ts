import fc from 'fast-check';

export type Json = Record<string, unknown>;

export interface PlannedTool {
  readonly name: string;
  readonly input: Json;
  readonly result: string | 'image';
  readonly isError: boolean;
}

export interface PlannedRound {
  readonly thinking: readonly string[];
  readonly text: string | null;
  /** Several run in parallel; their results come back in `order`. */
  readonly tools: readonly PlannedTool[];
  readonly order: readonly number[];
  /** A note of Claude Code's own behind the results: a system message where the model takes them, else a reminder. */
  readonly note: string | null;
}

export interface PlannedTurn {
  readonly prompt: string;
  readonly image: boolean;
  readonly note: string | null;
  readonly rounds: readonly PlannedRound[];
  readonly thinking: readonly string[];
  readonly answer: string;
}

export interface ConversationPlan {
  readonly model: string;
  readonly sessionId: string;
  readonly cwd: string;
  readonly ttl: '5m' | '1h';
  /** `off` asks for no thinking; the answers have to be planned without. */
  readonly thinking?: 'off';
  readonly turns: readonly PlannedTurn[];
}

export interface PlanOptions {
  readonly models?: readonly string[];
  /** Exact number of turns; 1 to 8 by default. */
  readonly turns?: number;
  /** Most tool rounds in a turn; 3 by default, with a longer turn now and then. */
  readonly rounds?: number;
  /** Length of the bulk of prompts, results and answers, in characters; 200 by default. */
  readonly bulk?: number;
}

export const MODELS = [
  'claude-opus-5-5',
  'claude-sonnet-5-5',
  'claude-opus-4-8',
  'claude-sonnet-4-6',
  'claude-haiku-4-5-20251001',
];

/** Few different texts, so that equal messages, prompts and results are common. */
const PROMPTS = [
  'yes, do it',
  'continue',
  'Add a retry to the client',
  'Why does 日本語 fail? 🤔',
  'run the tests again',
  '/clear cache',
];
const ANSWERS = ['Done.', 'Done.', 'The port is 8471 and the test passes.', 'Ich habe `src/a.ts` geändert.', 'OK '];
const RESULTS = [
  '',
  '',
  'ok',
  'line 1\nline 2\n',
  '{"n": 12345678901234567890, "s": "\\ud83d"}',
  'lone \ud83d surrogate',
  '(Bash completed with no output)',
];
const NOTES = ["The task tools haven't been used recently.", 'The date has changed.'];
const THOUGHTS = ['I should look first.', 'Hm.', ''];

export function conversationPlans(options: PlanOptions = {}): fc.Arbitrary<ConversationPlan> {
  const bulk = options.bulk ?? 200;
  const count =
    options.turns === undefined
      ? { minLength: 1, maxLength: 8 }
      : { minLength: options.turns, maxLength: options.turns };
  return fc.record({
    model: fc.constantFrom(...(options.models ?? MODELS)),
    sessionId: fc.uuid(),
    cwd: fc.constantFrom('/home/ada/app', '/home/ada/app two'),
    ttl: fc.constantFrom<'5m' | '1h'>('5m', '1h'),
    turns: fc.array(turnPlans(options.rounds ?? 3, bulk), count),
  });
}

/** The same plan for the same seed and options. */
export function seededPlan(seed: number, options: PlanOptions = {}): ConversationPlan {
  const [plan] = fc.sample(conversationPlans(options), { seed, numRuns: 1 });
  if (!plan) throw new Error('fast-check gave no plan');
  return plan;
}

function turnPlans(rounds: number, bulk: number): fc.Arbitrary<PlannedTurn> {
  const few = fc.array(roundPlans(bulk), { maxLength: rounds });
  const many = fc.array(roundPlans(bulk), { minLength: rounds + 1, maxLength: rounds * 3 + 1 });
  return fc.record({
    prompt: padded(PROMPTS, bulk),
    image: rarely(10),
    note: maybe(NOTES),
    rounds: fc.oneof({ weight: 9, arbitrary: few }, { weight: 1, arbitrary: many }),
    thinking: thoughts(),
    answer: padded(ANSWERS, bulk),
  });
}

function roundPlans(bulk: number): fc.Arbitrary<PlannedRound> {
  return fc.array(toolPlans(bulk), { minLength: 1, maxLength: 3 }).chain((tools) =>
    fc.record({
      thinking: thoughts(),
      text: maybe(['Let me look.', 'Next: ']),
      tools: fc.constant(tools),
      order: fc.shuffledSubarray([...tools.keys()], { minLength: tools.length }),
      note: maybe(NOTES),
    }),
  );
}

function toolPlans(bulk: number): fc.Arbitrary<PlannedTool> {
  const input: fc.Arbitrary<Json> = fc.constantFrom<Json>({ command: 'ls' }, { file_path: '/a b.ts', limit: 1e21 }, {});
  return fc.record({
    name: fc.constantFrom('Bash', 'Read', 'mcp__docs__search'),
    input,
    result: fc.oneof({ weight: 9, arbitrary: padded(RESULTS, bulk) }, { weight: 1, arbitrary: fc.constant('image') }),
    isError: rarely(8),
  });
}

function padded(texts: readonly string[], bulk: number): fc.Arbitrary<string> {
  const filler = 'The quick brown fox reads src/index.ts. ';
  return fc
    .record({ text: fc.constantFrom(...texts), long: rarely(3), more: fc.nat(bulk) })
    .map(({ text, long, more }) => (long ? `${text} ${filler.repeat(Math.ceil(more / filler.length))}`.trim() : text));
}

function thoughts(): fc.Arbitrary<readonly string[]> {
  return fc.array(fc.constantFrom(...THOUGHTS), { maxLength: 2 });
}

function maybe(texts: readonly string[]): fc.Arbitrary<string | null> {
  return fc.option(fc.constantFrom(...texts), { freq: 4 });
}

function rarely(oneIn: number): fc.Arbitrary<boolean> {
  return fc.nat(oneIn - 1).map((n) => n === 0);
}
