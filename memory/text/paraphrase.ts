import { trimEnd } from '../../common/text.ts';
import { uniqueTokens } from './tokenizer.ts';

const WORD = /[\p{L}\p{N}_@][\p{L}\p{N}_@./:%-]*/gu;
const NEGATION = /\b(?:not|no|never|without|nor|none|cannot|instead|unlike)\b|n['’]t\b/i;
/** Of each of these a matter is one: vectors hold them for nearly the same word. */
const EXCLUSIVE = [
  'production prod live|staging stage|development dev|testing|qa|local',
  'enabled enable enables on|disabled disable disables off',
  'client frontend|server backend',
  'read reads reading|write writes writing',
  'add adds added|remove removes removed delete deletes deleted',
  'before|after',
  'old former|new',
  'first|second|third|last',
  'minimum min least|maximum max most',
  'start starts started|stop stops stopped',
  'request requests|response responses',
  'monday|tuesday|wednesday|thursday|friday|saturday|sunday',
].map((line) => line.split('|').map((words) => words.split(' ')));
const ENDS_SENTENCE = /(?:^|[.;:!?\n—"“(-])\s{0,4}$/;

/**
 * Whether two texts can be two ways to say one thing: what one of them names or counts, the other names or counts too,
 * both deny or neither does, and they share `least` of the words of the shorter one. Vectors tell neither 5432 from
 * 5433 nor staging from production, nor what is from what is not.
 */
export function isSameMatter(left: string, right: string, least: number): boolean {
  if (NEGATION.test(left) !== NEGATION.test(right)) return false;
  if (excludes(findWords(left), findWords(right))) return false;
  const [ours, theirs] = [findNames(left), findNames(right)];
  if (!isWithin(ours, findWords(right)) && !isWithin(theirs, findWords(left))) return false;
  if (!isWithin(findFigures(ours), theirs) && !isWithin(findFigures(theirs), ours)) return false;
  return sharedWords(left, right) >= least;
}

/** Whether one text has its own word of a kind of which each matter has one. */
function excludes(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  return EXCLUSIVE.some((kinds) => {
    const has = (words: ReadonlySet<string>) => kinds.map((kind) => kind.some((word) => words.has(word)));
    const [ours, theirs] = [has(left), has(right)];
    return ours.some((own, at) => own && !theirs[at]) && theirs.some((own, at) => own && !ours[at]);
  });
}

/** Whether every name and figure of a text is a word of the other. */
export const collectNames = (text: string, whole: string): boolean => isWithin(findNames(text), findWords(whole));

/** Share of the shorter text's distinct words that the other one has too. */
export function sharedWords(left: string, right: string): number {
  const [few = [], many = []] = [uniqueTokens(left), uniqueTokens(right)].sort((a, b) => a.length - b.length);
  const manyWords = new Set(many);
  return few.length === 0 ? 0 : few.filter((word) => manyWords.has(word)).length / few.length;
}

/** Figures, paths, identifiers, and words with a capital that no sentence begins with; lower case. */
function findNames(text: string): Set<string> {
  const words = new Set<string>();
  for (const { 0: raw, index } of text.matchAll(WORD)) {
    const word = trimmed(raw);
    const isMarked = /\d|[\p{L}][./_@][\p{L}]|\p{Ll}\p{Lu}|^\p{Lu}[\p{Lu}_]+$/u.test(word);
    const isCapital = /^\p{Lu}/u.test(word) && !ENDS_SENTENCE.test(text.slice(Math.max(0, index - 4), index));
    if (isMarked || isCapital) words.add(word.toLowerCase());
  }
  return words;
}

function findWords(text: string): Set<string> {
  return new Set((text.match(WORD) ?? []).map((word) => trimmed(word).toLowerCase()));
}

const findFigures = (names: ReadonlySet<string>): Set<string> => new Set([...names].filter((name) => /\d/.test(name)));

const trimmed = (word: string): string => trimEnd(word, './:-');

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return [...some].every((word) => all.has(word));
}

const NEAR = 0.8;
/** Where one text has such a word more than the other, they do not say the same. */
const TELLING = /\d|^(?:not|no|never|without|don|doesn|isn|instead|nor|none)$/u;

export const isNearDuplicate = (left: string, right: string): boolean => saySame(getWords(left), getWords(right));

/** `isNearDuplicate` of texts whose words were read before. @param left  of `getWords` */
export function saySame(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  const [fewer, more] = left.size <= right.size ? [left, right] : [right, left];
  if (fewer.size < NEAR * more.size) return false;
  for (const word of fewer) if (!more.has(word)) return false;
  return [...more].every((word) => fewer.has(word) || !TELLING.test(word));
}

export function getWords(text: string): Set<string> {
  const plain = text.normalize('NFKC').toLowerCase();
  return new Set(plain.match(/[\p{L}\p{M}\p{N}_]+/gu));
}
