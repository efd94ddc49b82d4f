import {
  FACT_LANES,
  type Hit,
  type IndexFilter,
  type Lane,
  type LaneScore,
  NODE_LANES,
  type SearchIndex,
  TURN_LANES,
} from '../../memory/search/search-index.ts';

export const EVERY_LANE: readonly Lane[] = [...TURN_LANES, ...FACT_LANES, ...NODE_LANES];

/** A turn that no lane found. */
export function turnHit(turnId: string, over: Partial<Hit> = {}): Hit & { readonly turnId: string } {
  return { nodeId: 'n', atMs: 0, tellsTime: false, place: null, lanes: {}, ...over, turnId };
}

export function nodeHit(nodeId: string, lanes: Partial<Record<Lane, LaneScore>>): Hit {
  return { nodeId, turnId: null, atMs: 0, tellsTime: false, place: null, lanes };
}

/** What a search gives whose lanes found these scores, best first: by lane the hits and their scores. */
export function getHits(found: Partial<Record<Lane, readonly (readonly [hit: Hit, score: number])[]>>): Hit[] {
  const hits = new Map<string, Hit & { lanes: Partial<Record<Lane, LaneScore>> }>();
  for (const [lane, scored] of Object.entries(found) as [Lane, readonly (readonly [Hit, number])[]][]) {
    for (const [at, [hit, score]] of scored.entries()) {
      const key = `${hit.nodeId} ${hit.turnId ?? ''}`;
      const known = hits.get(key) ?? { ...hit, lanes: {} };
      known.lanes[lane] = { rank: at + 1, score };
      hits.set(key, known);
    }
  }
  return [...hits.values()];
}

export interface Placed {
  readonly id: string;
  readonly score: number;
}

/** What each lane found, best first: turns by their ids, nodes by theirs. */
export async function searched(
  index: SearchIndex,
  query: string,
  { filter = {}, limit = 10 }: { readonly filter?: IndexFilter; readonly limit?: number } = {},
): Promise<Readonly<Record<Lane, readonly Placed[]>>> {
  const hits = await index.search(query, filter, limit, EVERY_LANE);
  const found = EVERY_LANE.map((lane) => [lane, placedIn(hits, lane)] as const);
  return Object.fromEntries(found) as unknown as Record<Lane, readonly Placed[]>;
}

function placedIn(hits: readonly Hit[], lane: Lane): Placed[] {
  return hits
    .flatMap(({ nodeId, turnId, lanes }) => {
      const place = lanes[lane];
      return place === undefined ? [] : [{ id: turnId ?? nodeId, ...place }];
    })
    .sort((one, other) => one.rank - other.rank)
    .map(({ id, score }) => ({ id, score }));
}

export function getIds(placed: readonly Placed[]): string[] {
  return placed.map(({ id }) => id);
}
