import { sharedWords } from '../../text/paraphrase.ts';
import { asksUser, isAsking } from '../../text/sentences.ts';
import { readStateQuery } from '../../text/state-query.ts';
import type { Statement } from '../../text/statements.ts';
import { inContext, NARRATION, OFFER, withSubject } from './answer.ts';

export const OPEN_ITEM =
  /^\[ \]|^(?:but )?(?:i )?(?:have not|haven't|did not|didn't) (?:yet )?(?:run|push|commit|deploy|appl|merge|migrat|updat|re-?\p{L})|\b(?:to-?dos?|still (?:to do|needs?|ha(?:ve|s) to|missing)|remind me|don'?t (?:let (?:me|us) )?forget|(?:need|have) to remember|needs? (?:the|an?|its|\p{L}+'s) (?:change|fix|update|review|sign-?off|approval)|i (?:could(?: not|n't)|can(?:not|'t)|was(?: not|n't) able to|have no way to) (?:test|verify|send|push|deploy|publish)|due (?:by|on|next|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{L}* \d)|(?<!\b(?:if|when|until|unless|while|that) [^.]{0,40})(?:still fail(?:s|ing)?|not (?:been )?(?:done|applied|deployed|merged|tested) yet|not yet (?:done|applied|deployed|merged|tested))|needs? to be (?:done|fixed|checked|decided|rotated|updated)|i(?:'ll| will| have to| need to| must) (?:follow up|ask|check with|talk to|come back)|(?:later|at some point),? (?:i|we) (?:have to|must|need to|should))\b|\b(?:remaining|outstanding|next steps?|action items?|follow-?ups?|left(?: to do)?|open(?: (?:questions?|items?|points?))?)(?: (?:for|before|on|in) [\w -]{1,30})?:|\b(?:will|'ll|has to|have to|needs?|should|must|let's|remember to(?! always| never)|promised|decides|delivers|reviews|sends|signs) (?:[\p{L}\p{N} '_/()-]|\.(?! )){0,80}\b(?:later|at some point|in a follow-up|in q[1-4]|(?:(?:by|until|before|on) )?(?:tomorrow|tonight|next (?:week|month|sprint|release))|(?:by|until|before|on) (?:(?:next |the )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|end of|the end|(?:the )?\d{1,2}(?:st|nd|rd|th)|\d{1,2}(?=[.,;!)]|$| ?[ap]m\b|:\d)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))|(?<!\p{L})(?:(?:noch|weiterhin) offen|offen (?:ist|sind|bleibt|bleiben)|(?:konnte|kann) ich (?:\p{L}+ ){0,3}nicht (?:testen|prüfen|senden)|no (?:puedo|pude|he podido) (?:enviar|probar|verificar|subir)|noch zu tun|fehl(?:t|en) noch|noch fehl(?:t|en)|noch nicht (?:gelaufen|angewendet|getestet|umgesetzt|erledigt)|(?:muss|müssen|sollten?) (?:\p{L}{2,4} )?(?:noch|bis(?! zu ))|bis (?:morgen|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende)|pendientes?|(?<!hace )faltan?|todavía hay que|(?:pense[zr]?|penser) à|n'oublie[zr]? pas|(?:il )?reste à|tiene[ns]? que (?:[\p{L}\p{N} '_/()-]){0,80}(?:antes del?|hasta|para el|mañana|el (?:lunes|martes|miércoles|jueves|viernes))|erinner\p{L}{0,2} (?:mich|uns)|(?:nicht |no )(?:vergess|olvid)\p{L}+|vergiss nicht|recuérda(?:me|nos))(?!\p{L})|(?:提醒我|别忘|잊지|待办|还需要|尚未|还没|之前(?:完成|要)|[让请][^，。,]{1,6}在[^，。,]{1,12}前|아직|남은 일|할 일|까지 (?:해야|끝|[^.\n]{0,12}(?:준다|주기로|하기로|보내)))/iu;
const OPEN_HEADING =
  /^(?:next steps?|action items?|to-?dos?|open (?:questions?|items?|points?)|remaining(?: work)?|outstanding|follow-?ups?|still (?:to do|open)|offen(?:e punkte)?|nächste schritte|pendientes|待办|下一步|남은 (?:작업|일)|할 일)(?!\p{L})/iu;

/** Share of the words by which an item of the answer is what the user has to do, said again. */
const REPEATED = 0.75;

/** To-dos of the answer that are not the user's already, and the question at its end. */
export function waiting(statements: readonly Statement[], ofUser: readonly string[]): string[] {
  const todos = statements.flatMap((each, at) => {
    if (OFFER.test(each.text) || NARRATION.test(each.text)) return [];
    const { heading, items, lead } = each;
    const isTold = ofUser.some((todo) => sharedWords(each.text, todo) >= REPEATED);
    if (items.length === 0) return isTodo(each) && !isTold ? [withSubject(each, statements[at - 1])] : [];
    const isList = isTodo({ text: lead, heading });
    return items.flatMap(({ text }) => ((isList ? !CHECKED.test(text) : isTodo({ text, heading })) ? [text] : []));
  });
  const last = statements.at(-1);
  if (last === undefined || !asksUser(last.text) || OFFER.test(last.text)) return todos;
  const isTold = [last, ...last.items].some(({ text }) => todos.some((todo) => todo.endsWith(text)));
  return isTold ? todos : [...todos, inContext(statements, last)];
}

const CHECKED = /^\[x\]/i;
function isTodo({ text, heading }: Pick<Statement, 'text' | 'heading'>): boolean {
  return OPEN_ITEM.test(text) || OPEN_HEADING.test(heading);
}

const JOINED = /, (?:and|und|y|et) /iu;

/** Of two that a sentence joins, each. */
export const findTodos = (own: readonly Statement[]): string[] =>
  own.flatMap((each, at) => {
    const { text, heading } = each;
    if (!isTodo(each) || isAsking(text) || readStateQuery(text) !== null) return [];
    const parts = text.split(JOINED);
    const isEach = parts.length > 1 && parts.every((part) => isTodo({ text: part, heading }));
    return isEach ? parts : [withSubject(each, own[at - 1])];
  });
