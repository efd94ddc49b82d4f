import type { Origin } from '../../common/turn.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnWords } from '../search/search-index.ts';
import { isClosed, toldBy } from '../text/validity.ts';
import { RAW_CHARS, type RawLine } from './format-memory.ts';
import type { RankedNode } from './node-ranking.ts';
import type { QueryWeights } from './query-weights.ts';
import { bestSnippet, chooseQuote, piecesOf, type Snippet, type SnippetRules } from './snippet.ts';

export interface TurnOfMemory {
  readonly text: string;
  readonly origin: Origin;
  /** The user's part. */
  readonly user?: string;
}

type TurnText = (turnId: string) => TurnOfMemory | null | Promise<TurnOfMemory | null>;

/** Limits per node. */
const TURNS_READ = 16;
const READ_CHARS = 80_000;

/** Ids of the node's turns to read, matched turns first. */
export function turnsRead({ turns }: RankedNode, node: MemoryNode | null): string[] {
  return [...new Set([...turns, ...(node?.turns ?? [])])].slice(0, TURNS_READ);
}

/** Texts of the node's turns, oldest first. */
export async function readTurns(
  candidate: RankedNode,
  node: MemoryNode,
  words: ReadonlyMap<string, TurnWords>,
  turnText: TurnText,
): Promise<ReadonlyMap<string, TurnWords>> {
  const inOrder = turnsRead(candidate, node).sort((one, other) => node.turns.indexOf(one) - node.turns.indexOf(other));
  const read = new Map<string, TurnWords>();
  let left = READ_CHARS;
  for (const turnId of inOrder) {
    const turn = words.get(turnId) ?? (await turnText(turnId));
    if (turn === null) continue;
    const text = turn.text.slice(0, left);
    read.set(turnId, { text, origin: turn.origin });
    left -= text.length;
  }
  return read;
}

type Offered = Snippet & RawLine;

interface Reading {
  readonly weights: QueryWeights;
  readonly rules: SnippetRules;
  readonly past: boolean;
}

/** The best matching line of the node's turns. */
export function rawLine(
  node: MemoryNode,
  turns: ReadonlyMap<string, TurnWords>,
  { weights, rules, past }: Reading,
): Offered | null {
  const offered: Offered[] = [];
  const isClosedBy = toldBy(past ? [] : node.facts.filter(isClosed));
  let carried = 0;
  for (const [turn, { text, origin }] of turns) {
    const snippet = bestSnippet(text, weights, { ...rules, carried });
    const isGone = snippet !== null && isClosedBy(snippet.text);
    if (snippet !== null && !isGone) offered.push({ ...snippet, turn, origin });
    carried = snippet?.worth ?? 0;
  }
  return chooseQuote(offered, weights);
}

/** The user's own words stay trusted even if later text of the turn came from outside. */
export async function originOf({ text, turn, origin }: RawLine, turnText: TurnText): Promise<Origin> {
  if (isCleanOrigin(origin)) return origin;
  const { user = '' } = (await turnText(turn)) ?? {};
  return piecesOf(user, RAW_CHARS).includes(text) ? 'user' : origin;
}
