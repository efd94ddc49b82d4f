import type { JoinedTurn } from './join-parts.ts';
import type { Texts } from './turn-reader.ts';
import type { TurnBook } from './turn-registry.ts';

/**
 * The turns that a session shares with the one it was forked from, oldest first: they are kept once, in the session
 * that had them first. Ends at a turn of which nothing is kept.
 */
export async function turnsBefore(
  first: Pick<JoinedTurn, 'before'> | undefined,
  { book, texts }: { readonly book: TurnBook; readonly texts: Pick<Texts, 'turns'> },
): Promise<JoinedTurn[]> {
  const read = new Map<string, Promise<readonly JoinedTurn[]>>();
  const found: JoinedTurn[] = [];
  const seen = new Set<string>();
  for (let before = first?.before ?? ''; before !== '' && !seen.has(before); ) {
    seen.add(before);
    const sessionId = book.sessionOf(before);
    if (sessionId === undefined) break;
    const turns = read.get(sessionId) ?? texts.turns(sessionId);
    read.set(sessionId, turns);
    const name = book.forms(before)[0];
    const turn = (await turns).find(({ turnId }) => turnId === name);
    if (turn === undefined) break;
    found.unshift(turn);
    before = turn.before ?? '';
  }
  return found;
}
