import { clip, trimEnd } from '../../common/text.ts';
import { lowestOrigin } from '../../common/turn.ts';
import type { Claim, StatedItem } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { SummaryResult } from '../models/model.ts';
import { contentTokens } from '../text/keywords.ts';
import { isNearDuplicate, sharedWords } from '../text/paraphrase.ts';
import { repeatedOrigin } from '../text/repetition.ts';
import { ASKS, asksUser, findTask, getValues, isQuestion, splitSentences } from '../text/sentences.ts';
import { readStateQuery } from '../text/state-query.ts';
import { findStatements } from '../text/statements.ts';
import { createSettled, findTakenBack, readReport, reportsDone } from '../text/validity.ts';
import { BRIEF_CHARS, LAST_ASKED, renderBrief } from './brief.ts';
import { ADVISES, CHANGED, CONCLUDES, isWeak, PRONOUN } from './turn/answer.ts';
import { isRule } from './turn/decisions.ts';
import { asQuestion, bare, beginList, clipWhole, DID, GAP, joinDeeds } from './turn/outcome.ts';
import type { TurnState } from './turn-state.ts';

/** A turn with what it leaves behind. */
export interface ReadTurn {
  readonly turn: TurnText;
  readonly state: TurnState;
}

const BRIEF = {
  ...{ goal: 'Goal: ', done: 'Done: ', found: 'Found: ', stands: 'Stands: ' },
  ...{ decided: 'Decided: ', open: 'Open: ', next: 'Next: ' },
} as const;
const GOAL_CHARS = 320;
/** The first within which the brief has room. */
const DONE_CHARS = [320, 240, 160];
const OFFER_CHARS = 160;
const STAND_CHARS = 160;
const MOST_DONE = 6;
const FOUND_CHARS = 200;
const MOST_FOUND = 4;
/** Of the words of what was found, in the answer of a turn with edits. */
const OVERTAKEN_SHARE = 0.3;
const MOST_DECIDED = 4;
const MOST_OPEN = 5;
const MOST_RULES = 8;

type Source = Pick<Claim, 'sources' | 'origin'>;

const claim = (mark: string, text: string, source: Source): Claim[] =>
  text === '' ? [] : [{ ...source, text: `${mark}${bare(text)}` }];

/** Of a text with words of the answer. */
const saidIn = ({ turn, state }: ReadTurn, text: string): Source => ({
  sources: [turn.turnId],
  origin: lowestOrigin([repeatedOrigin(text, [turn], state.saidOrigin), turn.userOrigin ?? 'assistant']),
});

const says = (mark: string, read: ReadTurn, text: string): Claim[] => claim(mark, text, saidIn(read, text));

/** Of a decision or an open item. */
const statedIn = ({ turn, origin }: StatedItem): Source => ({
  sources: [turn],
  origin: lowestOrigin([origin, 'assistant']),
});

/** The state of the work: from outcomes, decisions and open items, never from prompts alone. */
export function getBrief(turns: readonly ReadTurn[], old: readonly Claim[]): SummaryResult['brief'] {
  const rest = (mark: string): Claim[] => old.filter(({ text }) => text.startsWith(mark));
  const last = turns.findLast(({ state }) => state.outcome !== '');
  const former = [...rest(BRIEF.done), ...rest(BRIEF.stands)];
  let done: Claim[] = [];
  const found: Claim[] = [];
  const decisions = turns.flatMap(({ state }) => state.decisions.filter(({ by }) => by === 'user'));
  const takenBack = decisions.map(({ text }) => findTakenBack(text));
  const decided = decisions.filter(({ text }) => !takenBack.includes(text) && !isRule(text));
  const rules = turns.flatMap(({ turn, state }) =>
    state.rules.map((text): Claim => ({ text, sources: [turn.turnId] })),
  );
  const stillOpen = rest(BRIEF.open).filter(({ text }) => !isSettled(text.slice(BRIEF.open.length), turns));
  const open = findOpen(turns).flatMap((item) => claim(BRIEF.open, item.text, statedIn(item)));
  const isLabeled = ({ text }: Claim): boolean => Object.values(BRIEF).some((mark) => text.startsWith(mark));
  const hints = distinct([...old.filter((each) => !isLabeled(each) && isRule(each.text)), ...rules]).slice(-MOST_RULES);
  const all = [...rest(BRIEF.decided), ...decided.flatMap((item) => claim(BRIEF.decided, item.text, statedIn(item)))];
  // What was only let done fills what others leave.
  const accepted = turns.flatMap(({ turn, state }) => {
    const source = statedIn({ text: state.accepts, turn: turn.turnId, origin: state.answersOrigin });
    return turn.edited && state.accepts.length > SAYS_LITTLE ? claim(BRIEF.decided, state.accepts, source) : [];
  });
  let newest = distinct(all).slice(-MOST_DECIDED);
  // A small step at the end does not tell where the work is: the last report of several changes does.
  const isSmall = last !== undefined && last.state.deeds.length <= 1;
  const getReports = (): Claim[] => (isSmall ? done.slice(-1).filter(({ text }) => text.includes('; ')) : []);
  const getActive = (): Claim[] => [
    ...getGoal(turns, rest(BRIEF.goal)),
    ...done.filter((each) => !getReports().includes(each)),
    ...found,
    ...getReports().map((each) => ({ ...each, text: each.text.replace(BRIEF.done, BRIEF.stands) })),
    ...(last === undefined ? rest(BRIEF.stands) : says(BRIEF.stands, last, getStand(last.state))),
    ...newest,
    ...distinct([...stillOpen, ...open]).slice(-MOST_OPEN),
    ...turns.slice(-1).flatMap((read) => says(BRIEF.next, read, getNext(read.state))),
    // A line without sources was typed by the owner of the file.
    ...old.filter(({ sources }) => sources.length === 0),
  ];
  const isTooLong = (): boolean => renderBrief({ active: getActive(), hints }).length > BRIEF_CHARS;
  for (const chars of DONE_CHARS) {
    done = getDeeds(turns, last, former, chars);
    if (!isTooLong()) break;
  }
  if (isTooLong()) newest = newest.map((each) => ({ ...each, text: withShortOffer(each.text) }));
  while (done.length + newest.length > 1 && isTooLong())
    if (done.length >= newest.length) done = withMost(done, done.length - 1);
    else newest.shift();
  const findings = getFindings(turns, last, rest(BRIEF.found));
  for (const each of findings.toSorted((one, other) => Number(concludes(other)) - Number(concludes(one)))) {
    found.push(each);
    if (found.length > MOST_FOUND || isTooLong()) found.pop();
  }
  for (const each of accepted.toReversed()) {
    const before = newest;
    newest = [{ ...each, text: withShortOffer(each.text) }, ...before];
    if (newest.length > MOST_DECIDED || isTooLong()) newest = before;
  }
  return { active: getActive(), hints };
}

/** What each turn with edits came to, without what was taken back, and without what the brief tells of the last turn. */
function getDeeds(turns: readonly ReadTurn[], last: ReadTurn | undefined, before: readonly Claim[], maxChars: number) {
  const tell = (text: string, source: Source): Claim[] =>
    claim(BRIEF.done, beginList(text, maxChars) || clip(text, maxChars), source);
  const former = before.flatMap((old) => {
    if (old.text.startsWith(BRIEF.done)) return tell(old.text.slice(BRIEF.done.length), old);
    const told = findStatements(old.text.slice(BRIEF.stands.length)).map(({ text }) => text);
    return last === undefined ? [] : tell(getDone(told), old);
  });
  const own = turns.map((read, at): Claim[] => {
    const { turn, state } = read;
    const telling = (text: string): Claim[] => tell(text, saidIn(read, text));
    if (turn.edited !== true || turns[at + 1]?.state.amends === true) return [];
    const isTold = (text: string): boolean =>
      turn === last?.turn && state.outcome.includes(bare(text).slice(0, SAME_CHARS));
    const deeds = state.deeds.filter((text) => !isTold(text));
    const text = deeds.length > 1 ? joinDeeds(deeds, maxChars) : getDone(state.said);
    if (turn === last?.turn) return isTold(text) ? [] : telling(text);
    const isSmall = state.outcome !== '' && isWeak(state.outcome) && contentTokens(state.asked).length >= LEAST_TASK;
    return telling(text || (isSmall ? getStand(state) : ''));
  });
  const kept: Claim[] = [];
  for (const [at, claims] of [former, ...own].entries()) {
    const edits = turns.slice(0, Math.max(0, at - 1)).findLast(({ turn }) => turn.edited)?.turn.turnId;
    const isLast = edits === undefined || kept.at(-1)?.sources.includes(edits);
    if (isLast && turns[at - 1]?.state.said.some((text) => UNDONE.test(text))) kept.pop();
    kept.push(...claims);
  }
  return withMost(distinct(kept), MOST_DONE);
}

/** Keeps what the user answered, and the question that the offer ends with. */
function withShortOffer(text: string): string {
  const at = text.search(/(?:” to|approved:) “/);
  const offer = at === -1 ? '' : text.slice(at);
  if (offer.length <= OFFER_CHARS) return text;
  const end = /(?:(?:^” to “|(?<=[.;…?!]))(?:[^.;…?!“”]|\.(?=\S)){10,120}\?)?”$/.exec(offer)?.[0] ?? '';
  return `${text.slice(0, at)}${clip(offer.slice(0, offer.length - end.length), OFFER_CHARS - end.length)}${end}`;
}

/** What turns without edits came to, with what was asked, unless an edit since tells of the same. */
function getFindings(turns: readonly ReadTurn[], last: ReadTurn | undefined, former: readonly Claim[]): Claim[] {
  const isOvertaken = (text: string, later: readonly ReadTurn[]): boolean =>
    later.some(({ turn, state: { said } }) => turn.edited && sharedWords(text, said.join(' ')) >= OVERTAKEN_SHARE);
  const own = turns.flatMap((read, at): Claim[] => {
    const { turn, state } = read;
    const { asked, isReply, said } = state;
    const [next, ...later] = turns.slice(at + 1);
    const text = clipWhole(said, FOUND_CHARS, FOUND_CHARS);
    const question = isReply ? '' : asQuestion(findTask(asked));
    const isNamed = ADVISES.test(text) || text.includes('`') || getValues(text).length > 0;
    // A conclusion needs what it is about.
    if (!isNamed || (question === '' && CONCLUDES.test(text))) return [];
    const isWhole = text.length >= SAYS_LITTLE && !text.startsWith(GAP) && !PRONOUN.test(text) && !DID.test(text);
    if (turn === last?.turn || turn.edited || next?.turn.edited || next?.state.amends || !isWhole) return [];
    // What the reply decided about the advice is told as a decision.
    const isDecided = next?.state.isReply === true && next.state.decisions.length > 0 && ADVISES.test(text);
    return isDecided || isOvertaken(text, later) ? [] : claim(BRIEF.found, `${question}${text}`, saidIn(read, text));
  });
  return distinct([...former.filter(({ text }) => !isOvertaken(text, turns)), ...own]);
}

const concludes = ({ text }: Claim): boolean => ADVISES.test(text) || CONCLUDES.test(text);

/** Those that name most things, and always the last. */
function withMost(deeds: Claim[], most: number): Claim[] {
  if (deeds.length <= most) return deeds;
  const counts = deeds.slice(0, Math.max(1, deeds.length - 1)).map(({ text }) => getValues(text).length);
  return withMost(deeds.toSpliced(counts.indexOf(Math.min(...counts)), 1), most);
}

/** Tells why, or what may be. */
const REASONS = /\b(?:fail(?:s|ing)|because|would|could|should|might)\b/i;
/** Takes back all that was done last. */
const UNDONE = /^(?:i(?:'ve)? )?(?:reverted|undid)(?: (?:that|it|those|these|them|both|all|the changes?)\b|[.!]|$)/i;

/** What a turn did, in one statement; '' where it does not say. */
function getDone(said: readonly string[]): string {
  const told = said.filter((text) => !isWeak(text) && !text.startsWith(GAP) && !PRONOUN.test(text));
  const others = told.filter((text) => !REASONS.test(text));
  const changes = others.filter((text) => CHANGED.test(text) && /\bnow\b/i.test(text));
  const deeds = [...told.filter((text) => DID.test(text)), ...others.filter(reportsDone), ...changes];
  const named = deeds.filter((text) => text.includes('`') || getValues(text).length > 0);
  return [...named, ...deeds][0] ?? '';
}

const SAYS_LITTLE = 60;
/** Texts of one answer that begin with the same characters are one. */
const SAME_CHARS = 24;

/** How the last turn ended; with its request where that says too little. */
function getStand({ asked, outcome }: TurnState): string {
  return isWeak(outcome) && outcome.length < SAYS_LITTLE && asked !== ''
    ? `${bare(outcome)} (“${clip(bare(asked), STAND_CHARS)}”)`
    : outcome;
}

/** The offer, without what the outcome says already. */
function getNext({ offer, outcome }: TurnState): string {
  const asked = splitSentences(offer).at(-1) ?? '';
  const before = bare(offer.slice(0, offer.length - asked.length).trim());
  return before !== '' && outcome.includes(before) ? asked : offer;
}

/** Says no to something, or points to what was said before. */
export const FOLLOWS =
  /^(?:but|no(?:pe)?|not|stop|nein|hm+|sorry|again|still|same|wait|actually|instead|why|oh|ah|it|this|that|th[eo]se|they|s?he|aber|das|dies\p{L}{0,2}|pero|eso|esto|mais)(?![\p{L}'])/iu;
const LEAST_TASK = 3;
const SAYS_ALL = 6;
/** Begins the request in a longer prompt. */
const REQUESTS =
  /^(?:(?:so|and|now|ok(?:ay)?|please)[\s,]+)*(?:please|(?:can|could|would) (?:you|we)|i(?:'d| would) like|i (?:want|need)|let'?s|we (?:should|need|want)|make sure|bitte|kannst du|ich (?:möchte|will|brauche)|puedes|quiero|necesito)(?!\p{L})/iu;

/** The first task of the session, and the last one; what was only pasted counts where nothing was typed. */
function getGoal(turns: readonly ReadTurn[], old: readonly Claim[]): readonly Claim[] {
  const isAsked = ({ asked, isReply }: TurnState) => !isReply && asked !== '' && readStateQuery(asked) === null;
  const asked = turns.filter(({ state }) => isAsked(state));
  const typed = asked.filter(({ state }) => state.isTyped);
  const tasks = asked.filter((each, at) => (at === 0 || each.state.isTyped || each.turn.edited) && isTask(each));
  const [former] = old;
  const own = [tasks, ...(former === undefined ? [typed, asked] : [])].find((each) => each.length > 0) ?? [];
  const [begin] = own;
  const end = asked.findLast(isSaid) ?? begin;
  if (begin === undefined || end === undefined) return old;
  const begun = former?.text.slice(BRIEF.goal.length).split(LAST_ASKED)[0] ?? '';
  const words = new Set(contentTokens(turns.flatMap(({ state }) => [state.asked, ...state.said]).join(' ')));
  const continues = contentTokens(begun).some((word) => words.has(word));
  const [first, last] = [continues ? begun : getRequest(begin), getRequest(end)];
  const both = [first, last].map((each) => clip(each, GOAL_CHARS / 2)).join(LAST_ASKED);
  const text = last.startsWith(trimEnd(first, '…')) ? clip(first, GOAL_CHARS) : both;
  const before = continues ? former : undefined;
  const sources = [...new Set([before?.sources[0] ?? begin.turn.turnId, end.turn.turnId])];
  const used = before === undefined ? [begin, end] : [end];
  const isOwn = used.every(({ state }) => state.isTyped) && (before === undefined || before.origin !== undefined);
  const origins = used.map(({ turn }) => turn.userOrigin ?? 'assistant');
  const origin = lowestOrigin([...origins, before?.origin ?? 'assistant']);
  return [{ text: `${BRIEF.goal}${text}`, sources, ...(isOwn ? { origin } : {}) }];
}

/** Says itself what is wanted, and is no question that was only answered. */
function isTask({ turn, state }: ReadTurn): boolean {
  const task = findTask(state.asked);
  if (FOLLOWS.test(task) || contentTokens(task).length < LEAST_TASK) return false;
  if (turn.edited === true) return true;
  return !splitSentences(state.asked).every((each) => ASKS.test(findTask(each)) && !each.includes(','));
}

/** Says something itself; several lines in which nothing was typed, and for which nothing was edited, may be pasted. */
function isSaid({ turn: { user, edited }, state: { asked, isTyped } }: ReadTurn): boolean {
  const isOwn = isTyped || edited === true || !user.trim().includes('\n') || REQUESTS.test(asked);
  return isOwn && contentTokens(findTask(asked)).length > (isQuestion(asked) ? 0 : 1);
}

/** Of a longer prompt, from the sentence on that asks for something. */
function getRequest({ state: { asked } }: ReadTurn): string {
  const sentences = splitSentences(asked);
  const at = asked.length > GOAL_CHARS / 2 ? sentences.findIndex((each) => REQUESTS.test(each)) : 0;
  const request = sentences.slice(Math.max(0, at)).join(' ');
  return bare(findTask(contentTokens(request).length < SAYS_ALL ? asked : request));
}

/** Without what a later claim repeats, or quotes with what it answers. */
function distinct(claims: readonly Claim[]): Claim[] {
  return claims.filter(({ text }, at) => {
    const words = `“${bare(text.replace(BRIEF.decided, ''))}`;
    const isTold = claims.some((other) => other.text.includes(words));
    return !isTold && !claims.slice(at + 1).some((later) => isNearDuplicate(later.text, text));
  });
}

/** Items that no later turn settles; a question is over with the next turn. */
export function findOpen(turns: readonly ReadTurn[]): StatedItem[] {
  return turns.flatMap(({ state }, at) => state.open.filter(({ text }) => !isSettled(text, turns.slice(at + 1))));
}

function isSettled(item: string, later: readonly ReadTurn[]): boolean {
  // Also over is what the user let the assistant do, with the offer that stands beside it.
  const isTaken = later.slice(0, 1).some(({ state }) => state.isLeave && state.answers.includes(item));
  if (isTaken || (later.length > 0 && asksUser(item))) return true;
  const texts = later.flatMap(({ state: { asked, said } }) => [...splitSentences(asked), ...said]);
  return texts.flatMap((text) => readReport(text) ?? []).some(createSettled(item));
}
