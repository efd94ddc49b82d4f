import { clip } from '../../common/text.ts';
import type { Origin } from '../../common/turn.ts';
import type { Decision, StatedItem } from '../model/node.ts';
import type { TurnPart, TurnText } from '../model/turn.ts';
import { isContinuation } from '../text/compaction-summary.ts';
import { valuesOf } from '../text/sentences.ts';
import { type Statement, statementsIn } from '../text/statements.ts';
import { typedText } from '../text/typed-text.ts';

export type SkipReason = 'empty' | 'greeting' | 'notification' | 'command' | 'interrupted';

/** What a turn leaves behind. All texts are quotes of the turn. */
export interface TurnState {
  readonly title: string;
  /** What the user typed, without what was pasted; '' where nothing was typed. */
  readonly asked: string;
  /** What was done or answered: the end of the last answer, with its verdict in front. */
  readonly outcome: string;
  readonly outcomeOrigin: Origin;
  readonly decisions: readonly Decision[];
  readonly open: readonly StatedItem[];
  readonly values: readonly string[];
  /** Why the turn makes no memory; null where it makes one. */
  readonly skip: SkipReason | null;
}

const TITLE_CHARS = 70;
const ASKED_CHARS = 240;
const OUTCOME_CHARS = 420;
const VERDICT_CHARS = 220;
const ITEM_CHARS = 280;
const VALUES = 20;
/** A longer prompt states its subject itself. */
const REPLY_WORDS = 14;

const POLITE =
  /^(?:(?:ok(?:ay)?|yes|yeah|sure|hi|hey|hello|great|thanks|please|so|and|now|also|well|question|can you|could you|would you|can we|could we|should we|let'?s|i(?:'d| would) like (?:you )?to|i want (?:you )?to|bitte|kannst du|por favor|puedes)\b[\s,.!:-]*)+/i;
/** Says what will be done next; after the turn it says nothing. */
const NARRATION =
  /^(?:(?:ok(?:ay)?|great|good|perfect|sure|alright|excellent|got it|right)\b[\s,.!—-]*)*(?:now )?(?:let me|let's|i'll|i will|i'm going to|i need to|i should|first,? (?:let|i)|now i|looking at|next,? (?:let|i))\b/i;
/** Offers to go on; the user's next prompt answers it or it is moot. */
const OFFER =
  /^(?:(?:do you |if you )?(?:want|like)(?:ed)? me to|would you like|shall i|should i (?:go|proceed|continue|implement|do|make|also)|want me to|let me know|feel free|ready (?:to|for)|happy to|soll ich|möchtest du)\b|\b(?:what do you think|sounds? good|let me know)\b[^?]{0,80}\?$/i;
const CHOSEN =
  /\b(?:decid(?:ed|e) (?:to|on|that|against|for)|we(?:'ll| will)? (?:use|go with|stick with|keep)|let'?s (?:use|go with|do|keep|stick|call|rename|move)|go(?:ing)? with|i(?:'d| would)? (?:rather|prefer)|prefer|instead of|rather than|from now on|always|never|must(?: not)?|do not|don't|only ever|agreed|not? longer|no longer|(?:it|that)'?s? it is|it is then)\b|(?:반드시|항상|결정|하기로|말고)|(?:必须|决定|总是|不要|改用|就用)|(?:必ず|決定|常に)|(?<![\p{L}])(?:immer|nie|niemals|entschieden|ab (?:jetzt|sofort)|statt|stattdessen|nehmen wir|wir nehmen|lieber|nicht mehr|toujours|jamais|désormais|plutôt|siempre|nunca|en vez de|a partir de ahora|usemos|prefiero)(?![\p{L}])/iu;
const CHOSEN_BY_ASSISTANT =
  /\b(?:i (?:chose|decided|went with|opted|picked|kept|left)|we (?:chose|decided|agreed|went with)|decision:|decided (?:to|on|against))\b/i;
const OPEN =
  /\b(?:to-?do|still (?:to do|need|needs|have|has|missing|open|pending|left)|(?:not|isn't|aren't) (?:yet )?(?:done|implemented|finished|covered|fixed|tested) yet|(?:remaining|outstanding|next steps?|follow-?ups?|left to do|open (?:question|item|point)s?)\b|remind me|don't forget|needs? to be (?:done|fixed|checked|decided)|(?:will|has to|needs to|should|must) [\p{L}\p{N} ,'-]{2,80}\b(?:by|until|before|on) (?:tomorrow|tonight|monday|tuesday|wednesday|thursday|friday|saturday|sunday|next|end of|the end|\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))|(?:noch offen|noch zu tun|muss noch|müssen noch|bis (?:morgen|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende)|pendiente|falta(?:n)? |todavía|待办|还需要|尚未|아직|남은|할 일)/iu;
const OPEN_HEADING =
  /^(?:next steps?|to-?dos?|open (?:questions?|items?|points?)|remaining(?: work)?|outstanding|follow-?ups?|still (?:to do|open)|offen(?:e punkte)?|nächste schritte|pendientes|待办|下一步|남은 작업)\b/i;

/** Reads what a turn leaves behind. @param before  the turn that it answers */
export function readTurnState(turn: TurnText, before?: TurnText): TurnState {
  const typed = typedText(turn.user);
  const [asked, answer] = [statementsIn(typed), answerOf(turn)];
  const said = answer === undefined ? [] : statementsIn(answer.text);
  const askedText = joined(
    asked.map(({ text }) => text),
    ASKED_CHARS,
  );
  const outcome = outcomeOf(said);
  const decisions = decisionsOf(turn, { asked, said, answer, before });
  const open = openItems(turn, { asked, said, answer });
  const outcomeOrigin = answer?.origin ?? 'assistant';
  const texts = [askedText, outcome, ...decisions.map(({ text }) => text), ...open.map(({ text }) => text)];
  return {
    title: titleOf(asked, outcome, typed),
    asked: askedText,
    outcome,
    outcomeOrigin,
    decisions,
    open,
    values: [...new Set(texts.flatMap(valuesOf))].slice(0, VALUES),
    skip: skipReason(turn, { typed, outcome, decisions, open }),
  };
}

interface Reading {
  readonly asked: readonly Statement[];
  readonly said: readonly Statement[];
  readonly answer: TurnPart | undefined;
  readonly before?: TurnText | undefined;
}

/** The last text of the assistant that is no step on the way. */
function answerOf({ parts }: TurnText): TurnPart | undefined {
  return parts.findLast(({ kind, text }) => kind === 'assistant' && text.trim() !== '' && !isContinuation(text));
}

/** The verdict at the start where it is short, then the end backwards: conclusions stand last. */
function outcomeOf(said: readonly Statement[]): string {
  const telling = said.filter(({ text }) => !isNarration(text) && !OFFER.test(text) && !isQuestion(text));
  const chosen = new Set<Statement>();
  let room = OUTCOME_CHARS;
  const [first] = telling;
  if (first !== undefined && first.text.length <= VERDICT_CHARS) {
    chosen.add(first);
    room -= first.text.length;
  }
  for (const each of telling.toReversed()) {
    if (chosen.has(each)) continue;
    if (each.text.length + 1 > room) break;
    chosen.add(each);
    room -= each.text.length + 1;
  }
  if (chosen.size === 0 && telling.length > 0) return clip((telling.at(-1) as Statement).text, OUTCOME_CHARS);
  return telling
    .filter((each) => chosen.has(each))
    .map(({ text }) => text)
    .join(' ');
}

function decisionsOf(turn: TurnText, { asked, said, answer, before }: Reading): Decision[] {
  const origin = turn.userOrigin ?? 'user';
  const byUser = asked
    .filter(({ text }) => !isQuestion(text) && CHOSEN.test(text))
    .map(({ text }): Decision => ({ text: clip(text, ITEM_CHARS), by: 'user', origin, turn: turn.turnId }));
  const bound = byUser.length > 0 || before === undefined ? [] : boundReply(turn, asked, before);
  const byAssistant = said
    .filter(({ text }) => CHOSEN_BY_ASSISTANT.test(text) && !isQuestion(text) && !isNarration(text))
    .slice(0, 3)
    .map(({ text }): Decision => {
      return {
        text: clip(text, ITEM_CHARS),
        by: 'assistant',
        origin: answer?.origin ?? 'assistant',
        turn: turn.turnId,
      };
    });
  return [...byUser.slice(0, 4), ...bound, ...byAssistant];
}

/** A short reply with the question or offer of the assistant that it answers. */
function boundReply(turn: TurnText, asked: readonly Statement[], before: TurnText): Decision[] {
  const reply = asked.map(({ text }) => text).join(' ');
  const words = reply.split(/\s+/).length;
  if (reply === '' || words > REPLY_WORDS || isQuestion(reply)) return [];
  const question = statementsIn(answerOf(before)?.text ?? '').findLast(
    ({ text }) => isQuestion(text) || OFFER.test(text),
  );
  if (question === undefined) return [];
  const text = `“${reply}” (asked: ${clip(question.text, ITEM_CHARS - reply.length)})`;
  return [{ text, by: 'user', origin: turn.userOrigin ?? 'user', turn: turn.turnId }];
}

function openItems(turn: TurnText, { asked, said, answer }: Reading): StatedItem[] {
  const isOpen = ({ text, heading }: Statement): boolean => OPEN.test(text) || OPEN_HEADING.test(heading);
  const own = asked.filter((each) => isOpen(each) && !isQuestion(each.text));
  const told = said.filter((each) => isOpen(each) && !OFFER.test(each.text) && !isNarration(each.text));
  const last = said.at(-1);
  const unanswered =
    last !== undefined && isQuestion(last.text) && !OFFER.test(last.text) && !told.includes(last) ? [last] : [];
  const item =
    (origin: Origin) =>
    ({ text }: Statement): StatedItem => ({
      text: clip(text, ITEM_CHARS),
      origin,
      turn: turn.turnId,
    });
  return [
    ...own.map(item(turn.userOrigin ?? 'user')),
    ...[...told, ...unanswered].map(item(answer?.origin ?? 'assistant')),
  ].slice(0, 6);
}

function titleOf(asked: readonly Statement[], outcome: string, typed: string): string {
  const [first] = asked.map(({ text }) => text.replace(POLITE, '')).filter((text) => text.split(/\s+/).length > 1);
  return clip(first ?? (outcome || typed.trim()), TITLE_CHARS);
}

function skipReason(
  turn: TurnText,
  { typed, outcome, decisions, open }: Pick<TurnState, 'outcome' | 'decisions' | 'open'> & { readonly typed: string },
): SkipReason | null {
  if (decisions.length + open.length > 0) return null;
  const hasWork = turn.parts.some(({ kind }) => kind !== 'assistant');
  if (COMMAND.test(typed) && outcome.length < 40) return 'command';
  if (NOTIFICATION.test(typed) || NOTIFICATION.test(outcome)) return 'notification';
  if (GREETING.test(typed) && outcome.length < 200 && !hasWork) return 'greeting';
  if (outcome === '' && !hasWork) return typed.split(/\s+/).length < 4 ? 'empty' : null;
  return null;
}

const COMMAND = /^\/[\w:-]{1,60}(?:\s|$)/;
const NOTIFICATION =
  /^\W*(?:heartbeat|ping|pong|keep-?alive|tick|noop|beep|no response requested|request interrupted|api error\b|<(?:task|agent|monitor)-[a-z]+>)|\bheartbeat[_ ]?ok\b/i;
const GREETING =
  /^\W*(?:(?:hi|hey|hello|good (?:morning|afternoon|evening)|thanks?(?: you)?(?: (?:so|very) much| a lot)?|thx|cheers|great|perfect|nice|awesome|cool|bye|good ?(?:bye|night)|see you|danke|hallo|gracias|hola|谢谢|你好|감사합니다|안녕하세요)[\s!.,:)🙂👍-]*){1,4}$/iu;

function isQuestion(text: string): boolean {
  return /[?？]["')\]*]*$/.test(text);
}

function isNarration(text: string): boolean {
  return NARRATION.test(text);
}

/** Whole texts while they fit; at least the first, cut. */
function joined(texts: readonly string[], maxChars: number): string {
  let text = '';
  for (const each of texts) {
    if (text !== '' && text.length + each.length + 1 > maxChars) break;
    text = text === '' ? clip(each, maxChars) : `${text} ${each}`;
  }
  return text;
}
