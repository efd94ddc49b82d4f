import { memoize } from '../../common/map.ts';
import { trimEnd } from '../../common/text.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { repeatsShown } from '../text/repetition.ts';
import { split } from '../text/sentences.ts';

const LEAST_SHARE = 0.6;

/**
 * Origin of a text whose writer saw the turns `shown` and cites `sources` (turn ids). Verbatim user text is the user's.
 * Otherwise it is the lowest origin of the cited turns if their words support the text, else the lowest of all shown.
 */
export function attributedOrigin(text: string, sources: readonly string[], turns: readonly TurnText[]): Origin {
  const origin = originInTurns(text, sources, turns);
  return origin !== 'user' && repeatsShown(text, turns) ? lowestOrigin([origin, 'tool']) : origin;
}

function originInTurns(text: string, sources: readonly string[], turns: readonly TurnText[]): Origin {
  const named = turns.filter((turn) => sources.includes(turn.turnId));
  if (saidByUser(text, named)) return 'user';
  const lowest = lowestOrigin(turns.map((turn) => turn.origin));
  if (named.length < new Set(sources).size || named.length === 0) return lowest;
  const claimed = lowestOrigin(named.map((turn) => turn.origin));
  return claimed === lowest || rests(text, named, turns) ? claimed : lowest;
}

/** Compares whole sentences: a fragment may reverse the meaning. */
function saidByUser(text: string, turns: readonly TurnText[]): boolean {
  if (text.trim() === '') return false;
  const [whole, ...parts] = [text, ...split(text)].map(flat);
  return turns.some((turn) => {
    if (turn.userOrigin !== undefined) return false;
    const userWords = usersWords(turn);
    return userWords.has(whole as string) || (parts.length > 0 && parts.every((part) => userWords.has(part)));
  });
}

const usersWords = memoize(({ user }: TurnText) => new Set([user, ...split(user)].map(flat)));

function wholeText(turn: TurnText): string {
  return [turn.user, ...turn.parts.map((part) => part.text)].join('\n');
}

function rests(text: string, named: readonly TurnText[], turns: readonly TurnText[]): boolean {
  const words = [...new Set(getWords(text))];
  const ground = new Set(named.flatMap((turn) => getWords(wholeText(turn))));
  const elsewhere = new Set(turns.filter((turn) => !named.includes(turn)).flatMap((turn) => getWords(wholeText(turn))));
  const missing = words.filter((word) => !ground.has(word));
  const stolen = missing.some((word) => /[\d./:@-]/.test(word) && elsewhere.has(word));
  return !stolen && missing.length <= words.length * (1 - LEAST_SHARE);
}

function getWords(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_][\p{L}\p{N}_./:@-]*/gu) ?? [];
  return words.map((word) => trimEnd(word, './:@-')).filter((word) => word.length > 2);
}

function flat(text: string): string {
  return trimEnd(text.toLowerCase().replace(/\s+/g, ' '), '.! ').trim();
}
