import { createHash } from 'node:crypto';
import { type Fact, isDraft, type MemoryNode } from '../model/node.ts';
import { spokenText, type TurnText, withoutToolOutput } from '../model/turn.ts';
import type { IndexRow } from '../search/search-index.ts';
import { contentDigest } from '../text/content-hash.ts';
import { contentTags } from '../text/system-tags.ts';
import { uniqueTokens } from '../text/tokenizer.ts';

export interface NodeTexts {
  readonly turns: ReadonlyMap<string, TurnText>;
  /** For each turn its session, and how many turns came before it there. */
  readonly positions: ReadonlyMap<string, { readonly sessionId: string; readonly position: number }>;
}

/** Of a session; a place is a whole number that a float holds. */
const MOST_TURNS = 2 ** 20;
const EMPTY_ROW = { turnId: '', digest: '', trigger: '', place: null, sources: [] } as const;

/** Index rows of a node: itself, its turns, its facts. */
export function rowsOf(node: MemoryNode, { turns, positions }: NodeTexts): IndexRow[] {
  const shared = { ...EMPTY_ROW, nodeId: node.node_id, sessionId: node.session_id, project: node.project };
  const facts = node.facts.map(factText);
  const atMs = Date.parse(node.valid_from);
  const text = [
    node.summary,
    node.trigger,
    contentTags(node.topic_tags).join(' '),
    ...facts,
    node.detailed_summary ?? '',
  ]
    .join('\n')
    .trimEnd();
  const own: IndexRow = {
    ...shared,
    ...{ kind: 'node', origin: node.origin, atMs, digest: contentDigest(node) },
    ...{ text, embedded: node.summary, trigger: node.trigger },
  };
  const turnRows = node.turns.flatMap((turnId): IndexRow[] => {
    const turn = turns.get(turnId);
    const said = turn === undefined ? '' : spokenText(turn);
    if (turn === undefined || said === '') return [];
    const { origin } = withoutToolOutput(turn);
    const place = placeIn(positions.get(turnId));
    return [{ ...shared, ...place, kind: 'turn', turnId, origin, atMs: turn.atMs, text: said, embedded: said }];
  });
  // Facts of a draft repeat sentences of its turns: indexing them twice would crowd out other results.
  const stated = isDraft(node) ? [] : node.facts;
  const factRows = stated.map(({ evidence: sources }, at): IndexRow => {
    const fact = facts[at] as string;
    const saidAtMs = turns.get(sources[0] ?? '')?.atMs ?? atMs;
    return { ...shared, kind: 'fact', origin: node.origin, atMs: saidAtMs, sources, text: fact, embedded: fact };
  });
  return [own, ...turnRows, ...factRows];
}

/** Places of two sessions of a project are far apart, whatever their lengths. */
function placeIn(known: { readonly sessionId: string; readonly position: number } | undefined) {
  if (known === undefined) return {};
  const { sessionId, position } = known;
  const session = createHash('sha256').update(sessionId).digest().readUInt32BE();
  return { sessionId, place: session * MOST_TURNS + position };
}

/** Omits the concept when the value starts with it. */
function factText({ concept, value }: Fact): string {
  return startsWith(uniqueTokens(value), uniqueTokens(concept)) ? value : `${concept}: ${value}`;
}

function startsWith(tokens: readonly string[], first: readonly string[]): boolean {
  return first.every((token, at) => tokens[at] === token);
}

/** Turns with those right before them in their session. */
export interface SessionTurns {
  /** @param texts  of some turns of the session; where they are left out, all of it are read */
  read(sessionId: string, texts?: readonly TurnText[]): Promise<NodeTexts>;
  clear(): void;
}

const SESSIONS = 16;

/** @param textsOf  every turn of a session, oldest first */
export function createSessionTurns(textsOf: (sessionId: string) => Promise<readonly TurnText[]>): SessionTurns {
  const sessions = new Map<string, readonly string[]>();

  function keep(sessionId: string, order: readonly string[]): readonly string[] {
    sessions.delete(sessionId);
    sessions.set(sessionId, order);
    for (const oldest of sessions.keys()) {
      if (sessions.size <= SESSIONS) break;
      sessions.delete(oldest);
    }
    return order;
  }

  async function orderOf(sessionId: string, texts: readonly TurnText[]): Promise<readonly string[]> {
    const held = sessions.get(sessionId);
    const known = new Set(held);
    const fresh = texts.filter(({ turnId }) => !known.has(turnId));
    if (held !== undefined && fresh.length === 0) return held;
    // What follows the last known turn is new; where known ones come after it, the order is another.
    const continues = held !== undefined && texts.slice(-fresh.length).every((turn, at) => turn === fresh[at]);
    if (continues) return keep(sessionId, [...held, ...fresh.map(({ turnId }) => turnId)]);
    return keep(sessionId, turnIdsOf(await textsOf(sessionId)));
  }

  return {
    async read(sessionId, texts) {
      const turns = texts ?? (await textsOf(sessionId));
      const order = texts === undefined ? keep(sessionId, turnIdsOf(turns)) : await orderOf(sessionId, turns);
      const positions = new Map(order.map((turnId, position) => [turnId, { sessionId, position }]));
      return { turns: new Map(turns.map((turn) => [turn.turnId, turn])), positions };
    },
    clear: () => sessions.clear(),
  };
}

function turnIdsOf(turns: readonly TurnText[]): string[] {
  return turns.map(({ turnId }) => turnId);
}
