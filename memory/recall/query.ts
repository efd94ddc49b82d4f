import { stripInjected } from '../ingest/content-blocks.ts';
import { contentTokens } from '../text/keywords.ts';

/** With fewer words of its own a prompt means what was said before it. */
const ENOUGH_WORDS = 2;
const CONTEXT_TEXTS = 2;
const CONTEXT_CHARS = 800;
const MAX_CHARS = 4_000;

/**
 * What memory is asked for. A prompt without words of its own ("yes, do it", "the other one") takes them from the
 * texts before it.
 * @param recent  the conversation before the prompt, oldest first
 * @returns       '' when nothing names anything
 */
export function recallQuery(prompt: string, recent: readonly string[]): string {
  const own = bounded(stripInjected(prompt), MAX_CHARS);
  if (contentTokens(own).length >= ENOUGH_WORDS) return own;
  const texts = recent.map((text) => bounded(stripInjected(text), CONTEXT_CHARS));
  const before = texts.filter((text) => contentTokens(text).length > 0).slice(-CONTEXT_TEXTS);
  const query = [own, ...before.reverse()].join('\n').trim();
  return contentTokens(query).length > 0 ? query : '';
}

const CALL_WORDS =
  /\b(?:commands?|scripts?|cli|shell|paths?|files?|folder|director(?:y|ies)|flags?|options?|arguments?|quer(?:y|ies))\b/i;

/** Whether the query asks for what stands in calls of tools: a command, a path. */
export const namesCall = (query: string): boolean => CALL_WORDS.test(query);

/** Beginning and end: pastes stand in the middle, what is asked at either side. */
function bounded(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  return `${text.slice(0, half)}\n${text.slice(-half)}`;
}

const PAST_WORDS =
  /\b(?:before|previous\w*|used to|former\w*|old(?:er)?|earlier|original\w*|at first|back then|in the past|history|replaced|superseded|no longer|any ?more|until|did we|were we|was our|what was|which was)\b/i;

/** Whether the query asks for what was so once. */
export const asksPast = (query: string): boolean => PAST_WORDS.test(query);

const EXACT_WORDS =
  /\b(?:exact(?:ly)?|verbatim|word for word|wording|literal(?:ly)?|quote[ds]?|precise(?:ly)?|to the letter)\b|\b(?:which|what)(?: \w+)? (?:port|version|limit|threshold|timeout|number|value|hash|key|id|url|address|path|flag|command|date|time|amount|price|rate|size|figure)s?\b|\bhow (?:many|much|often|long|large|big|high|wide)\b/i;

/** Whether the query asks for an exact value or wording, which a summary may have rounded or put in other words. */
export const asksExact = (query: string): boolean => EXACT_WORDS.test(query);
