import { valuesOf } from './sentences.ts';
import { topicTokens } from './terms.ts';
import { tokenize } from './tokens.ts';

/** Says that something is so from now on that was otherwise before. */
const CUE =
  /\b(?:instead|rather than|now|from now on|no longer|any ?more|not? more|actually|correction|as of|revis\w+|supersed\w+|replac\w+|renam\w+|revert\w*|bump\w*|rais(?:e[ds]?|ing)|lower(?:ed|s|ing)?|dropp?\w*|(?:chang|switch|mov|migrat|updat|upgrad|downgrad|increas|reduc)(?:e[ds]?|ed|es|ing)?)\b/gi;
/** What stands after these is what was so before. */
const FORMER =
  /\b(?:instead of|rather than|no longer(?: use[sd]?| using)?|not|replac(?:e[sd]?|ing)|dropp?(?:ed|ing)?|(?:move[sd]?|moving|switch(?:ed|ing)?|migrat(?:e[sd]?|ing)|chang(?:e[sd]?|ing)|away|off|port \w+) from|away from|was)\s+(?:(?:using|use|the|our|to|port|version)\s+)*([\p{L}\p{N}_@][\p{L}\p{N}_@./:-]*)/giu;
/** What stands before these is what is so instead. */
const SUCCESSOR = /([\p{L}\p{N}_@][\p{L}\p{N}_@./:-]*),?\s+(?:instead of|rather than)\b/giu;
const USES = /\b(?:us(?:e[sd]?|ing)|going? with|chose|run(?:s|ning)?|install\w*|on|with|through|via)\b/i;
/** Of the words that say what a statement is about, so many must be shared with the other one. */
const SHARED = 0.6;
const LEAST_SHARED = 2;

/** What of a statement is compared; made once. */
export interface Stated {
  readonly text: string;
  readonly tokens: ReadonlySet<string>;
  readonly topics: ReadonlySet<string>;
  readonly values: readonly string[];
  /** Words as they stand, in lower case. */
  readonly words: ReadonlySet<string>;
  /** Says that it revises something. */
  readonly hasCue: boolean;
  /** Tokens of the words that say so. */
  readonly cues: ReadonlySet<string>;
}

export function stated(text: string): Stated {
  const values = valuesOf(text);
  const cues = text.match(CUE) ?? [];
  const words = text.toLowerCase().split(/[^\p{L}\p{N}_@./:-]+/u);
  return {
    text,
    tokens: new Set(tokenize(text)),
    topics: new Set(topicTokens(text)),
    values,
    words: new Set(words.map((word) => word.replace(/[./:-]+$/, ''))),
    hasCue: cues.length > 0,
    cues: new Set(cues.flatMap((cue) => tokenize(cue))),
  };
}

/**
 * Whether `next` states a new value for what `former` is about, and says by its words that it does. Strict: two
 * statements that each name something of their own ("staging", "production") are about different things.
 */
export function revisesStatement(next: Stated, former: Stated): boolean {
  if (!next.hasCue || next.text === former.text) return false;
  const news = own(next, former);
  const olds = own(former, next);
  const subject = without(next.topics, [...next.cues, ...tokensMissing(news, former)]);
  const formerSubject = without(former.topics, tokensMissing(olds, next));
  if (namesFormer(next, former, subject, formerSubject)) return true;
  const shared = subject.filter((token) => formerSubject.includes(token));
  const isApart = shared.length < subject.length && shared.length < formerSubject.length;
  const share = shared.length / Math.max(1, Math.min(subject.length, formerSubject.length));
  if (isApart || share < SHARED || shared.length < LEAST_SHARED) return false;
  return olds.some((old) => news.some((fresh) => kindOf(old) === kindOf(fresh)));
}

/** "vitest instead of jest", said of what `former` says jest is used for, or of everything. */
function namesFormer(
  next: Stated,
  former: Stated,
  subject: readonly string[],
  formerSubject: readonly string[],
): boolean {
  if (!USES.test(former.text)) return false;
  const gone = captured(FORMER, next.text).filter((word) => {
    const tokens = tokenize(word);
    return tokens.length > 0 && tokens.every((token) => former.tokens.has(token));
  });
  if (gone.length === 0 || captured(FORMER, former.text).some((word) => gone.includes(word))) return false;
  const pair = [...gone, ...captured(SUCCESSOR, next.text)].flatMap(tokenize);
  const about = subject.filter((token) => !pair.includes(token));
  const shared = about.filter((token) => formerSubject.includes(token));
  return shared.length === about.length && pair.length > gone.length;
}

/** Values of the one that the other does not have. */
function own(one: Stated, other: Stated): string[] {
  return one.values.filter((value) => !other.words.has(value.toLowerCase()));
}

function kindOf(value: string): string {
  if (/^v?\d[\d.,:_%]*[a-z]{0,3}$/i.test(value)) return 'figure';
  if (/[/]/.test(value)) return 'path';
  return 'name';
}

function captured(pattern: RegExp, text: string): string[] {
  return [...text.matchAll(pattern)].map(([, word = '']) => word.toLowerCase().replace(/[./:-]+$/, ''));
}

function without(tokens: ReadonlySet<string>, gone: readonly string[]): string[] {
  return [...tokens].filter((token) => !gone.includes(token) && !/^[a-z]$/.test(token));
}

function tokensMissing(values: readonly string[], other: Stated): string[] {
  return values.flatMap(tokenize).filter((token) => !other.tokens.has(token));
}
