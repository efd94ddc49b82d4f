import type { TurnText } from '../model/turn.ts';
import { topicTokens } from '../text/keywords.ts';

/** A prompt up to this long may open like an answer; a longer one says itself what it is about. */
const SHORT_WORDS = 8;
/** Of content words: by fewer it is not clear that a prompt does anything but continue. */
const LEAST_WORDS = 4;
const CONTINUES =
  /^(?:yes|yep|no|ok|okay|and|also|but|then|it|that|this|same|again|continue|go on|go ahead|do it|why|thanks|great|perfect)\b/i;
export const TURNS_ON =
  /^(?:now|next|on to|moving on|let's (?:move|turn|go on)|we begin|another (?:thing|topic)|new topic|one more thing|different)\b/i;
const TEXT_CHARS = 6_000;
/**
 * How far a turn is from the turns before it: 0 the same words, 1 none in common, null where it says too little.
 */
export function driftOf(turn: TurnText, before: readonly TurnText[], leastWords = LEAST_WORDS): number | null {
  const asked = topicTokens(turn.user.slice(0, TEXT_CHARS));
  const answers = asked.length <= SHORT_WORDS && CONTINUES.test(turn.user.trim());
  if (before.length === 0 || asked.length < leastWords || answers) return null;
  const known = new Set(before.flatMap((each) => topicTokens(topicText(each))));
  const own = topicTokens(topicText(turn));
  const shared = (tokens: readonly string[]): number => tokens.filter((token) => known.has(token)).length;
  const closeness = Math.max(shared(asked) / asked.length, shared(own) / Math.max(1, own.length));
  return 1 - closeness;
}

/** What was said, and the names of what was touched. */
function topicText(turn: TurnText): string {
  const said = turn.parts.filter((part) => part.kind === 'assistant').map((part) => part.text.slice(0, TEXT_CHARS));
  const calls = turn.parts.filter((part) => part.kind === 'tool_use').map((part) => part.text.slice(0, 200));
  return [turn.user.slice(0, TEXT_CHARS), ...said, ...calls].join('\n');
}
