import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { split } from '../text/sentences.ts';

const LEAST_SHARE = 0.6;

/**
 * The origin of a text that a writer made while it was shown `shown`, naming `sources` (turn ids) as its ground.
 *
 * Verbatim words of the user are the user's. Else the lowest of the named sources, as long as the text really
 * rests on them; a text that does not could rest on anything the writer saw.
 */
export function attributedOrigin(text: string, sources: readonly string[], shown: readonly TurnText[]): Origin {
  const named = shown.filter((turn) => sources.includes(turn.turnId));
  if (saidByUser(text, named)) return 'user';
  const lowest = lowestOrigin(shown.map((turn) => turn.origin));
  if (named.length < new Set(sources).size || named.length === 0) return lowest;
  const claimed = lowestOrigin(named.map((turn) => turn.origin));
  return claimed === lowest || rests(text, named, shown) ? claimed : lowest;
}

/** In whole sentences of one turn: a part of one may say the opposite of it. */
function saidByUser(text: string, turns: readonly TurnText[]): boolean {
  if (text.trim() === '') return false;
  const [whole, ...parts] = [text, ...split(text)].map(flat);
  return turns.some((turn) => {
    if (turn.userOrigin !== undefined) return false;
    const said = usersWords(turn);
    return said.has(whole as string) || (parts.length > 0 && parts.every((part) => said.has(part)));
  });
}

const wordsOfUser = new WeakMap<TurnText, ReadonlySet<string>>();

/** A turn is asked for each text that may rest on it. */
function usersWords(turn: TurnText): ReadonlySet<string> {
  const known = wordsOfUser.get(turn) ?? new Set([turn.user, ...split(turn.user)].map(flat));
  wordsOfUser.set(turn, known);
  return known;
}

/** Everything of a turn that its reader was shown. */
function wholeText(turn: TurnText): string {
  return [turn.user, ...turn.parts.map((part) => part.text)].join('\n');
}

function rests(text: string, named: readonly TurnText[], shown: readonly TurnText[]): boolean {
  const words = [...new Set(wordsOf(text))];
  const ground = new Set(named.flatMap((turn) => wordsOf(wholeText(turn))));
  const elsewhere = new Set(shown.filter((turn) => !named.includes(turn)).flatMap((turn) => wordsOf(wholeText(turn))));
  const missing = words.filter((word) => !ground.has(word));
  const stolen = missing.some((word) => /[\d./:@-]/.test(word) && elsewhere.has(word));
  return !stolen && missing.length <= words.length * (1 - LEAST_SHARE);
}

function wordsOf(text: string): string[] {
  const found = text.toLowerCase().match(/[\p{L}\p{N}_][\p{L}\p{N}_./:@-]*/gu) ?? [];
  return found.map((word) => word.replace(/[./:@-]+$/, '')).filter((word) => word.length > 2);
}

function flat(text: string): string {
  return text
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(/[.!\s]+$/, '')
    .trim();
}
