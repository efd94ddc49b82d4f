import type { Found, FoundRow, Hits, Lane, NodeIndex, SearchOptions } from '../../memory/search/node-index.ts';
import { createRowBook } from '../../memory/search/row-table.ts';

export function foundTurn(turn: string, over: Partial<FoundRow> = {}): FoundRow {
  return {
    row_id: `n:${turn}`,
    kind: 'turn',
    node_id: 'n',
    session_id: 's',
    project: 'p',
    turn,
    origin: 'user',
    created_at_ms: 0,
    before: [],
    sources: [],
    timed: false,
    ...over,
  };
}

export interface Hit {
  readonly row: FoundRow;
  readonly score: number;
}

type Spelled = Readonly<Record<Lane, readonly Hit[]>>;

export const NOTHING: Spelled = {
  ...{ fts: [], summary: [], trigger: [], raw: [], meaning: [], expanded: [], window: [], entity: [] },
  ...{ fact: [], factMeaning: [] },
};

export function hit(row: FoundRow, score: number): Hit {
  return { row, score };
}

/** What a search gives that finds these rows, and no others, in these lanes. */
export function lanes(over: Partial<Spelled>): Found {
  const rows = createRowBook();
  const slotOf = (row: FoundRow): number => rows.slotOf(row.row_id) ?? rows.put({ ...row, digest: '' });
  const hitsOf = (hits: readonly Hit[]): Hits => ({
    slots: hits.map(({ row }) => slotOf(row)),
    scores: hits.map(({ score }) => score),
  });
  return { lanes: mapped({ ...NOTHING, ...over }, hitsOf), rows };
}

/** What each lane found, with the rows themselves. */
export async function searched(index: NodeIndex, query: string, options: SearchOptions): Promise<Spelled> {
  const { lanes, rows } = await index.search(query, options);
  return mapped(lanes, ({ slots, scores }) =>
    slots.map((slot, at) => ({ row: rows.at(slot) as FoundRow, score: scores[at] as number })),
  );
}

function mapped<From, To>(lanes: Readonly<Record<Lane, From>>, change: (lane: From) => To): Record<Lane, To> {
  const changed = Object.entries(lanes).map(([lane, hits]) => [lane, change(hits)]);
  return Object.fromEntries(changed) as Record<Lane, To>;
}
