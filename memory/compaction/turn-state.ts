import { clip, oneLine } from '../../common/text.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import { withAbsoluteDates } from '../model/dates.ts';
import type { Decision, StatedItem } from '../model/node.ts';
import { getAnswers, type TurnText } from '../model/turn.ts';
import { getUrls } from '../text/actions.ts';
import { findImages, withoutImages } from '../text/content-type.ts';
import { contentTokens } from '../text/keywords.ts';
import { repeatedOrigin } from '../text/repetition.ts';
import { findTask, getConcept, getValues, isAsking, isNoise, LEAD_IN, withoutCommands } from '../text/sentences.ts';
import { readStateQuery } from '../text/state-query.ts';
import { findStatements, isOf, placed, type Statement } from '../text/statements.ts';
import { findSpoken, getLetters, getOwn, type SpokenStatement, typedText, withoutMarkup } from '../text/typed-text.ts';
import { clipItem, concedes, findOffer, ITEM_CHARS, ITEMS, isTelling, isWeak, readAnswer } from './turn/answer.ts';
import { findDecisions, isRule } from './turn/decisions.ts';
import { findTodos, waiting } from './turn/open-items.ts';
import { withOptions } from './turn/options.ts';
import { clipOutcome, concluding, findDeeds, joinWithin, OUTCOME_CHARS, VERDICT_CHARS } from './turn/outcome.ts';
import {
  ASKED_CHARS,
  COMMAND,
  findAnswered,
  findNumbered,
  getReply,
  REPLY,
  type Reply,
  SAYS_NO,
  SHORT_REPLY,
} from './turn/reply.ts';

export type SkipReason = 'empty' | 'greeting' | 'notification' | 'command' | 'interrupted' | 'recalled';

/** What a turn leaves behind. All texts are quotes of the turn, with dates made absolute. */
export interface TurnState {
  readonly title: string;
  /** What the user typed, without what was pasted; '' where nothing was typed. */
  readonly asked: string;
  /** What was done or answered: the verdict and the end of the last answer. */
  readonly outcome: string;
  readonly outcomeOrigin: Origin;
  /** Of the answer, without what it only repeats. */
  readonly saidOrigin: Origin;
  readonly decisions: readonly Decision[];
  /** To-dos, and the question that waits for the user. */
  readonly open: readonly StatedItem[];
  /** `asked` holds the user's own words only, as far as can be told. */
  readonly isTyped: boolean;
  /** What the assistant offers to do next; '' where it offers nothing. */
  readonly offer: string;
  readonly values: readonly string[];
  /** HIGH: the user decided or set a rule. */
  readonly importance: 'HIGH' | 'MED' | 'LOW';
  /** The user set a rule that outlives the task. */
  readonly rules: readonly string[];
  readonly told: readonly string[];
  readonly said: readonly string[];
  /** What the answer says was done. */
  readonly deeds: readonly string[];
  /** The question or offer of the turn before that it answers; '' where it answers none. */
  readonly answers: string;
  readonly answersOrigin: Origin;
  /** The turn only answers the turn before. */
  readonly isReply: boolean;
  /** It only lets the assistant do what it offers. */
  readonly isLeave: boolean;
  /** It lets the assistant do what it offers: the reply with the offer; '' otherwise. */
  readonly accepts: string;
  /** The assistant agrees to change what it said or did in the turn before. */
  readonly amends: boolean;
  /** It was wrong. */
  readonly refutes: boolean;
  /** Why the turn makes no memory; null where it makes one. */
  readonly skip: SkipReason | null;
}

const TITLE_CHARS = 70;
/** Takes what follows. */
const SHORT_TITLE = 30;
const VALUES = 20;
/** A prompt of so few words that got no answer says nothing. */
const SHORT_WORDS = 3;
const BARE_WORDS = 4;
/** Less of what is only shown says nothing. */
const SHOWN_CHARS = 60;
const SMALL_OUTCOME = 40;
const NOTIFICATION =
  /^\W{0,3}(?:\[?heartbeat|(?:ping|pong|keep-?alive|tick|noop|beep)(?:\W{1,3}\w{1,40}){0,2}\W{0,9}$|no response requested|request interrupted|api error\b|this is a scheduled|periodic check-in|\[?(?:system|monitor|cron|webhook)(?: event| notification)?\]?:)/i;
const HEARTBEAT = /\bheartbeat[_ ]?ok\b/i;
const GREETING =
  /^\W{0,3}(?:(?:(?:hi|hey|hello)(?: (?:there|again|claude|everyone))?|good (?:morning|afternoon|evening)|thanks?(?: you)?(?: (?:so|very) much| a lot)?|thx|cheers|great|perfect|nice(?: work)?|awesome|cool|bye|good ?(?:bye|night)|see you(?: \w{1,8})?|bis (?:morgen|bald)|hasta (?:mañana|luego)|that'?s all|danke(?: dir)?|hallo|tschüss|gracias|hola|adiós|merci|谢谢|多谢|你好|再见|감사합니다|고마워|안녕하세요)[\s!.,:)-]{0,20}(?:\p{Extended_Pictographic}\s{0,4})?){1,4}$/iu;
/** A prompt that only asks to continue. */
const CONTINUE =
  /^(?:(?:yes|ok(?:ay)?|please|sure|ja|bitte|sí|oui)[\s,.]{1,20}){0,4}(?:go on|continue|keep going|proceed|carry on|resume|(?:mach )?weiter(?: so)?|sigue|continúa|continuez?|继续|계속(?:해)?|続けて)(?: (?:please|bitte|with (?:it|that|this)|(?:from )?where you (?:left off|stopped))){0,4}[\s.!。]*$/iu;
const GOES_ON = new Set(
  contentTokens(
    'continue continuing go going keep proceed proceeding carry resume resuming left off work start understood noted sure said echo now weiter mache alles klar ich geht es sigo claro continuo 好的 继续 네 계속 続け',
  ),
);

/** One that ends without a full stop. */
const PARAGRAPH = /[\p{L}\p{N}](?=\n\n)/gu;

const states = new WeakMap<TurnText, { readonly before: TurnText | undefined; readonly state: TurnState }>();

/** Reads what a turn leaves behind. @param before  the turn that it follows in its session */
export function readTurnState(turn: TurnText, before?: TurnText): TurnState {
  const stateOfTurn = states.get(turn);
  if (stateOfTurn !== undefined && stateOfTurn.before === before) return stateOfTurn.state;
  const state = readTurn(turn, before);
  states.set(turn, { before, state });
  return state;
}

function readTurn(turn: TurnText, before: TurnText | undefined): TurnState {
  const { prompts, typed, stated } = findTyped(turn);
  const noted = stated.filter(({ text }) => !isNoise(text, 'user'));
  const answer = withoutEchoes(readAnswer(turn), turn);
  // A passing question is worth its answer.
  const request = noted.length === 0 && answer.said.some(isTelling) ? stated : noted;
  const reply = getReply(typed, turn, before);
  const bound = reply?.isFree === true ? null : reply;
  const heard = before === undefined ? '' : getAnswers(before).join('\n');
  const spoken = prompts.flatMap((text, at) => findSpoken(request.filter(isOf(at)), text, heard));
  const own = getOwn(spoken);
  const isWhole = own.length === stated.length && typed.length <= ASKED_CHARS;
  const statedAsked = isWhole ? inSentences(typed) : findRequest(spoken, stated);
  const dated = (text: string): string => withAbsoluteDates(text, turn.atMs);
  const askedText = dated(request.length === 0 ? '' : withQuoted(statedAsked, withoutMarkup(turn.user)));
  const concluded = concluding(answer.said);
  const texts = [...new Set(withOptions(concluded, answer.said).map(dated))];
  const [conclusion = askedText === '' ? 'no answer' : `“${clip(askedText, VERDICT_CHARS)}”`, ...others] = texts;
  const statements = turn.unfinished === true ? [`Not finished: ${conclusion}`, ...others] : texts;
  const getOrigin = (text: string): Origin => repeatedOrigin(text, [turn], answer.origin);
  const outcome = clipOutcome(statements, OUTCOME_CHARS);
  // Asked only where the work stands, an answer says again what memory holds.
  const isRecap = own.every(({ text }) => isAsking(text)) && readStateQuery(typed) !== null;
  const item: Item = (origin) => (text) => ({ text: dated(clip(text, ITEM_CHARS)), origin, turn: turn.turnId });
  const asUser = item(turn.userOrigin ?? 'user');
  const { decisions, isAnswer, byUser, amends } = getDecisions(turn, before, { typed, own, reply }, item);
  const todos = findTodos(own);
  const open = [
    ...(reply?.origin !== 'user' || todos.length === 0 ? todos : [reply.text]).map(asUser),
    ...(reply?.later ?? []).map(item(reply?.origin ?? 'user')),
    ...waiting(isRecap ? [] : answer.said, todos).map((text) => item(getOrigin(text))(clipItem(text))),
  ].slice(0, ITEMS);
  const rules = turn.userOrigin === undefined ? own.filter(({ text }) => isRule(text)).map(({ text }) => text) : [];
  const isHigh =
    turn.userOrigin === undefined && (rules.length > 0 || isAnswer || byUser.length > 0 || reply?.isChoice === true);
  const quoted = [askedText, outcome, ...[...decisions, ...open].map(({ text }) => text)];
  const skip = skipReason(turn, typed, {
    outcome: clipOutcome(texts, OUTCOME_CHARS),
    isEmpty: decisions.length + open.length === 0,
    kept: [...byUser, ...todos],
    noted,
  });
  return {
    title: getTitle(request, texts.find((text) => !isWeak(text)) ?? outcome, bound),
    asked: askedText,
    outcome,
    isTyped: spoken.some((each) => each.own !== ''),
    outcomeOrigin: lowestOrigin([answer.origin, ...concluded.map(({ text }) => getOrigin(text))]),
    saidOrigin: answer.origin,
    decisions,
    open,
    offer: findOffer(answer.said),
    values: [...new Set(quoted.flatMap(getValues))].slice(0, VALUES),
    importance: isHigh ? 'HIGH' : outcome === '' && decisions.length + open.length === 0 ? 'LOW' : 'MED',
    rules,
    told: own.flatMap(({ text }) => (isAsking(text) ? [] : [dated(text)])),
    said: statements,
    deeds: findDeeds(answer.said).map(dated),
    answers: bound?.question ?? '',
    answersOrigin: bound?.origin ?? 'user',
    isLeave: bound?.isLeave === true && todos.length === 0,
    accepts: bound?.isLeave === true ? dated(clip(bound.text, ITEM_CHARS)) : '',
    amends,
    refutes: amends && OBJECTS.test(typed),
    isReply: bound !== null || (request.length > 0 && typed.split(/\s+/).length <= BARE_WORDS && REPLY.test(typed)),
    skip,
  };
}

/** Without the statements that repeat what came from outside earlier, unless there are no others. */
function withoutEchoes<T extends ReturnType<typeof readAnswer>>(answer: T, turn: TurnText): T {
  if (turn.echoes === undefined) return answer;
  const said = answer.said.filter(({ text }) => repeatedOrigin(text, [turn], 'assistant') !== 'external');
  return said.length === 0 ? answer : { ...answer, said };
}

type Item = (origin: Origin) => (text: string) => StatedItem;
type Typed = { readonly typed: string; readonly own: readonly Statement[]; readonly reply: Reply | null };

/** What the user decided: in dialogs of the client, by numbered answers, by a reply and in statements of their own. */
function getDecisions(turn: TurnText, before: TurnText | undefined, { typed, own, reply }: Typed, item: Item) {
  const byNumber = findNumbered(typed, turn, before);
  const isByNumber = byNumber.answers.length > 0;
  const amends = before !== undefined && concedes(turn);
  const byUser = isByNumber
    ? findDecisions(byNumber.after)
    : findDecisions(own, before && (() => readTurn(before, undefined).decisions), amends);
  const dialogs = [...findAnswered(turn), ...byNumber.answers].slice(0, ITEMS);
  const answered = dialogs.map(({ text, origin }) => item(origin)(text));
  const quotesOwn = (text: string): boolean => reply?.origin === 'user' && reply.text.includes(text);
  const isWholeReply = reply?.isLeave === false && quotesOwn(oneLine(typed));
  const rest = isByNumber ? byUser : isWholeReply ? [] : byUser.filter((text) => !quotesOwn(text));
  const replied = isByNumber || reply === null || reply.isLeave ? [] : [item(reply.origin)(reply.text)];
  const stated = [...replied, ...rest.map(item(turn.userOrigin ?? 'user'))].slice(0, ITEMS);
  const decisions = [...answered, ...stated].map((each): Decision => ({ ...each, by: 'user' }));
  return { decisions, isAnswer: answered.length > 0, byUser, amends };
}

/** With the first line of what was pasted after a colon, such as the message of an error. */
function withQuoted(asked: string, user: string): string {
  return asked.replace(/([^:：]{3,40}[:：]) …/, (whole, lead: string) => {
    const at = user.indexOf(lead.trim());
    const [line = ''] = at < 0 ? [] : (/[^\s`][^\n]*/.exec(user.slice(at + lead.trim().length)) ?? []);
    return line === '' ? whole : `${lead} “${clip(oneLine(line), SHOWN_CHARS)}”`;
  });
}

const inSentences = (typed: string): string => oneLine(typed.replace(PARAGRAPH, '$&.')).replace(LEAD_IN, '');

const RESENT_CHARS = 4_000;
const RESENT_LETTERS = 12;

/** What was typed, prompt by prompt, without what was stopped and sent again. */
function findTyped({ user, prompts = [user] }: TurnText) {
  const texts = prompts.map((text) => typedText(withoutImages(text))).filter((text) => text !== '');
  // Each command is a prompt.
  const isCommand = ([text, next]: readonly string[]): boolean =>
    next !== undefined && withoutCommands(`${text}\n\n.`) === '.';
  while (isCommand(texts)) texts.shift();
  const parts = texts.flatMap((text, prompt) => {
    const whole = prompt === 0 ? withoutCommands(text) : text;
    return whole.split('\n\n').map((part) => ({ part, prompt, key: getLetters(part) }));
  });
  const isResent = (key: string, at: number): boolean =>
    key.length >= RESENT_LETTERS && parts.slice(at + 1).some((later) => later.key.includes(key));
  const kept = texts.join('').length > RESENT_CHARS ? parts : parts.filter(({ key }, at) => !isResent(key, at));
  const left = texts.map((_, at) => kept.flatMap(({ part, prompt }) => (prompt === at ? [part] : [])).join('\n\n'));
  const stated = left.flatMap((text, at) => findStatements(text).map((each) => placed(each, at)));
  return { prompts: left, typed: left.filter((text) => text !== '').join('\n\n'), stated };
}

/** The user does not agree. */
const OBJECTS =
  /^(?:(?:hm+|ok(?:ay)?|and|so)[\s,.!]+)?(?:no(?:pe)?|but|sorry|actually|wait|nein|aber|pero|mais)(?!\p{L})|\b(?:wrong|incorrect|not (?:\w{3,8} )?(?:correct|right|true)|undo|revert)\b|(?<!\p{L})(?:falsch|stimmt nicht|incorrecto|faux)(?!\p{L})|(?:不对|错了|아니|틀렸|違)/iu;

function getTitle(statements: readonly Statement[], outcome: string, reply: Reply | null): string {
  const texts = [...new Set(statements.map(({ text }) => findTask(text)))];
  const most = SAYS_NO.test(texts[0] ?? '') ? 2 : 1;
  const at = texts.findIndex((text) => contentTokens(text).length > most && !SAYS_NO.test(text));
  const whole = joinWithin(texts.slice(at), TITLE_CHARS);
  if (reply === null && at >= 0)
    return (texts[at] ?? '').length < SHORT_TITLE ? whole : clip(texts[at] ?? '', TITLE_CHARS);
  return clip(reply === null || outcome !== '' ? outcome || (statements[0]?.text ?? '') : reply.text, TITLE_CHARS);
}

function skipReason(
  turn: TurnText,
  typed: string,
  { outcome, isEmpty, kept, noted }: { outcome: string; isEmpty: boolean; kept: string[]; noted: Statement[] },
): SkipReason | null {
  if (turn.recalled === true && noted.every(({ text }) => isAsking(text))) return 'recalled';
  const isSignal = HEARTBEAT.test(typed) || (kept.length === 0 && NOTIFICATION.test(typed));
  if (isSignal && outcome.length < VERDICT_CHARS) return 'notification';
  if (GREETING.test(typed) && outcome.length < VERDICT_CHARS) return 'greeting';
  if (!isEmpty) return null;
  if (CONTINUE.test(typed) && saysNothing(turn, typed)) return 'empty';
  if (COMMAND.test(typed) && outcome.length < SMALL_OUTCOME) return 'command';
  if (findImages(turn.user) !== '' || getUrls([turn]).length > 0) return null;
  if (withoutMarkup(turn.user).trim() === '' && outcome.length < SMALL_OUTCOME)
    return turn.user.trim() === '' ? 'empty' : 'notification';
  if (typed !== '' && noted.length === 0 && outcome === '') return 'empty';
  if (outcome !== '' || getValues(typed).length > 0 || getConcept(typed) !== null || (turn.files ?? []).length > 0)
    return null;
  const countWords = (text: string): number => text.split(/\s+/).length;
  if (turn.parts.length > 0) return countWords(typed) <= SHORT_WORDS ? 'empty' : null;
  // What was stated counts without an answer, whatever is asked after it; a task does not.
  const told = noted.filter(({ text }) => !isAsking(text)).map(({ text }) => text);
  return countWords(told.join(' ')) > SHORT_REPLY ? null : 'interrupted';
}

/** Whether the answer to a prompt that asks to continue has no word of its own, and no tool ran. */
function saysNothing({ parts }: TurnText, typed: string): boolean {
  const typedTokens = new Set([...contentTokens(typed), ...GOES_ON]);
  return parts.every(
    ({ kind, text }) => kind === 'assistant' && contentTokens(text).every((token) => typedTokens.has(token)),
  );
}

/** Words of an answer that memory gave already. */
const REPEATED_SHARE = 0.75;
const LEAST_TOKENS = 3;
const LONGEST_REPEAT = 1_500;

/** Whether the answer to a question says only what one of these texts of memory says. */
export function repeatsMemory(turn: TurnText, texts: readonly string[]): boolean {
  const { user, parts } = turn;
  const turnLines = getAnswers(turn).join('\n');
  if (turnLines.length > LONGEST_REPEAT || parts.some(({ kind }) => kind !== 'assistant')) return false;
  if (!findStatements(typedText(user)).some(({ text }) => isAsking(text))) return false;
  const tokens = contentTokens(turnLines);
  const values = getValues(turnLines).filter((value) => /\d/.test(value));
  return texts.some((text) => {
    const given = new Set(contentTokens(`${user}\n${text}`));
    const repeated = tokens.filter((token) => given.has(token)).length;
    const isGiven = tokens.length >= LEAST_TOKENS && repeated >= tokens.length * REPEATED_SHARE;
    return isGiven && values.every((value) => `${user}\n${text}`.includes(value));
  });
}

/** What the user says, with gaps marked; what they only show after it, in quotes, or alone where they say nothing. */
function findRequest(spoken: readonly SpokenStatement[], stated: readonly Statement[]): string {
  const ownStatements = spoken.filter(({ own }) => own !== '');
  const shownTexts = spoken.map(({ shown }) => shown);
  if (ownStatements.length === 0) return joinWithin(shownTexts, ASKED_CHARS);
  const places = new Map(stated.map((statement, at) => [statement, at]));
  const getPlace = (each: SpokenStatement | undefined): number => places.get(each?.statement as Statement) ?? -1;
  const texts = ownStatements.map((each, at) => {
    const { own } = each;
    const before = ownStatements[at - 1];
    const follows = before?.shown === '' && getPlace(before) === getPlace(each) - 1;
    return at === 0 || follows ? own : `… ${own}`;
  });
  const text = joinWithin(texts, ASKED_CHARS);
  const match = shownTexts.find((shown) => shown !== '') ?? '';
  const room = ASKED_CHARS - text.length - 3;
  return match === '' || room < SHOWN_CHARS ? text : `${text} “${clip(match, room)}”`;
}
