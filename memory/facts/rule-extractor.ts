import { trimEnd } from '../../common/text.ts';
import { isAsking, separateCode, splitSentences } from '../text/sentences.ts';
import type { FactTurn } from './extract-facts.ts';

/** Finds a fact in a sentence, without its lead-in and its final point; the group `value` of `pattern` is the value. */
export interface FactRule {
  readonly concept: string;
  readonly pattern: RegExp;
  readonly polarity?: 'negated';
  /** Read the assistant's sentences too. */
  readonly fromAssistant?: true;
}

const LANGUAGES =
  'Arabic|Bengali|Chinese|Czech|Danish|Dutch|English|Finnish|French|German|Greek|Hebrew|Hindi|Hungarian|Indonesian|Italian|Japanese|Korean|Mandarin|Norwegian|Persian|Polish|Portuguese|Romanian|Russian|Spanish|Swedish|Thai|Turkish|Ukrainian|Vietnamese';
const ANSWERING = '(?:answer|reply|respond|talk|write)(?:ing)?(?: back)?(?: to me)?(?: always| only)? in';
const TASKS = 'build|compile|deploy|format|install|launch|lint|migrate|release|reset|run|seed|start|test';
/** What somebody is asked to do always or never; "always here to help" asks for nothing. */
const ORDERS =
  '(?:add|answer|ask|avoid|begin|bump|call|change|check|commit|create|delete|document|edit|explain|force-push|format|import|include|install|keep|log|merge|mock|modify|name|prefer|push|put|read|rebase|reply|respond|return|run|show|sort|squash|start|store|test|touch|update|use|verify|wrap|write)\\b';
const DAY =
  '(?:\\d|tomorrow|tonight|today|next |end of|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|noon|midnight)';

/** Of these the object alone is the value, so that a later negation names the same. */
const ENDED: readonly RegExp[] = [
  /^(?:we|i)(?:'re| are|'m| am)? no longer (?:us(?:e|ing)|prefer|like|want|rely(?:ing)? on) (?<value>.+)$/i,
  /^(?:we|i) (?:don't|do not) (?:use|prefer|like|want) (?<value>.+?) any ?more$/i,
  /^(?:we|i)(?:'ve| have)? (?:stopped using|dropped|abandoned|got rid of|moved away from) (?<value>.+)$/i,
  /^(?:we (?:should|must) )?stop using (?<value>.+)$/i,
  /^we(?:'re| are|'ve| have)? (?:switch|mov|migrat)(?:ed|ing) from (?<value>.{1,80}?) to .+$/i,
];

/** For the default ontology, in English. A sentence that says less than these is left to a model. */
export const DEFAULT_RULES: readonly FactRule[] = [
  ...find('Person.Preference', [
    /^i (?:really |strongly |generally |usually |always |much )?prefer (?<value>.+)$/i,
    /^i (?:always|usually|only) (?:use|write|work with) (?<value>.+)$/i,
    new RegExp(`^(?:from now on,? |going forward,? )?(?<value>(?:always |never )${ORDERS}.+)$`, 'i'),
    new RegExp(`^(?:from now on|going forward),? (?:please )?(?<value>${ORDERS}.+)$`, 'i'),
  ]),
  ...find('Person.Constraint', [
    /^i(?:'m| am) (?<value>deaf|blind|colou?r-?blind|dyslexic|hard of hearing|partially sighted)$/i,
    /^i (?:use|rely on|work with) (?<value>a (?:screen ?reader|braille display|screen magnifier))$/i,
    /^i(?:'m| am) (?<value>not allowed to .+)$/i,
    /^(?<value>(?:our|company|security) policy (?:forbids|prohibits|does not allow|doesn't allow) .+)$/i,
  ]),
  ...find('Person.Language', [
    new RegExp(`^(?:always )?${ANSWERING} (?<value>${LANGUAGES})(?: from now on)?$`, 'i'),
    new RegExp(`^(?:i speak|my (?:native |first )?language is) (?<value>${LANGUAGES})$`, 'i'),
  ]),
  ...end('Person.Language', [
    new RegExp(`^(?:stop|no longer|don't|do not) ${ANSWERING} (?<value>${LANGUAGES})(?: any ?more)?$`, 'i'),
  ]),
  ...find('Project.Decision', [
    /^(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|opted)(?: on| for| that| to use| to go with| to)? (?<value>.+)$/i,
    /^(?:the )?decision(?: is|:)(?: to use| to)? (?<value>.+)$/i,
    /^(?:let's|we(?:'ll| will)) (?:(?:go|stick) with|use) (?<value>.+)$/i,
    /^we use (?<value>.+)$/i,
    /^we(?:'re| are|'ve| have)? (?:switch|mov|migrat)(?:ed|ing) (?:from .{1,80}? )?to (?<value>.+)$/i,
  ]),
  ...find('Project.Convention', [
    /^(?:(?:our|the) convention is|by convention,?|convention:) (?:that |to )?(?<value>.+)$/i,
    /^(?<value>(?:all|every|each) (?:[\w-]+ ){1,4}(?:must|should|have to|has to|needs? to) .+)$/i,
    new RegExp(`^we (?<value>(?:always|never) ${ORDERS}.+)$`, 'i'),
  ]),
  ...find('Project.Environment', [
    /^(?:the |our )?(?<value>(?:[\w.-]+ ){0,3}(?:port|host|hostname|url|version|address|directory|bucket|region|database) is (?:now )?(?=\S*[\d./:_-])\S+)$/i,
    /^(?:the |our )?(?<value>(?:[\w.-]+ ){1,4}(?:runs|listens|lives) (?:on|at) (?:port )?\S{0,60}\d\S{0,60})$/i,
    /^[Ww]e(?:'re| are) (?:on|running) (?<value>\p{Lu}[\w.+#-]* v?\d[\w.]*)$/u,
  ]),
  ...find('Project.Command', [
    new RegExp(
      `^(?:(?:we|you) )?(?:${TASKS})\\b[^\`]{0,60} (?:with|via|using|by running|through) \`(?<value>[^\`]+)\`$`,
      'i',
    ),
    new RegExp(`^(?:use|run) \`(?<value>[^\`]+)\` to (?:${TASKS})\\b`, 'i'),
    /^(?:the |our )?(?:[\w-]+ ){1,3}command is `(?<value>[^`]+)`$/i,
  ]),
  ...find('Project.Owner', [
    /^(?<value>(?!(?:It|He|She|This|That|They|We|You|Who|What|One|Everyone|Nobody)\b)(?:[Tt]he (?:[\w-]+ ){1,2}team|\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+)?) (?:owns|maintains|is responsible for|is in charge of) .+)$/u,
    /^(?<value>.{1,80} is owned by .+)$/i,
  ]),
  ...find('Work.Goal', [
    /^(?:(?:the|our|my) (?:main |overall |current )?(?:goal|aim|objective)(?: here| today| for today| for this session)? is|goal:) (?:to )?(?<value>.+)$/i,
  ]),
  ...find('Work.Blocker', [
    /^(?:i'm|i am|we're|we are|this is|it's|it is) (?:still )?(?:blocked|stuck) (?:by|on) (?<value>.+)$/i,
    /^blocker: (?<value>.+)$/i,
  ]),
  ...end('Work.Blocker', [
    /^(?:i'm|i am|we're|we are|this is|it's|it is)? ?(?:no longer|not) (?:blocked|stuck) (?:by|on) (?<value>.+?)(?: any ?more)?$/i,
  ]),
  ...find('Work.NextStep', [
    /^(?:the )?next steps?(?: is|:)(?: to)? (?<value>.+)$/i,
    /^next,? (?:i|we)(?:'ll| will| need to| have to) (?<value>.+)$/i,
  ]).map((rule): FactRule => ({ ...rule, fromAssistant: true })),
  ...find('Work.Deadline', [
    new RegExp(`^(?:the |our )?deadline(?: for (?:[\\w-]+ ){1,5}?)? ?is (?:on )?(?<value>.{0,60}?\\b${DAY}.*)$`, 'i'),
    new RegExp(
      `^(?:the |our )?(?<value>(?:[\\w-]+ ){1,6}?(?:is due|(?:must|has to|needs to) be (?:done|finished|ready|released|shipped)) (?:by|on|before) .{0,60}?\\b${DAY}.*)$`,
      'i',
    ),
  ]),
  ...find('Session.Focus', [
    /^(?:let's|today (?:i|we)(?:'ll| will| want to)) (?:focus|concentrate|work) on (?<value>.+)$/i,
    /^(?:today )?(?:i'm|i am|we're|we are) (?:now )?(?:focusing|concentrating|working) on (?<value>.+)$/i,
  ]),
  ...find('Need.Immediate', [
    /^(?:right now|for now),? (?:i|we) (?:just |only )?need (?<value>.+)$/i,
    /^i (?:just |only )?need (?<value>.+) (?:right now|asap|immediately)$/i,
  ]),
  ...['Person.Preference', 'Project.Decision'].flatMap((concept) => end(concept, ENDED)),
];

function find(concept: string, patterns: readonly RegExp[]): FactRule[] {
  return patterns.map((pattern) => ({ concept, pattern }));
}

function end(concept: string, patterns: readonly RegExp[]): FactRule[] {
  return patterns.map((pattern) => ({ concept, pattern, polarity: 'negated' }));
}

const LEAD_IN =
  /^(?:(?:ok(?:ay)?|yes|yeah|please|also|and|so|note(?: that)?|remember(?: that)?|fyi|btw|by the way|right|well|sure|thanks)\b[,:!]?\s+){1,3}/i;
/** Guesses, conditions, and what somebody else may have said. */
const HEDGE =
  /\b(?:if|unless|maybe|perhaps|might|probably|would|could|wonder|guess|i think|not sure|for example|e\.g|said|says)\b|["“”]/i;
/** Takes back what the sentence before it says. */
const TURN = /^(?:no,|(?:but|however|although|actually|wait|instead|never ?mind|scratch that|just kidding)\b)/i;
/** A reason follows, or another clause. */
const CLAUSE_END = /[,;:] | (?:because|since|so that|as we|given that|instead of|rather than|, and|, so)\b/i;
const CLOSING = / (?:please|from now on|going forward|too|as well)$/i;
const MOST = { text: 40_000, sentence: 300, value: 120 } as const;

/** Candidates for `extractFacts`: what a turn states in so many words. */
export function extractByRules(turn: FactTurn, rules: readonly FactRule[] = DEFAULT_RULES): readonly object[] {
  return [
    ...match(turn.user, rules),
    ...match(
      turn.assistant,
      rules.filter(({ fromAssistant }) => fromAssistant === true),
    ),
  ];
}

function match(text: string, rules: readonly FactRule[]): object[] {
  if (rules.length === 0) return [];
  return paragraphsOf(text).flatMap((paragraph) => {
    const sentences = splitSentences(paragraph);
    return sentences.flatMap((evidence, at) => {
      if (evidence.length > MOST.sentence || TURN.test(sentences[at + 1] ?? '')) return [];
      const sentence = trimEnd(evidence.replace(LEAD_IN, '').replaceAll('’', "'"), '.! ');
      if (isAsking(evidence) || isAsking(sentence) || HEDGE.test(sentence)) return [];
      return rules.flatMap(({ concept, pattern, polarity = 'asserted' }) => {
        const [clause = ''] = (pattern.exec(sentence)?.groups?.['value'] ?? '').split(CLAUSE_END);
        const value = clause.replace(CLOSING, '');
        return value.length < 2 || value.length > MOST.value ? [] : [{ concept, value, polarity, evidence }];
      });
    });
  });
}

/** Prose without code, quotations, tables and what is indented as a terminal prints it; each list item for itself. */
function paragraphsOf(text: string): string[] {
  const paragraphs: string[] = [];
  let isOpen = false;
  for (const line of separateCode(text.slice(0, MOST.text)).prose) {
    const isProse = /^ {0,3}[^\s>|]/.test(line);
    const item = /^ {0,3}(?:[-*+•]|\d{1,3}[.)]) +/.exec(line)?.[0];
    if (isProse && isOpen && item === undefined) paragraphs.push(`${paragraphs.pop()} ${line.trim()}`);
    else if (isProse) paragraphs.push(line.slice(item?.length ?? 0).trim());
    isOpen = isProse;
  }
  return paragraphs;
}
