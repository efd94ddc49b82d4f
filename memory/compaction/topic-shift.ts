import { isCleanOrigin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { topicTokens } from '../text/keywords.ts';
import { isIdle } from '../text/sentences.ts';
/** Vectors of turns, all of one embedder; a turn without one is judged by its words. */
export type TurnEmbeddings = ReadonlyMap<TurnText, Float32Array>;

/** What speaks for another topic, and how loud. Fitted with `npm run bench:local`, see decision 0016. */
const WEIGHTS = {
  /** Share of the prompt's words that were not said before. */
  newWords: 4.6,
  /** How much farther the turn is from those before it than they are from each other, by their vectors. */
  drift: 2.5,
  /** Share of the files it works on that were worked on before; half where there are none. */
  sameFiles: -5,
  greeting: 4.9,
  farewell: 1.3,
  announced: 2.7,
} as const;
const SHIFT_AT = 3.8;
/** Content words of a prompt that may begin a topic: besides words, vectors and files speak for it or against it. */
const LEAST_WORDS = 2;
/** After a pause the same signs mean more. */
const PAUSE_MS = 30 * 60_000;
const PAUSED = 2.5;

const GREETING = /^(?:hi|hey|hello|morning|good (?:morning|afternoon|evening))\b/i;
const FAREWELL =
  /\b(?:bye|goodbye|see (?:you|ya)|talk (?:to you )?(?:soon|later)|take care|catch you later|have a (?:good|great|nice)|later!)\b/i;
const FILE = /[\w@.-]+(?:\/[\w@.-]+)+/g;
/** Of a path; what is above them is the same for the whole project. */
const LAST_NAMES = 2;
const TEXT_CHARS = 6_000;
const NEIGHBOURS = 5;
const FILES_OF = 3;
/** No topic goes on longer: a node stands for what one line can say. */
const MAX_RUN = 6;

/** Whether `turn` leaves what the turns before it were about. */
export function isShift(turn: TurnText, before: readonly TurnText[], meanings: TurnEmbeddings): boolean {
  const near = before.slice(-NEIGHBOURS);
  const last = near.at(-1);
  if (last === undefined || isIdle(turn)) return false;
  const greets = GREETING.test(turn.user.trim());
  const announced = TURNS_ON.test(turn.user.trim());
  if (!greets && !announced && wordDrift(turn, near, LEAST_WORDS) === null) return false;
  const paused = turn.atMs - last.atMs >= PAUSE_MS;
  const score =
    WEIGHTS.newWords * newWords(turn, near) +
    WEIGHTS.drift * relativeDrift(turn, near, meanings) +
    WEIGHTS.sameFiles * sameFiles(turn, near.slice(-FILES_OF)) +
    (greets ? WEIGHTS.greeting : 0) +
    (FAREWELL.test(`${last.user}\n${saidIn(last)}`) ? WEIGHTS.farewell : 0) +
    (announced ? WEIGHTS.announced : 0) +
    (paused ? PAUSED : 0);
  return score >= SHIFT_AT;
}

/**
 * Consecutive turns of one topic; a run ends where the topic does, after six turns that say something, and where turns
 * that a stranger's text entered begin or end: who says what stays apart. Idle turns go with the run they stand in.
 */
export function topicRuns(turns: readonly TurnText[], meanings: TurnEmbeddings): TurnText[][] {
  const runs: { readonly turns: TurnText[]; readonly told: TurnText[] }[] = [];
  for (const turn of turns) {
    const run = runs.at(-1);
    const told = isIdle(turn) ? [] : [turn];
    if (run === undefined || (told.length > 0 && endsAt(turn, run.told, meanings))) runs.push({ turns: [turn], told });
    else {
      run.turns.push(turn);
      run.told.push(...told);
    }
  }
  return runs.map((run) => run.turns);
}

function endsAt(turn: TurnText, told: readonly TurnText[], meanings: TurnEmbeddings): boolean {
  const last = told.at(-1);
  if (last === undefined) return false;
  const isApart = isCleanOrigin(last.origin) !== isCleanOrigin(turn.origin);
  return isApart || told.length >= MAX_RUN || isShift(turn, told, meanings);
}

function newWords(turn: TurnText, before: readonly TurnText[]): number {
  const asked = topicTokens(turn.user.slice(0, TEXT_CHARS));
  if (asked.length === 0) return 0.5;
  const known = new Set(before.flatMap((each) => topicTokens(embeddedText(each))));
  return asked.filter((token) => !known.has(token)).length / asked.length;
}

/** 0 where vectors are missing: then nothing is known. */
function relativeDrift(turn: TurnText, before: readonly TurnText[], meanings: TurnEmbeddings): number {
  const own = meanings.get(turn);
  const others = before.flatMap((each) => meanings.get(each) ?? []);
  const size = own?.length ?? 0;
  if (own === undefined || others.length === 0 || others.some((each) => each.length !== size)) return 0;
  const away = 1 - cosine(own, others);
  if (others.length === 1) return 0;
  const usual = others.slice(1).map(
    (each) =>
      1 -
      cosine(
        each,
        others.filter((other) => other !== each),
      ),
  );
  return away - usual.reduce((sum, each) => sum + each, 0) / usual.length;
}

/** Cosine of a unit vector and the middle of others. */
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
  const own = filesOf(turn);
  const known = new Set(before.flatMap(filesOf));
  if (own.length === 0 || known.size === 0) return 0.5;
  return own.filter((name) => known.has(name)).length / own.length;
}

/** Last names of the paths in calls, each once. */
function filesOf(turn: TurnText): string[] {
  const calls = turn.parts.filter((part) => part.kind === 'tool_use').map((part) => part.text.slice(0, TEXT_CHARS));
  const paths = calls.flatMap((text) => text.match(FILE) ?? []);
  return [...new Set(paths.flatMap((path) => path.split('/').slice(-LAST_NAMES)))];
}

/** What was said in a turn: the text that its vector is made of. */
export function embeddedText(turn: TurnText): string {
  return `${turn.user.slice(0, TEXT_CHARS)}\n${saidIn(turn)}`;
}

function saidIn({ parts }: TurnText): string {
  const said = parts.filter((part) => part.kind === 'assistant').map((part) => part.text);
  return said.join('\n').slice(0, TEXT_CHARS);
}

/** A prompt up to this long may open like an answer; a longer one says itself what it is about. */
const SHORT_WORDS = 8;
/** Of content words: by fewer it is not clear that a prompt does anything but continue. */
const MIN_DRIFT_WORDS = 4;
const CONTINUES =
  /^(?:yes|yep|no|ok|okay|and|also|but|then|it|that|this|same|again|continue|go on|go ahead|do it|why|thanks|great|perfect)\b/i;
const TURNS_ON =
  /^(?:now|next|on to|moving on|let's (?:move|turn|go on)|we begin|another (?:thing|topic)|new topic|one more thing|different)\b/i;
/**
 * How far a turn is from the turns before it: 0 the same words, 1 none in common, null where it says too little.
 */
export function wordDrift(turn: TurnText, before: readonly TurnText[], leastWords = MIN_DRIFT_WORDS): number | null {
  const asked = topicTokens(turn.user.slice(0, TEXT_CHARS));
  const answers = asked.length <= SHORT_WORDS && CONTINUES.test(turn.user.trim());
  if (before.length === 0 || asked.length < leastWords || answers) return null;
  const known = new Set(before.flatMap((each) => topicTokens(topicText(each))));
  const own = topicTokens(topicText(turn));
  const shared = (tokens: readonly string[]): number => tokens.filter((token) => known.has(token)).length;
  const closeness = Math.max(shared(asked) / asked.length, shared(own) / Math.max(1, own.length));
  return 1 - closeness;
}

/** What was said, and the names of what was touched. */
function topicText(turn: TurnText): string {
  const said = turn.parts.filter((part) => part.kind === 'assistant').map((part) => part.text.slice(0, TEXT_CHARS));
  const calls = turn.parts.filter((part) => part.kind === 'tool_use').map((part) => part.text.slice(0, 200));
  return [turn.user.slice(0, TEXT_CHARS), ...said, ...calls].join('\n');
}
