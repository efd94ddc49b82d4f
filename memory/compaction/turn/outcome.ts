import { clip, trimEnd } from '../../../common/text.ts';
import { contentTokens } from '../../text/keywords.ts';
import { getValues } from '../../text/sentences.ts';
import { type Statement, shorten } from '../../text/statements.ts';
import { CHANGED, CHANGES, CONCLUDES, fullStop, isTelling, isWeak, PASSES, PRONOUN } from './answer.ts';
import { isOption } from './options.ts';

export const OUTCOME_CHARS = 420;
export const VERDICT_CHARS = 240;
const IS_DONE = /^(?:done|fixed|committed|pushed|merged|erledigt|fertig|hecho|listo|完成|好了|완료)[.!]*$/i;
/** Headings of lists that only say where. */
export const ASIDE =
  /^(?:(?:rejected|discarded|ruled out|not (?:chosen|taken))\b|alternatives considered|(?:verworfen|abgelehnt|descartad[oa]s?|rechazad[oa]s?)(?!\p{L})|已否决|기각|files?\b|sources?\b|usage\b|examples?\b|references?\b|how to (?:run|test)|visual|test results?|what (?:it|this) does|(?:key )?(?:benefits|advantages|strengths)|pros$|praise|legend\b)/iu;

/** Begins with what was done. */
export const DID =
  /^(?:(?:i(?:'ve| have)?|also|(?:the )?fix:|(?:key )?changes(?: made)?:|now|both|\d\.|\p{L}{3,14}ly) ){0,3}(?:\p{L}{2,14}ed|split|(?:re)?wrote|built|made|set)\b|^now (?:all|both|each|every|the)\b/iu;

/** Before a statement whose subject is in one that is left out. */
export const GAP = '… ';

/** What the answer says was done: statements that begin so, and the items of lists of it. */
export function findDeeds(statements: readonly Statement[]): string[] {
  const told = statements.filter((each) => isTelling(each) && !ASIDE.test(each.heading) && !isOption(each));
  const deeds = told.flatMap(({ text, short, items, lead, heading }) => {
    const outer = items.flatMap(({ isNested, ...item }, at) => {
      const until = items.findIndex((other, place) => place > at && !other.isNested);
      const below = items.slice(at + 1, until < 0 ? undefined : until).map((each) => each.text);
      return isNested ? [] : [[trimEnd(item.text, ':'), ...(below.length === 0 ? [] : [below.join(', ')])].join(': ')];
    });
    const changed = CHANGES.test(lead) ? outer : outer.filter((item) => CHANGED.test(item));
    if (outer.length < 2 || changed.length <= outer.length / 2)
      return DID.test(text) ? [items.length > 0 ? short : text] : [];
    const isSentence = CHANGED.test(lead) && lead !== `${heading}: ` && contentTokens(lead).length >= LEAST_LEAD;
    return [...(isSentence ? [lead] : []), ...changed];
  });
  return [...new Set(deeds.map((text) => trimEnd(text, ' …:.')))].filter((text) => contentTokens(text).length > 1);
}

/** A lead-in with fewer words of content only announces. */
const LEAST_LEAD = 3;
const LEAST_HEADLINE = 6;
/** The least that a deed is cut to. */
const DEED_CHARS = 64;
/** Leads in what was cut. */
const DANGLING = /(?: (?:that|to|both|with|from|as|in|into|and|for|by|the|an?|of|on)){0,3}[:：]?(?: \d)?$/i;

/** Those that name most, and the first where it is a sentence of its own, each cut so that all have room. */
export function joinDeeds(deeds: readonly string[], maxChars: number): string {
  const most = Math.max(1, Math.floor(maxChars / DEED_CHARS));
  const rank = (text: string): number =>
    text === deeds[0] && contentTokens(text).length >= LEAST_HEADLINE
      ? Number.POSITIVE_INFINITY
      : getValues(text).length;
  const ranked = deeds.toSorted((one, other) => rank(other) - rank(one));
  const shown = deeds.filter((text) => ranked.indexOf(text) < most);
  const join = (room: number): string => shown.map((text) => shortenDeed(text, room)).join('; ');
  let room = Math.floor(maxChars / shown.length) - 2;
  while (room < maxChars && join(room + 10).length <= maxChars) room += 10;
  return join(room);
}

/** Without a lead-in, or half a name, at its end. A path alone says nothing. */
function shortenDeed(whole: string, maxChars: number): string {
  const short = shorten(whole, maxChars);
  const text = (CHANGED.test(short) ? short : clip(shorten(whole, whole.length), maxChars)).replace(DANGLING, '');
  return text.split('`').length % 2 === 0 ? `${text.slice(0, text.lastIndexOf('`')).trimEnd()}…` : text;
}

/** The first statement where it is short, conclusions, then the end backwards: answers conclude last. */
export function concluding(statements: readonly Statement[]): Statement[] {
  const telling = statements.filter(isTelling);
  const main = telling.filter((each) => !ASIDE.test(each.heading) && !isOption(each));
  const chosen = new Map<Statement, string>();
  let room = OUTCOME_CHARS;
  const take = (each: Statement, text: string | null = each.text): boolean => {
    if (chosen.has(each)) return true;
    const size = (text ?? '').length + 2 + (PRONOUN.test(each.text) ? GAP.length : 0);
    if (text === null || size > room) return false;
    chosen.set(each, text);
    room -= size;
    return true;
  };
  const begin = ({ text, short, items: { length } }: Statement): string | null => {
    if (length === 0) return null;
    if (short.length < room - 4) return short;
    return room - 4 < OUTCOME_CHARS / 2 ? null : beginList(text, room - 4, ` … (${length} in all)`) || null;
  };
  const strong = main.filter(({ text }) => !isWeak(text));
  const [first] = strong;
  if (first !== undefined && first.text.length <= VERDICT_CHARS) take(first);
  const changes = strong.filter(({ heading, lead, text }) =>
    [lead, CHANGED.test(text) ? heading : ''].some((each) => CHANGES.test(each)),
  );
  for (const each of changes.slice(0, 1)) if (!take(each)) take(each, begin(each));
  for (const each of strong.filter(({ text }) => CONCLUDES.test(text)).slice(-2)) take(each);
  const below = ({ heading }: Statement, at: number): boolean =>
    CONCLUDES.test(heading) && strong[at - 1]?.heading !== heading;
  for (const each of strong.filter(below).slice(-1)) take(each);
  for (const each of strong.toReversed()) if (!take(each) && !take(each, begin(each))) break;
  for (const each of main.length > 0 ? main : telling) take(each);
  const hasSubject = (each: Statement): boolean => {
    const before = statements[statements.indexOf(each) - 1];
    return before === undefined || (isTelling(before) && take(before));
  };
  if (chosen.size === 0)
    return telling.length > 0 ? telling.slice(-1) : statements.filter(({ text }) => IS_DONE.test(text)).slice(-1);
  const told = telling.flatMap((each) => {
    const text = chosen.get(each);
    return text === undefined
      ? []
      : [{ ...each, text: PRONOUN.test(text) && !hasSubject(each) ? `${GAP}${text}` : text }];
  });
  return told.toSorted((one, other) => Number(PASSES.test(one.text)) - Number(PASSES.test(other.text)));
}

/** A text that is too long, with the first items of the list in it; '' where it has none. */
export function beginList(text: string, maxChars: number, more = ' …'): string {
  if (text.length <= maxChars) return text;
  const at = text.lastIndexOf('; ', maxChars - more.length);
  return at <= 0 ? '' : `${text.slice(0, at)}${more}`;
}

/** The texts where they fit; else the most telling that fits and what fits beside it; at least one, cut. */
export function clipOutcome(lines: readonly string[], maxChars: number): string {
  if (lines.join(' ').length + lines.length <= maxChars) return joinWithin(lines, maxChars);
  const strong = lines.filter((text) => !isWeak(text));
  const fitting = strong.filter((text) => text.length <= maxChars);
  if (fitting.length === 0) return clip(strong[0] ?? lines[0] ?? '', maxChars);
  const rank = (text: string): number => (CONCLUDES.test(text) ? 2 : 0) + Math.min(2, getValues(text).length);
  const chosen = new Set(fitting.toSorted((one, other) => rank(other) - rank(one)).slice(0, 1));
  const withGap = (text: string): string => {
    const at = lines.indexOf(text);
    return PRONOUN.test(text) && at > 0 && !chosen.has(lines[at - 1] as string) ? `${GAP}${text}` : text;
  };
  let room = maxChars - withGap([...chosen][0] ?? '').length;
  for (const text of strong) {
    if (chosen.has(text) || withGap(text).length + 2 > room) continue;
    chosen.add(text);
    room -= withGap(text).length + 2;
  }
  return joinWithin(strong.filter((text) => chosen.has(text)).map(withGap), maxChars);
}

/** The same, of texts that fit whole; where only the weak do, the first other one within `most`, or its first items. */
export function clipWhole(lines: readonly string[], maxChars: number, most: number): string {
  const within = lines.filter(({ length }) => length < maxChars);
  const strong = lines.filter((text) => !isWeak(text));
  if (strong.some((text) => within.includes(text))) return clipOutcome(within, maxChars);
  return beginList(strong.find(({ length }) => length < most) ?? strong[0] ?? '', most);
}

/** Whole texts while they fit; where that is little, the next is cut. */
export function joinWithin(texts: readonly string[], maxChars: number): string {
  let text = '';
  for (const each of texts) {
    if (text !== '' && text.length + each.length + 2 > maxChars)
      return text.length < maxChars * 0.4 ? `${text}${fullStop(text)} ${clip(each, maxChars - text.length - 2)}` : text;
    text = text === '' ? clip(each, maxChars) : `${text}${fullStop(text)} ${each}`;
  }
  return text;
}

export const bare = (text: string): string => trimEnd(text, '.;。');

export const asQuestion = (asked: string, maxChars = 80): string =>
  asked === '' ? '' : `“${clip(bare(asked), maxChars)}” → `;
