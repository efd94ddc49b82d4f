import { clip } from '../../../common/text.ts';
import { isContinuation, lowestOrigin } from '../../../common/turn.ts';
import type { TurnPart, TurnText } from '../../model/turn.ts';
import { contentTokens } from '../../text/keywords.ts';
import { isNoise, isQuestion } from '../../text/sentences.ts';
import { findStatements, placed, type Statement } from '../../text/statements.ts';

export const ITEM_CHARS = 280;
export const ITEMS = 12;
const SAID_TRIED = 5;
/** Says what is done next; after the turn it says nothing. */
export const NARRATION =
  /^(?:(?:ok(?:ay)?|great|good|perfect|sure|alright|excellent|got it|right)\b[\s,.!—-]*){0,3}(?:now )?(?:let me|let's (?!use|go)|i'll|i will|i'm going to|i need to|i should|i have (?:an?|the|all) (?:\w{3,14} ){0,2}(?:picture|understanding|context|overview|design|information)\b|first,? (?:let|i)\b|now i\b|looking at|next,? (?:let|i)\b|here(?:'s| is| are) |(?:now )?(?:try|give) |you can (?:now )?(?:run|try|test|rebuild))/i;
const FILLER =
  /^(?:(?:(?:that'?s |this is )?(?:a |an )?(?:great|good|nice|excellent|interesting|clever|clean) (?:questions?|points?|catch|idea|call|thinking|approach|middle ground|solution)|exactly right|found it|updated|got it)(?=.{0,20}$)|you'?re (?:absolutely |completely )?right|(?:you'?re |you are )?welcome|(?:i'?m )?(?:so )?sorry(?: about that)?|my (?:bad|mistake)|sure|perfect|great|thanks?|thank you|noted|understood|ok(?:ay)?|of course|done|fixed|yes|no|absolutely|exactly|gern(?: geschehen)?|gut|alles klar|verstanden|de nada|vale|de acuerdo|entendido|d'accord|tut mir leid|不客气|抱歉|천만에요|알겠습니다|죄송합니다)[\s.!,—-]*$|^[\p{L}' -]{2,24}!$/iu;
/** Says that all is well. */
export const PASSES =
  /^(?:all |the |both )?(?:\d+ )?(?:tests?|build|lint\w*)\b[^.]{0,60}\b(?:pass(?:es|ing)?|clean|green|issues)\b/i;
/** Says less than any other statement. */
const WEAK = /^(?:yes|no)\b.{0,20}$|^.{0,20}$/i;
/** Offers to go on. */
export const OFFER =
  /^(?:(?:do you |if you(?:'d)? )?(?:want|like)(?:ed)? me to|would you like|shall i|should i|want me to|let me know|feel free|ready (?:to|for)|happy to|soll ich|möchtest du|quieres que|¿quieres que|要我|需要我)(?![\p{L}])|(?:what do you think|sounds? good|let me know|feel free|anything else)[^?]{0,80}[?!.]?$/iu;
/** What a short reply agrees with, or turns down. */
export const ADVISES =
  /\b(?:i(?:'d| would) (?:\w+ )?(?:recommend|suggest|use|go (?:with|for)|keep|leave|wait|add|start|stick|prefer|take|pick|choose|avoid|not|lean towards?)\b|i recommend|i suggest|my (?:instinct|take|preference|vote) (?:is|would be)\b|(?:my |the )?recommend(?:ed|ation)\b|(?:would be|is) (?:the )?(?:better|best) (?:choice|option)?)|(?<!\p{L})(?:ich würde|würde ich|(?:ich )?empfehle|besser wäre|(?:yo )?(?:usaría|recomiendo|sugiero|recomendaría)|je recommande|j'utiliserais)(?!\p{L})|建议|推荐|권장|추천/iu;
/** What an answer comes down to. */
export const CONCLUDES =
  /^(?:(?:(?:the|an?|my|best|final|updated|proposed|recommended) )?(?:\w{2,12}er )?(?:root cause|cause|problem|issue|reason|fix|solution|verdict|conclusion|recommendation|result|answer|bottom line|tl;?dr|summary)\b|(?:my|in short|so the|the key)\b|fazit|ursache|lösung|empfehlung|conclusión|causa|原因|结论|建议|원인|결론)|\b(?:root cause|was caused by|turned out|fixed by|i(?:'d)? recommend|i(?:'d| would) (?:go with|suggest))\b/iu;
/** So is a lead-in without what follows, unless it concludes. */
export const isWeak = (text: string): boolean =>
  PASSES.test(text) || WEAK.test(text) || (text.endsWith(' …') && !CONCLUDES.test(text));

/** The last text of the assistant; from an earlier one on where the last only says that all is well. */
export function readAnswer(turn: TurnText) {
  const answers = spokenTexts(turn)
    .slice(-SAID_TRIED)
    .map(({ text, origin }, at) => {
      const stated = findStatements(text).filter((each) => !isNoise(each.text, 'assistant'));
      // With all items of a list that was cut.
      const said = stated.map((each) => (each.text.endsWith(' in all)') ? { ...each, text: each.short } : each));
      return { said: said.map((each) => placed(each, at)), origin };
    });
  const findFrom = (test: (each: Statement) => boolean) => answers.findLastIndex(({ said }) => said.some(test));
  const strong = findFrom(({ text }) => !isWeak(text) && (CONCLUDES.test(text) || CHANGED.test(text)));
  const from = strong >= 0 ? strong : findFrom(isTelling);
  const used = answers.slice(from < 0 ? -1 : from);
  return {
    said: used.flatMap(({ said }) => said),
    origin: lowestOrigin(used.length === 0 ? ['assistant'] : used.map(({ origin }) => origin)),
  };
}

const spokenTexts = ({ parts }: TurnText): TurnPart[] =>
  parts.filter(({ kind, text }) => kind === 'assistant' && text.trim() !== '' && !isContinuation(text));

/** The assistant takes back what it said or did before. */
const CONCEDES =
  /^(?:(?:ah|oh|hm+|ok(?:ay)?|yes|no)[\s,.!—-]+){0,2}(?:you(?:'re| are) (?:\w{3,12}ly )?(?:right|correct)|(?:good|great) catch|(?:that was )?my (?:mistake|bad)|(?:i'?m )?sorry|apologies|i (?:was wrong|misunderstood|misread|misspoke)|revert(?:ed|ing)|du hast recht|(?:das )?stimmt|mein fehler|tienes razón|tu as raison|vous avez raison)(?![\p{L}])|^(?:你说得对|맞습니다|죄송|抱歉)/iu;

/** Whether the answer begins with taking back what was said or done before. */
export const concedes = (turn: TurnText): boolean =>
  turn.userOrigin === undefined &&
  spokenTexts(turn)
    .slice(0, 2)
    .some(({ text }) => CONCEDES.test(text.trimStart().replaceAll('’', "'")));

/** A heading, or what announces a list, of what was done. */
export const CHANGES =
  /^(?:(?:the|a|key|main|final|here(?:'s| is)|what|summary(?: of)?|all) )*(?:changes?|changed|fix(?:es)?|refactoring)\b(?! (?:needed|required|to)\b)/i;

export function isTelling({ text, lead }: Statement): boolean {
  return (CHANGES.test(lead) || !NARRATION.test(text)) && !OFFER.test(text) && !FILLER.test(text) && !isQuestion(text);
}

/** Says what was done to the work. */
export const CHANGED =
  /\b(?:added|changed|removed|renamed|moved|replaced|updated|created|fixed|extracted|reverted|restored|implemented|rewrote|rewritten|switched|introduced|deleted|simplified|refactored|consolidated|merged|converted|exported|wired|pinned|bumped|wrote|split|built|extended|adjusted|enabled|disabled|now (?:\w{2,12}s|include|use|show|have|only|always|never|correctly))\b|(?<!\p{L})(?:hinzugefügt|geändert|entfernt|umbenannt|verschoben|ersetzt|erstellt|behoben|añad[ií]\p{L}*|cambi[éa]\p{L}*|elimin[éa]\p{L}*|ajouté|modifié|supprimé|remplacé|créé)(?!\p{L})|(?:已(?:添加|修改|删除|更新|修复)|추가했|수정했|삭제했)/iu;

/** A question stays one. */
export const clipItem = (text: string): string =>
  text.length > ITEM_CHARS && isQuestion(text) ? `${clip(text, ITEM_CHARS - 1)}?` : clip(text, ITEM_CHARS);

export function findOffer(statements: readonly Statement[]): string {
  // A list after it says what would be done.
  const last = statements.findLast(({ text, items }) => items.length === 0 || OFFER.test(text));
  return last !== undefined && OFFER.test(last.text) && isQuestion(last.text)
    ? clipItem(inContext(statements, last))
    : '';
}

/** What says too little alone, such as "I'll ask him.", or begins with a pronoun, with the statement before it. */
export function withSubject({ text, block }: Statement, before: Statement | undefined): string {
  const telling = contentTokens(text).filter((token) => !/^[a-z]{1,2}$/.test(token));
  if (block !== before?.block || (telling.length > 1 && !PRONOUN.test(text))) return text;
  return `${clip(before.text, Math.max(SHORT_QUESTION, ITEM_CHARS - text.length - 1))} ${text}`;
}

export const PRONOUN =
  /^(?:(?:and|but|so|also|then|however|aber|und|y|pero)[ ,]+)?(?:it|this|that|th[eo]se|they|s?he|das|dies\p{L}{0,2}|er|sie|es|es[oe]|est[oe])(?!\p{L})/iu;
const POINTS_BACK =
  /\b(?:this|that|these|those|it|them|both|the (?:first|second|change|fix))\b|(?<!\p{L})(?:das|dies\w{0,2}|esto|eso)(?!\p{L})|[这那]|이것|그것/iu;
export const SHORT_QUESTION = 70;

/** Says what may be done. */
const PROPOSES =
  /\b(?:could|should|(?:the|quick) (?:change|fix)\b|proposed|suggest|recommend|(?:is|be) better|best|instead)\b/i;
const NEAR = 4;

/** A question with the statement before it, where it does not say what it asks about; an offer with what is proposed. */
export function inContext(statements: readonly Statement[], question: Statement, maxChars = ITEM_CHARS): string {
  const at = statements.indexOf(question);
  const near = statements.slice(Math.max(0, at - NEAR), at).toReversed();
  const nearest = near.find(
    ({ text, heading, lead, items, number }, back) =>
      !PRONOUN.test(text) &&
      !/^options?\b/i.test(lead) &&
      (PROPOSES.test(text) ||
        (back === 0 && (items.length > 0 || number !== null || OFFER.test(text) || CONCLUDES.test(heading)))),
  );
  // Below the heading of a fix, the first statement says what it is.
  const isBelow = ({ heading }: Statement): boolean => CONCLUDES.test(heading) && heading === nearest?.heading;
  const before = (OFFER.test(question.text) ? (near.findLast(isBelow) ?? nearest) : undefined) ?? near[0];
  const isWhole = question.text.length > SHORT_QUESTION && !POINTS_BACK.test(question.text.slice(0, SHORT_QUESTION));
  if (before === undefined || isWhole || question.items.length > 0) return question.text;
  const room = Math.max(SHORT_QUESTION, maxChars - question.text.length - 1);
  const after = statements[at + 1];
  if (OFFER.test(question.text) && after !== undefined && after.items.length > 0)
    return `${question.text} ${clip(after.short, room)}`;
  const text = before.text.length > room ? clip(before.short, room) : before.text;
  return `${text}${fullStop(text)} ${question.text}`;
}

export const fullStop = (text: string): string => (/[.!?:;…。！？]$/u.test(text) ? '' : '.');
