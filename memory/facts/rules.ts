import { trimEnd } from '../../common/text.ts';
import { isAsking, splitSentences } from '../text/sentences.ts';
import { findStatements } from '../text/statements.ts';
import { findSpoken, typedText } from '../text/typed-text.ts';
import { DEFAULT_RULES, type FactRule } from './default-rules.ts';
import type { FactTurn } from './extract-facts.ts';

const LEAD_IN =
  /^(?:(?:ok(?:ay)?|yes|yeah|no|please|also|and|but|so|then|note(?: that)?|remember(?: that)?|fyi|btw|by the way|right|well|sure|thanks|i think(?= we should))\b[,:!]?\s+){1,3}/i;
/** A request for good, worded as a question. */
const POLITE =
  /^(?:can|could|would|will) (?:you|we) (?:please )?(?:make sure (?:to |that you )?|remember to )?(?=(?:always|never|from now on|going forward)\b)/i;
/** Guesses, conditions, what somebody else may have said, and what the sentence itself takes back. */
const HEDGE =
  /\b(?:if|unless(?! i\b)|maybe|perhaps|might|probably|would(?! like)|could|wonder(?:ing)?|guess|i think(?! we should)|not sure|let's say|for example|e\.g|said|says|told|wrote|no,? wait|wait,? no|no,? actually|actually,? no|hm+,? no|scratch that|on second thought|nein,? warte|warte,? nein)\b/i;
/** Takes back what the sentence before it says. */
const TURN =
  /^(?:(?:hm+,? )?no,|(?:(?:hm+,? )?no wait|but|however|although|actually|wait|instead|never ?mind|scratch that|just kidding)\b)/i;
/** The same where it is a statement of its own. */
const TAKEN_BACK = /^(?:hm+,? )?(?:no,? wait|wait,? no|scratch that|never ?mind|just kidding)\b/i;
/** What is asked for after a statement in the same sentence. */
const REQUEST = /,? (?:can|could|would|will) (?:you|we) /i;
const INNER_END = /(?<=[\p{L}\p{N})"'`]{2}[.!?])\s+/u;
const CLAUSE_START = /[,;:] |\(|\b(?:and|but|so|because|since) /g;
/** A reason follows, or another clause. */
const CLAUSE_END = /[,;:] | (?:because|since|so that|as we|given that|instead of|rather than|, and|, so)\b/i;
const CLOSING = / (?:please|from now on|going forward|too|as well|now|then|instead)$/i;
/** Says nothing to who does not know what was said before. */
const POINTS =
  /\b(?:these|those|it|them|they|there|above|below|each other)\b|\bth(?:is|at)\b(?! (?:code ?base|computer|laptop|machine|package|project|repo|repository)\b)|^(?:move|rename|replace|set) (?:to|with)\b|\b(?:option|approach|variant) \w$|^(?:the )?(?:first|second|third|last|other|\d+)(?: (?:one|option|approach))?$/i;
const PASSING = /\b(?:for now|for the moment|for a (?:second|moment)|right now|this time|temporarily|today|yet)\b/i;
/** What is named does not exist yet, or no longer. */
const NOT_THERE = /\b(?:add|create|introduce|rename|remove|drop|no longer|instead of|such as|e\.g)\b/i;
/** Concepts of what passes. */
const PASSES = /^(?:Work|Session|Need)\./;
const MOST = { text: 40_000, sentence: 300, value: 120 } as const;

/** Candidates for `extractFacts`: what a turn states explicitly. */
export function extractByRules(turn: FactTurn, rules: readonly FactRule[] = DEFAULT_RULES): readonly object[] {
  const ofAssistant = rules.filter(({ fromAssistant }) => fromAssistant === true);
  const statements = findStatements(turn.assistant.slice(0, MOST.text)).map(({ text }) => text);
  const own = (turn.prompts ?? [turn.user]).flatMap(getOwnWords);
  return [...match(own, rules, turn.user), ...match(statements, ofAssistant, turn.assistant)];
}

/** With evidence as it stands in `text`: typed text has straight apostrophes and no markdown. */
function quoted(matches: readonly Record<'value' | 'evidence', string>[], text: string): object[] {
  if (matches.length === 0) return [];
  const written = text.replace(/\s+/g, ' ');
  const plain = written.replaceAll('’', "'");
  return matches.map((fact) => {
    const span = [fact.evidence, fact.value].find((each) => plain.includes(each)) ?? fact.evidence;
    const at = plain.indexOf(span);
    return { ...fact, evidence: at < 0 ? span : written.slice(at, at + span.length) };
  });
}

function match(texts: readonly string[], rules: readonly FactRule[], whole: string): object[] {
  const facts = texts.flatMap((text, index) => {
    const sentences = splitSentences(text).flatMap((sentence) => sentence.split(INNER_END));
    return sentences.flatMap((evidence, at) => {
      const after = sentences[at + 1];
      const isOver = after === undefined ? TAKEN_BACK.test(texts[index + 1] ?? '') : TURN.test(after);
      if (evidence.length > MOST.sentence || isOver) return [];
      const order = evidence.replaceAll('’', "'").replace(POLITE, '');
      const sentence = trimEnd(order, order.length === evidence.length ? '.! ' : '.!? ');
      const [stated = ''] = sentence.split(REQUEST);
      const clauses = isAsking(stated) || HEDGE.test(stated) ? [] : getClauses(stated);
      const matches = rules.flatMap(({ concept, pattern, polarity = 'asserted', named }) => {
        const values = named ? findNamed(sentence, pattern) : findStated(clauses, pattern, PASSES.test(concept));
        const whole = values.filter(({ length }) => length > 1 && length <= MOST.value);
        return whole.map((value) => ({ concept, value, polarity, evidence }));
      });
      return [...new Map(matches.map((fact) => [`${fact.polarity} ${fact.concept}: ${fact.value}`, fact])).values()];
    });
  });
  return quoted(facts, whole);
}

function findNamed(sentence: string, pattern: RegExp): string[] {
  if (NOT_THERE.test(sentence)) return [];
  const values: string[] = [];
  for (let rest = sentence, match = pattern.exec(rest); match !== null; match = pattern.exec(rest)) {
    values.push(trimEnd(match.groups?.['value'] ?? '', ' .:-'));
    rest = rest.slice(match.index + Math.max(match[0].length, 1));
  }
  return [...new Set(values)];
}

/** The first that is whole and outside of quotations. */
function findStated(clauses: readonly string[], pattern: RegExp, passes: boolean): string[] {
  for (const clause of clauses) {
    const [found = ''] = (pattern.exec(clause)?.groups?.['value'] ?? '').split(CLAUSE_END);
    const value = (found.includes('(') ? found : found.replace(/\).*/, '')).replace(CLOSING, '').trim();
    if (value !== '' && isBalanced(value) && !POINTS.test(value) && (passes || !PASSING.test(clause))) return [value];
  }
  return [];
}

/** A sentence from each place on where a statement may begin. */
function getClauses(sentence: string): string[] {
  const starts = [0, ...[...sentence.matchAll(CLAUSE_START)].map(({ 0: { length }, index }) => index + length)];
  const clauses = starts.flatMap((at) =>
    isBalanced(sentence.slice(0, at)) ? [trimEnd(sentence.slice(at).replace(LEAD_IN, ''), '.! ')] : [],
  );
  return [...new Set(clauses)];
}

const isBalanced = (text: string): boolean => text.split(/["“”]/).length % 2 === 1;

/** What the user typed, one paragraph or item each, without what was pasted. */
function getOwnWords(text: string): string[] {
  const lines = text.slice(0, MOST.text).split('\n');
  const typed = typedText(lines.filter((line) => !/^(?: {4}|\t)/.test(line)).join('\n'));
  return findSpoken(findStatements(typed), typed, '').flatMap(({ own, shown, statement: { isCopied, items } }) => {
    if (isCopied) return [];
    return shown === '' && items.length > 0 ? items.map((item) => item.text) : [own];
  });
}
