import { isCleanOrigin } from '../../common/turn.ts';
import { getAnswers, type TurnText } from '../model/turn.ts';
import { topicTokens } from '../text/keywords.ts';

/** Vectors of one embedder; a turn without a vector is compared by words. */
export type TurnEmbeddings = ReadonlyMap<TurnText, Float32Array>;

/** Fitted by `npm run bench:local`, see decision 0016. */
const WEIGHTS = {
  /** Share of new words in the prompt. */
  newWords: 4.6,
  /** Vector distance to the preceding turns minus their distance to each other. */
  drift: 2.5,
  /** Share of its files that preceding turns used; 0.5 without files. */
  sameFiles: -5,
  greeting: 4.9,
  announced: 2.7,
} as const;
const SHIFT_AT = 3.8;
/** Minimum content words of a prompt that may start a topic. */
const LEAST_WORDS = 2;
/** A pause adds to the score. */
const PAUSE_MS = 30 * 60_000;
const PAUSED = 2.5;

/** Opens a topic or resumes one after a break. */
export const GREETING = /^(?:hi|hey|hello|morning|good (?:morning|afternoon|evening))\b/i;
const FILE = /(?<![\w@.-])[\w@.-]+(?:\/[\w@.-]+)+/g;
/** Trailing path segments to compare; the rest is common to the project. */
const LAST_NAMES = 2;
const TEXT_CHARS = 6_000;
const NEIGHBOURS = 5;
const FILES_OF = 3;
/** Turns of a node that state something: its summary has room for two. */
const MAX_RUN = 2;
/** With the turns that only reply. */
const MAX_TURNS = 4;

export function isShift(turn: TurnText, before: readonly TurnText[], embeddings: TurnEmbeddings): boolean {
  const near = before.slice(-NEIGHBOURS);
  const last = near.at(-1);
  if (last === undefined) return false;
  const greets = GREETING.test(turn.user.trim());
  const announced = TURNS_ON.test(turn.user.trim());
  if (!greets && !announced && wordDrift(turn, near, LEAST_WORDS) === null) return false;
  const score =
    WEIGHTS.newWords * newWords(turn, near) +
    WEIGHTS.drift * relativeDrift(turn, near, embeddings) +
    WEIGHTS.sameFiles * sameFiles(turn, near.slice(-FILES_OF)) +
    (greets ? WEIGHTS.greeting : 0) +
    (announced ? WEIGHTS.announced : 0) +
    (turn.atMs - last.atMs >= PAUSE_MS ? PAUSED : 0);
  return score >= SHIFT_AT;
}

/** Splits turns into runs of one topic, at most `MAX_RUN` long, where trusted and untrusted origins do not mix. */
export function topicRuns(
  turns: readonly TurnText[],
  embeddings: TurnEmbeddings,
  isReply: (turn: TurnText) => boolean = () => false,
): TurnText[][] {
  const runs: TurnText[][] = [];
  for (const turn of turns) {
    const run = runs.at(-1);
    const stated = run?.filter((each) => !isReply(each)).length ?? 0;
    const isFull = run === undefined || run.length >= MAX_TURNS || (stated >= MAX_RUN && !isReply(turn));
    const isApart = isCleanOrigin(run?.at(-1)?.origin ?? 'user') !== isCleanOrigin(turn.origin);
    if (isFull || isApart || isShift(turn, run, embeddings)) runs.push([turn]);
    else run.push(turn);
  }
  return runs;
}

function newWords(turn: TurnText, before: readonly TurnText[]): number {
  const promptTokens = topicTokens(turn.user.slice(0, TEXT_CHARS));
  if (promptTokens.length === 0) return 0.5;
  const topic = new Set(before.flatMap((each) => topicTokens(embeddedText(each))));
  return promptTokens.filter((token) => !topic.has(token)).length / promptTokens.length;
}

/** 0 without vectors. */
function relativeDrift(turn: TurnText, before: readonly TurnText[], embeddings: TurnEmbeddings): number {
  const own = embeddings.get(turn);
  const others = before.flatMap((each) => embeddings.get(each) ?? []);
  const size = own?.length ?? 0;
  if (own === undefined || others.length < 2 || others.some((each) => each.length !== size)) return 0;
  const away = 1 - cosine(own, others);
  const getRest = (each: Float32Array) => others.filter((other) => other !== each);
  const usual = others.slice(1).map((each) => 1 - cosine(each, getRest(each)));
  return away - usual.reduce((sum, each) => sum + each, 0) / usual.length;
}

/** Cosine of a unit vector and the sum of others. */
function cosine(vector: Float32Array, others: readonly Float32Array[]): number {
  let dot = 0;
  let square = 0;
  for (const [at, value] of vector.entries()) {
    const sum = others.reduce((total, other) => total + (other[at] ?? 0), 0);
    dot += value * sum;
    square += sum * sum;
  }
  return square === 0 ? 0 : dot / Math.sqrt(square);
}

function sameFiles(turn: TurnText, before: readonly TurnText[]): number {
  const own = getFiles(turn);
  const files = new Set(before.flatMap(getFiles));
  if (own.length === 0 || files.size === 0) return 0.5;
  return own.filter((name) => files.has(name)).length / own.length;
}

/** Distinct trailing path segments in tool calls. */
function getFiles(turn: TurnText): string[] {
  const calls = turn.parts.filter((part) => part.kind === 'tool_use').map((part) => part.text.slice(0, TEXT_CHARS));
  const paths = calls.flatMap((text) => text.match(FILE) ?? []);
  return [...new Set(paths.flatMap((path) => path.split('/').slice(-LAST_NAMES)))];
}

export function embeddedText(turn: TurnText): string {
  return `${turn.user.slice(0, TEXT_CHARS)}\n${getAnswers(turn).join('\n').slice(0, TEXT_CHARS)}`;
}

/** A longer prompt states its topic even if it opens like an answer. */
const SHORT_WORDS = 8;
/** With fewer content words a prompt counts as a continuation. */
const MIN_DRIFT_WORDS = 4;
const CONTINUES =
  /^(?:yes|yep|no|ok|okay|and|also|but|then|it|that|this|same|again|continue|go on|go ahead|do it|why|thanks|great|perfect)\b/i;
const TURNS_ON =
  /^(?:now|next|on to|moving on|let's (?:move|turn|go on)|we begin|another (?:thing|topic)|new topic|one more thing|different)\b/i;
/** 0: same words, 1: none in common, null: too few words. */
export function wordDrift(turn: TurnText, before: readonly TurnText[], leastWords = MIN_DRIFT_WORDS): number | null {
  const promptTokens = topicTokens(turn.user.slice(0, TEXT_CHARS));
  const answers = promptTokens.length <= SHORT_WORDS && CONTINUES.test(turn.user.trim());
  if (before.length === 0 || promptTokens.length < leastWords || answers) return null;
  const topic = new Set(before.flatMap((each) => topicTokens(topicText(each))));
  const own = topicTokens(topicText(turn));
  const shared = (tokens: readonly string[]): number => tokens.filter((token) => topic.has(token)).length;
  return 1 - Math.max(shared(promptTokens) / promptTokens.length, shared(own) / Math.max(1, own.length));
}

/** Prompt, assistant text and the beginning of each call. */
function topicText(turn: TurnText): string {
  const answers = getAnswers(turn).map((text) => text.slice(0, TEXT_CHARS));
  const calls = turn.parts.filter((part) => part.kind === 'tool_use').map((part) => part.text.slice(0, 200));
  return [turn.user.slice(0, TEXT_CHARS), ...answers, ...calls].join('\n');
}
