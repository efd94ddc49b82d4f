import { clip, oneLine, trimEnd } from '../../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../../common/turn.ts';
import { DIALOGS, getAnswers, type TurnText } from '../../model/turn.ts';
import { contentTokens } from '../../text/keywords.ts';
import { repeatedOrigin } from '../../text/repetition.ts';
import { asksUser, findTask, getValues, isAsking, isQuestion, splitSentences } from '../../text/sentences.ts';
import { findStatements, type Statement } from '../../text/statements.ts';
import { findSpoken, getOwn } from '../../text/typed-text.ts';
import { ADVISES, ITEM_CHARS, ITEMS, inContext, isTelling, OFFER, readAnswer, SHORT_QUESTION } from './answer.ts';
import { isDecision } from './decisions.ts';
import { OPEN_ITEM } from './open-items.ts';
import { findOptions, getName, nameOption, OF_OPTION, pickOptions } from './options.ts';
import { ASIDE, joinWithin } from './outcome.ts';

export const ASKED_CHARS = 240;
/** A longer reply states its subject itself. */
const REPLY_WORDS = 25;
const REPLY_CHARS = 120;
export const SHORT_REPLY = 6;
/** Draws the conclusion from what was just said. */
const THEREFORE =
  /\bthen(?=[.!,]*$|, |,? (?:so|because|since)\b)|^(?:ok(?:ay)?,? )?(?:dann|entonces|pues) (?!noch|als)/iu;
const THEREFORE_WORDS = 12;
export const REPLY =
  /^(?:y|n|yes|yep|yeah|yea|ye|yup|ja|nein|no|nope|sure|k|ok(?:ay)?|do it|do that|go ahead|please do|sounds good|both|all|neither|none|the (?:first|second|third|last)|let'?s|sí|si|vale|dale|claro|adelante|oui|non|d'accord|passt|genau|gerne?|beides?|ambos|ambas|les deux|las dos|sim|não|sì|va bene|да|нет|давай|好的?|是的?|对|不|可以|没问题|都要?|행|네|응|좋아요?|아니요?|둘 다|はい|いいえ|うん)(?![\p{L}\p{N}])/iu;
/** Such a reply only rejects something, so the title is taken from the outcome. */
export const SAYS_NO = /^(?:no|nope|nein|non)\b/i;
const BARE =
  /^(?:y|yes|yep|yeah|yea|ye|yup|ja|sure|k|ok(?:ay)?|do it|do that|go ahead|please(?: do)?|sounds good|sí|si|vale|dale|claro|adelante|oui|d'accord|passt|gerne?|sim|sì|va bene|да|давай|好的?|是的?|对|可以|네|응|좋아요?|はい)?[\s.,!]*(?:(?:please(?: do)?|do it|do that|go ahead|let'?s (?:do|try|add|go for) (?:it|this|that)|let'?s)[\s.!]*)?$/iu;
export const COMMAND = /^\/[\w:-]{1,60}(?:\s|$)/;
/** Asks for a choice, not for a fact. */
const ASKS_CHOICE =
  /\b(?:should|which|prefer\w*|or(?! (?:are|is|did|was|were)\b)|ok(?:ay)?|agreed?)\b|(?<!\p{L})(?:soll(?:en|te)?|welche\p{L}?|oder|prefieres|cuál|quel(?:le)?|qual[e]?|ou?|или|как\p{L}{2,3})(?!\p{L})|[哪吗]|还是|아니면|それとも/iu;

const PICKED = /"([\s\S]{1,400}?)"="([^"]{1,300})"/g;
const APPROVED = /^User has approved [\s\S]*?\n## Approved Plan[^\n]{0,40}:\s+(?:#+ )?(\S[^\n]{0,200})([\s\S]*)/;

/** What the user picked in the client's dialogs, and the plans that they approved. */
export function findAnswered({ parts, userOrigin }: TurnText): { readonly text: string; readonly origin: Origin }[] {
  if (userOrigin !== undefined) return [];
  return parts.flatMap(({ kind, tool, text }, at) => {
    if (kind !== 'tool_result' || !DIALOGS.has(tool)) return [];
    const asked = parts.slice(0, at).findLast((part) => part.kind === 'tool_use' && part.tool === tool);
    const origin = isCleanOrigin(asked?.origin ?? 'external') ? 'user' : 'external';
    const [, plan, steps = ''] = (tool === 'ExitPlanMode' && APPROVED.exec(text)) || [];
    const picked = tool === 'ExitPlanMode' ? [] : [...text.matchAll(PICKED)];
    const texts =
      plan === undefined
        ? picked.map(([, to, answer]) => `“${answer}” to “${to}”`)
        : [`plan approved: “${joinWithin([plan, findStatements(steps)[0]?.text ?? ''], ASKED_CHARS)}”`];
    return texts.map((each) => ({ text: each, origin }));
  });
}

/** A pronoun among the first words; “decided that …” has none. */
const STARTS_BACK =
  /^(?:[^\s,.]+,? ){0,4}(?:(?:it|this|that(?<!\b(?:decided|agreed|concluded|confirm(?:ed)?) that)|these|those|them)\b|(?:das|dies|es[oe]|est[oe])(?=[,.;!]|$))/iu;

export interface Reply {
  /** The reply with what it answers. */
  readonly text: string;
  /** Not the user's where the question comes from elsewhere. */
  readonly origin: Origin;
  /** The question or offer; '' where an option was picked. */
  readonly question: string;
  /** Answers in the user's own words: it is a decision and also a prompt. */
  readonly isFree: boolean;
  /** It decides nothing: it only lets the assistant do what it offers, or says what is left to do. */
  readonly isLeave: boolean;
  /** It takes one of several, or says no. */
  readonly isChoice: boolean;
  /** The others, where it takes one first. */
  readonly later?: readonly string[];
}

/** Said of an option that is named otherwise. */
const FIRST =
  /(?<!the )\bfirst\b(?! (?:one|option))|(?<!\p{L})(?:zuerst|erstmal|(?<!el )primero|d'abord)(?!\p{L})|先|먼저/iu;

/** A short reply with the question, offer or option that it answers; null where it answers none. */
export function getReply(typed: string, turn: TurnText, before: TurnText | undefined): Reply | null {
  const whole = oneLine(typed);
  // Of a longer one only what it says no to; more of it states its subject itself.
  const isPart = whole.split(' ').length > REPLY_WORDS && SAYS_NO.test(whole);
  const reply = isPart ? (findStatements(typed)[0]?.text ?? '') : whole;
  if (before === undefined || turn.userOrigin !== undefined || reply === '') return null;
  if (reply.split(' ').length > REPLY_WORDS || /[?？]$/.test(reply) || COMMAND.test(reply)) return null;
  const { said, origin } = readAnswer(before);
  const getOrigin = quoting(before, origin);
  const { options, words } = findOptions(said);
  const { labels, picked, isChosen, isSeveral } = pickOptions(reply, options, words);
  if (picked.length > 0) {
    const others = [...options].filter(([label]) => !labels.includes(label)).map(([, text]) => getName(text));
    const isSole = picked.length === 1 && others.length <= 4 && others.length > 0 && isChosen && !isSeveral;
    const room = Math.floor((ITEM_CHARS - reply.length) / picked.length);
    const isOffer = said.slice(-2).some((each) => OFFER.test(each.text)) && !OF_OPTION.test(picked[0] ?? '');
    const rejected =
      isSole && words.size === 0
        ? clip(`; ${isOffer || FIRST.test(reply) ? 'left out' : 'rejected'}: ${others.join(', ')}`, 120)
        : '';
    const isLabeled = !isChosen || isSeveral;
    const quotes = picked.map((text, at) => `${isLabeled ? `${labels[at]}: ` : ''}“${clip(text, room)}”`);
    const text = `“${reply}”, that is ${quotes.join(', ')}${rejected}`;
    const later = FIRST.test(reply) ? others.map((each) => `${each} (after ${getName(picked[0] ?? '')})`) : [];
    return { text, origin: getOrigin(text), question: '', isFree: false, isLeave: false, isChoice: true, later };
  }
  const asks = findAsked(reply, said);
  const isAnswer = asks !== undefined && isAnswerTo(reply, asks);
  const isChosenFrom = isAnswer || isAnswered(reply, said, options.size > 0);
  const question = isChosenFrom ? asks : isCleanOrigin(origin) ? findTakenUp(reply, said) : undefined;
  if (question === undefined) return null;
  const room = Math.max(SHORT_QUESTION, ITEM_CHARS - reply.length - 10);
  const asked = inContext(said, question, room);
  const context = clip(nameOption(asked, options, [asked]), room);
  const text = `“${reply}” to “${context}”`;
  const isOwn = !BARE.test(reply) && (SAYS_NO.test(reply) || getValues(reply).length > 0);
  const isTaken = question !== asks;
  const isLeave = isTaken
    ? OPEN_ITEM.test(reply) && !isDecision(reply)
    : BARE.test(reply) && [question.text, context].some((each) => OFFER.test(each));
  const isChoice = (isOwn && REPLY.test(reply)) || isDecision(reply) || (isTaken && !isLeave && !BARE.test(reply));
  return { text, origin: getOrigin(text), question: context, isFree: isPart || !isAnswer, isLeave, isChoice };
}

/** The last question or offer; of several, the one that has most words of the reply. */
function findAsked(reply: string, said: readonly Statement[]): Statement | undefined {
  const tokens = contentTokens(reply);
  const count = ({ text }: Statement): number => contentTokens(text).filter((token) => tokens.includes(token)).length;
  const asked = said.filter(({ text }) => asksUser(text) || OFFER.test(text)).toReversed();
  return asked.toSorted((one, other) => count(other) - count(one))[0];
}

const ANSWER_NUMBER = /(?:^|[\s,;(])q?(\d{1,2})[.):]\s+/i;

/** Numbered answers, each to what has its number in the answer before, a question or what a yes is for, and what follows. */
export function findNumbered(typed: string, { userOrigin }: TurnText, before: TurnText | undefined) {
  const [lead = '', ...parts] = typed.trim().split(ANSWER_NUMBER, 2 * ITEMS + 1);
  const [lastAnswer = '', ...others] = (parts.pop() ?? '').split(/\n\s*\n/);
  parts.push(lastAnswer);
  if (before === undefined || userOrigin !== undefined || findTask(lead) !== '') return { answers: [], after: [] };
  const { said, origin } = readAnswer(before);
  const { options: asked } = findOptions(said);
  const getOrigin = quoting(before, origin);
  const bound = parts.flatMap((number, at) => {
    const [question = '', answer] = [asked.get(number), trimEnd(oneLine(parts[at + 1] ?? ''), ' ,;.')];
    const isBound = at % 2 === 0 && question !== '' && answer !== '' && !isAsking(splitSentences(answer)[0] ?? '');
    const text = `“${clip(answer, REPLY_CHARS)}” to “${clip(question, ITEM_CHARS / 2)}”`;
    const binds = isBound && (/[?？]/.test(question) || REPLY.test(answer));
    return binds ? [{ question, answer, text, origin: getOrigin(text) }] : [];
  });
  // A list that answers nothing has no word of what was asked.
  const isAnswer = bound.some(({ question, answer }) => REPLY.test(answer) || sharesWord(answer, question));
  const answers = isAnswer || bound.every(({ answer }) => contentTokens(answer).length < 2) ? bound : [];
  const after = others.join('\n');
  return { answers, after: getOwn(findSpoken(findStatements(after), after, getAnswers(before).join('\n'))) };
}

/** The user's, unless what they answer comes from elsewhere. */
function quoting(before: TurnText, origin: Origin) {
  return (text: string): Origin => (isCleanOrigin(origin) ? repeatedOrigin(text, [before], 'user') : origin);
}

function sharesWord(one: string, other: string): boolean {
  const tokens = contentTokens(one);
  return contentTokens(other).some((token) => tokens.includes(token));
}

/** What a reply that answers no question takes up: advice, or the last word, from which it concludes or to which it points. */
function findTakenUp(reply: string, said: readonly Statement[]): Statement | undefined {
  if (isAsking(reply)) return undefined;
  const tokens = contentTokens(reply);
  const advice = said.findLast(({ text }) => ADVISES.test(text));
  if (advice !== undefined && (BARE.test(reply) || isDecision(reply) || sharesWord(reply, advice.text))) return advice;
  const concludes = THEREFORE.test(reply) && reply.split(' ').length <= THEREFORE_WORDS;
  const points = (isDecision(reply) || OPEN_ITEM.test(reply)) && (tokens.length < 2 || STARTS_BACK.test(reply));
  return concludes || points ? said.findLast((each) => isTelling(each) && !ASIDE.test(each.lead)) : undefined;
}

function isAnswerTo(reply: string, question: Statement): boolean {
  const isShort = !isAsking(reply) && reply.split(' ').length <= SHORT_REPLY;
  return REPLY.test(reply) || (isShort && sharesWord(reply, question.text));
}

/** Whether the reply answers a choice asked at the end. If options are listed, the reply must share a word with them. */
function isAnswered(reply: string, said: readonly Statement[], hasOptions: boolean): boolean {
  const last = said.at(-1)?.text ?? '';
  if (isAsking(reply) || !isQuestion(last) || !ASKS_CHOICE.test(last) || OFFER.test(last)) return false;
  const asked = new Set(contentTokens(said.map(({ text }) => text).join(' ')));
  return !hasOptions || contentTokens(reply).some((token) => asked.has(token) && !/^\w$/.test(token));
}
