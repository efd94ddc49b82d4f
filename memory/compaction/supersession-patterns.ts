import { topicTokens } from '../text/keywords.ts';
import { valuesOf } from '../text/sentences.ts';
import { tokenize } from '../text/tokenizer.ts';

/** Signals a change. */
const CUE =
  /\b(?:instead|rather than|now|from now on|no longer|any ?more|not? more|actually|correction|as of|revis\w+|supersed\w+|replac\w+|renam\w+|revert\w*|bump\w*|rais(?:e[ds]?|ing)|lower(?:ed|s|ing)?|dropp?\w*|(?:chang|switch|mov|migrat|updat|upgrad|downgrad|increas|reduc)(?:e[ds]?|ed|es|ing)?)\b/gi;
/** The former value follows. */
const FORMER =
  /\b(?:instead of|rather than|no longer(?: use[sd]?| using)?|not|replac(?:e[sd]?|ing)|dropp?(?:ed|ing)?|(?:move[sd]?|moving|switch(?:ed|ing)?|migrat(?:e[sd]?|ing)|chang(?:e[sd]?|ing)|away|off|port \w+) from|away from|was)\s+(?:(?:using|use|the|our|to|port|version)\s+)*([\p{L}\p{N}_@][\p{L}\p{N}_@./:-]*)/giu;
/** The new value precedes. */
const SUCCESSOR = /([\p{L}\p{N}_@][\p{L}\p{N}_@./:-]*),?\s+(?:instead of|rather than)\b/giu;
const USES = /\b(?:us(?:e[sd]?|ing)|going? with|chose|run(?:s|ning)?|install\w*|on|with|through|via)\b/i;
/** Minimum share of common topic words. */
const SHARED = 0.6;
export const LEAST_SHARED = 2;

export interface ParsedStatement {
  readonly text: string;
  readonly tokens: ReadonlySet<string>;
  readonly topics: ReadonlySet<string>;
  /** Topics that are not part of a value. */
  readonly plain: readonly string[];
  readonly values: readonly Value[];
  readonly uses: boolean;
  /** Former values that it names. */
  readonly formers: readonly Word[];
  /** Null if it signals no change. */
  readonly cue: Cue | null;
}

interface Word {
  /** Lower case. */
  readonly word: string;
  readonly tokens: readonly string[];
}

interface Value extends Word {
  readonly kind: 'figure' | 'path' | 'name';
}

interface Cue {
  /** Topics without the words of the signal. */
  readonly topics: ReadonlySet<string>;
  readonly plain: readonly string[];
}

export function topicsOf(text: string): string[] {
  return topicTokens(text).filter((token) => !/^[a-z]$/.test(token));
}

export function parseStatement(text: string): ParsedStatement {
  const values = valuesOf(text).map((value): Value => {
    return { word: value.toLowerCase(), tokens: tokenize(value), kind: kindOf(value) };
  });
  const inValues = new Set(values.flatMap(({ tokens }) => tokens));
  const plainOf = (tokens: readonly string[]): string[] => tokens.filter((token) => !inValues.has(token));
  const topics = topicsOf(text);
  const cues = text.match(CUE);
  const cueTokens = new Set(cues?.flatMap(tokenize));
  const subject = topics.filter((token) => !cueTokens.has(token));
  return {
    text,
    tokens: new Set(tokenize(text)),
    topics: new Set(topics),
    plain: plainOf(topics),
    values,
    uses: USES.test(text),
    formers: captured(FORMER, text),
    cue: cues === null ? null : { topics: new Set(subject), plain: plainOf(subject) },
  };
}

/**
 * Whether `next` gives a new value for the subject of `former` and signals the change. Strict: statements that each name
 * something the other does not ("staging", "production") have different subjects.
 */
export function revisesStatement(next: ParsedStatement, former: ParsedStatement): boolean {
  const { cue } = next;
  if (cue === null || next.text === former.text) return false;
  const gone = former.uses ? next.formers.filter(({ tokens }) => saysAll(former, tokens)) : [];
  if (gone.length === 0 && !mayRestate(cue, former)) return false;
  const news = own(next, former);
  const olds = own(former, next);
  const subject = without(cue.topics, news, former);
  const formerSubject = without(former.topics, olds, next);
  if (gone.length > 0 && namesFormer({ text: next.text, gone, subject }, former, formerSubject)) return true;
  const shared = subject.filter((token) => formerSubject.includes(token));
  const isApart = shared.length < subject.length && shared.length < formerSubject.length;
  const share = shared.length / Math.max(1, Math.min(subject.length, formerSubject.length));
  if (isApart || share < SHARED || shared.length < LEAST_SHARED) return false;
  return olds.some((old) => news.some(({ kind }) => kind === old.kind));
}

/** Cheap pre-check. */
function mayRestate(cue: Cue, former: ParsedStatement): boolean {
  let shared = 0;
  for (const token of cue.topics) if (former.topics.has(token)) shared += 1;
  if (shared < LEAST_SHARED) return false;
  return cue.plain.every((token) => former.topics.has(token)) || former.plain.every((token) => cue.topics.has(token));
}

interface Naming {
  readonly text: string;
  readonly gone: readonly Word[];
  readonly subject: readonly string[];
}

/** "vitest instead of jest", for the use that `former` states or in general. */
function namesFormer(
  { text, gone, subject }: Naming,
  former: ParsedStatement,
  formerSubject: readonly string[],
): boolean {
  if (former.formers.some(({ word }) => gone.some((each) => each.word === word))) return false;
  const pair = [...gone, ...captured(SUCCESSOR, text)].flatMap(({ tokens }) => tokens);
  const about = subject.filter((token) => !pair.includes(token));
  return about.every((token) => formerSubject.includes(token)) && pair.length > gone.length;
}

function saysAll({ tokens }: ParsedStatement, wanted: readonly string[]): boolean {
  return wanted.length > 0 && wanted.every((token) => tokens.has(token));
}

function own(one: ParsedStatement, other: ParsedStatement): Value[] {
  if (one.values.length === 0) return [];
  const words = other.text.toLowerCase().split(/[^\p{L}\p{N}_@./:-]+/u);
  const said = new Set(words.map((word) => word.replace(/[./:-]+$/, '')));
  return one.values.filter(({ word }) => !said.has(word));
}

function kindOf(value: string): Value['kind'] {
  if (/^v?\d[\d.,:_%]*[a-z]{0,3}$/i.test(value)) return 'figure';
  if (/[/]/.test(value)) return 'path';
  return 'name';
}

function captured(pattern: RegExp, text: string): Word[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => {
    const word = found.toLowerCase().replace(/[./:-]+$/, '');
    return { word, tokens: tokenize(word) };
  });
}

/** Topics without those of values that the other statement lacks. */
function without(topics: ReadonlySet<string>, values: readonly Value[], other: ParsedStatement): string[] {
  const gone = values.flatMap(({ tokens }) => tokens).filter((token) => !other.tokens.has(token));
  return [...topics].filter((token) => !gone.includes(token));
}
