import type { Decision } from '../../model/node.ts';
import { contentTokens } from '../../text/keywords.ts';
import { isAsking, REVISES, STANDING } from '../../text/sentences.ts';
import type { Statement } from '../../text/statements.ts';
import { INSTEAD_OF } from '../../text/validity.ts';
import { ITEM_CHARS, withSubject } from './answer.ts';
import { OPEN_ITEM } from './open-items.ts';

const CHOSEN =
  /\b(?:decid(?:ed|e)(?= (?:to|on|that|against|for|yesterday|today|last|in the|with)\b|:)|(?:we|i)(?:'ll| will) (?:use|take|go with|stick with)|we(?:'re| are) using|let(?:'?s| us) (?:\w{1,30} ){0,2}(?:use|take|go with|keep|stick|remove|drop|rename|move|only|not|leave|skip|switch|set|store|ignore|make (?:it|th\w+))|(?:go(?:ing)?|stay|stick) with|(?:i(?:'d| would)? |we )(?:rather|prefere?)|(?:i|we)(?:'ve| have)? (?:\w{3,12}ly )?(?:cho(?:se|sen|osed)|picked|opted (?:for|to|against)|settled (?:on|for))|we went with|(?:i|we) (?:do not|don'?t) want(?! to\b)|(?:use|take|keep|no,) [^.]{0,60}\binstead|(?:(?:use|take|keep)s?|(?:must|should|ha(?:s|ve) to|needs? to) be) [^.,;]{1,60}(?<! to)(?:,? not)(?! (?:yet|only|sure|\p{L}+ing)\b)|(?:must|should|ha(?:s|ve) to|needs? to) [^.,;]{2,60} instead of|what (?:i|we) want is|on purpose|deliberately|that(?:'s| is) why we|not worth (?:it|the)|instead of [^.]{2,60}? (?:we should|use|take|do)|agreed (?:with [\w '-]{1,40} )?(?:to|on|that)|changed (?:my|our) minds?|(?:that's|it's|that is|it is) (?:now )?(?:decided|settled)|(?:we|i)(?:'re| are)? no longer|no longer (?:use|need|want|support)|only ever|(?:not in|out of) scope|overkill|(?:is|are) (?:forbidden|not allowed)|(?:undo|scrap|revert) (?:it|th(?:is|at|ese|ose)))\b|\d\p{L}{0,2},? not \d|(?:^|[,;:.] )(?:and |then |so )?(?:back to \d|make it (?:an? )?(?:\d|one|two|three|half))|\bit is(?: then)?[.!]*$|^[^.,;]{2,40} for now(?=[.!,;]|$)|^(?:(?:ok(?:ay)?|actually|no|please|let'?s|hmm)[,. ]+){0,3}(?:go|change|switch|revert) (?:it )?back to\b|(?:^|[,;:.] )(?:just |please )?(?:leave|keep) (?:it|them|this|that) (?!out\b)\S|^agreed[,:.] \p{L}|^(?:no|nope|nein)\b[^.?]{0,60}(?:must(?:n'?t| not)|d(?:arf|ürfen) (?:nicht|kein))\b|^(?:no|nope|nein)[,.]? (?:remove|revert|keep|use|do(?:n'?t)?|leave|drop|undo|ignore|rather|just)\b|(?:^|[,;:.] |\b(?:please|and|but|so|also|just|no|stop|wait) )(?:do not|don'?t)\b(?! (?:forget|let (?:me|us) forget|worry|ask|know|mind|think|see|understand|care)\b|[^,.;]{1,60} (?:yet|for now)\b| \w{1,20} (?:anything|any (?:code|files?))(?:\W{0,9}$|[,.;:!]| [—–-]| (?:but|just)\b))|(?:하기로|말고|쓰자|사용하자|결정|지 ?(?:마세요|말아|말자)|[걸으]?로 (?:가죠|가자|갑시다|하죠|합시다))|(?:决定|不要|改用|就用|不再|别用|改回|还是用)|決定|ないでください|にしましょう|でいきましょう|(?<!\p{L})(?:entschieden|stattdessen|nehmen wir|wir nehmen|lieber|nicht mehr|bleiben (?:wir )?bei|(?:heben|senken|setzen|stellen|erhöhen|lassen|machen|streichen|behalten) wir|dann doch|décidé|plutôt|on garde|usemos|prefiero|en vez de|(?:hemos )?decidi(?:mos|do)|acordamos|quedamos (?:con|en)|vamos a usar|al final sí|(?<=^no,? )mejor|volv(?:amos|emos) a|on (?:prend|part sur|revient|reste)|niente|usiamo|prefiro|em vez de|vamos de|не (?:надо|используй|трогай)(?:те)?|давай(?:те)?|вместо|wir (?:bleiben|verwenden|migrieren|lassen)|zurück (?:auf|zu)|nicht (?:anfassen|ändern|löschen|verwenden|nutzen)|(?:nimm|nehmt|nutze?|verwende) [^.,;]{1,40} nicht|us(?:a|ar|e|amos) [^.,;]{2,40} y no)(?!\p{L})/iu;
const BAN =
  /\b(?:(?:must|may) (?:not|never)|mustn'?t)\b|(?<!\p{L})(?:d(?:arf|ürfen) (?:[\p{L}\d_-]{1,20} ){0,4}?(?:nicht|nie|kein\p{L}{0,2})|no deben?|ne doi(?:t|vent) (?:pas|jamais))(?!\p{L})|(?:不得|不能|禁止|면 안 ?[되돼됩])/iu;
const BAN_LEAD = /^(?!(?:if|when|unless|wenn|falls|si|cuando|quand)(?!\p{L})).*(?:[:;]|, (?:and|und|y|et)) /iu;
/** Says what is to be, in the user's correction. */
const DEMANDS = /\b(?:should(?:n't)?|must(?:n't)?|ha(?:s|ve) to|needs? to|make sure|keep|instead|only)\b/i;
/** Something to do once where it says when, else a rule. */
const REMEMBER_TO = /^(?:please )?remember to (?!always\b|never\b)/i;
const RULE_START = 60;
const RULE_CHARS = 180;

export function isRule(text: string): boolean {
  const at = text.search(STANDING);
  const isDue = REMEMBER_TO.test(text) && OPEN_ITEM.test(text);
  return at >= 0 && at <= RULE_START && text.length <= RULE_CHARS && !isAsking(text) && !isDue;
}

/** A statement that takes something back is one with what it is about, before it, and with all that follows it. */
export function findDecisions(own: readonly Statement[], readBefore?: () => readonly Decision[], amends = false) {
  const at = readBefore === undefined ? -1 : own.findIndex(({ text }) => REVISES.test(text));
  const from = own[at]?.block === own[at - 1]?.block ? at - 1 : at;
  const revised = at < 0 ? [] : own.slice(from).filter(({ text }) => !isAsking(text));
  const whole = revised.map(({ text }) => text).join(' ');
  const decided = own.flatMap((each, at) => {
    const text = each.text.replace(REQUEST, '');
    const isCorrection = amends && DEMANDS.test(text) && text.length <= ITEM_CHARS && !isAsking(text);
    if ((isDecision(text) || isCorrection) && !revised.includes(each))
      return [withSubject({ ...each, text: getBan(text) }, own[at - 1])];
    const clauses = text.length > ITEM_CHARS ? text.split(CLAUSE) : [];
    return [...clauses, ...[...text.matchAll(BRACKETED)].map(([, aside = '']) => aside)].filter(isDecision);
  });
  const last = whole.length > ITEM_CHARS ? (revised.at(-1)?.text ?? '') : whole;
  if (contentTokens(last.replace(REVISES, '')).length < 2) return decided;
  const [former, ...others] = at === 0 ? (readBefore?.() ?? []) : [];
  return [...decided, former === undefined || others.length > 0 ? last : `“${last}${INSTEAD_OF}${former.text}”`];
}

export function isDecision(text: string): boolean {
  if (text.length > ITEM_CHARS || text.startsWith('(') || isAsking(text)) return false;
  return CHOSEN.test(text) || BAN.test(text) || isRule(text);
}

/** A ban without the clauses before it. */
function getBan(text: string): string {
  const at = CHOSEN.test(text) || isRule(text) ? -1 : text.search(BAN);
  return text.slice(BAN_LEAD.exec(text.slice(0, Math.max(0, at)))?.[0].length ?? 0);
}

/** Where a dictated sentence begins a new clause. */
const CLAUSE =
  /(?:,? (?:u[mh]+|yeah|ähm?|and|und|so|y|et)(?= (?:u[mh]+|yeah|ähm?|let'?s|do(?:n'?t| not)|what (?:i|we) want|please|i|we|ich|wir|bitte)(?![\p{L}'])))+ /iu;
/** May decide something in the midst of a question. */
const BRACKETED = /\(([^()]{10,240})\)/g;
/** After a statement in the same sentence. */
const REQUEST = /[,;] (?:(?:and|but|so|then) )?(?:can|could|would) (?:you|we) [^?]{1,300}\?$/i;
