import type { Table as ArrowTable } from 'apache-arrow';
import { FACT_LANES, type Hit, type Lane, type LaneScore } from '../search-index.ts';
import { type Kind, splitIds } from './schema.ts';
import { type LaneRows, type RowTable, rowIdsOf } from './table.ts';

type OpenHit = Hit & { readonly lanes: Partial<Record<Lane, LaneScore>> };

/** A row that a lane found. A fact makes hits of its turns. */
interface Found {
  readonly hit: OpenHit;
  readonly sources: readonly string[];
}

interface Scored {
  readonly found: Found;
  readonly score: number;
}

export interface LaneResult {
  readonly lane: Lane;
  readonly kind: Kind;
  readonly table: RowTable;
  readonly rows: LaneRows;
}

/** One hit for each turn and node that lanes found. Rows that several lanes found are read once. */
export async function joinHits(results: readonly LaneResult[], limit: number): Promise<Hit[]> {
  const found = await readRows(results);
  const lanes = new Map<Lane, Scored[]>();
  for (const { lane, table, rows } of results) {
    const scored = lanes.get(lane) ?? [];
    lanes.set(lane, scored);
    for (const [at, rowId] of rows.rowIds.entries()) {
      const row = found.get(table)?.get(rowId);
      const score = rows.scores[at] as number;
      if (row !== undefined && score > 0) scored.push({ found: row, score });
    }
  }
  const best = [...lanes].map(([lane, scored]) => [lane, bestOf(scored, limit)] as const);
  const hits: OpenHit[] = [];
  for (const [lane, scored] of best) if (!isOfFacts(lane)) addRanks(hits, lane, scored);
  const facts = best.filter(([lane]) => isOfFacts(lane));
  if (facts.length > 0) addFacts(hits, facts);
  return hits;
}

async function readRows(results: readonly LaneResult[]): Promise<Map<RowTable, Map<number, Found>>> {
  const wanted = new Map<RowTable, { readonly kind: Kind; readonly rowIds: Set<number> }>();
  for (const { table, kind, rows } of results) {
    const { rowIds } = wanted.get(table) ?? { rowIds: new Set<number>() };
    for (const rowId of rows.rowIds) rowIds.add(rowId);
    wanted.set(table, { kind, rowIds });
  }
  const read = [...wanted].map(async ([table, { kind, rowIds }]) => {
    // In their order, so that what lies together is read together.
    const taken = rowIds.size === 0 ? null : await table.take([...rowIds].sort((one, other) => one - other));
    return [table, taken === null ? new Map<number, Found>() : foundIn(kind, taken)] as const;
  });
  return new Map(await Promise.all(read));
}

function foundIn(kind: Kind, rows: ArrowTable): Map<number, Found> {
  const column = (name: string) => rows.getChild(name);
  const [nodeIds, times] = [column('node_id'), column('created_at_ms')];
  const [turnIds, places, timed, sources] = [column('turn_id'), column('place'), column('timed'), column('sources')];
  return new Map(
    rowIdsOf(rows).map((rowId, at) => {
      const place = (places?.get(at) as number | undefined) ?? -1;
      const hit: OpenHit = {
        nodeId: nodeIds?.get(at) as string,
        turnId: kind === 'turn' ? (turnIds?.get(at) as string) : null,
        atMs: times?.get(at) as number,
        tellsTime: (timed?.get(at) as boolean | undefined) ?? false,
        place: place < 0 ? null : place,
        lanes: {},
      };
      return [rowId, { hit, sources: kind === 'fact' ? splitIds(sources?.get(at) as string) : [] }];
    }),
  );
}

function isOfFacts(lane: Lane): boolean {
  return (FACT_LANES as readonly Lane[]).includes(lane);
}

function bestOf(scored: Scored[], limit: number): Scored[] {
  return scored.sort((one, other) => other.score - one.score).slice(0, limit);
}

function addRanks(hits: OpenHit[], lane: Lane, scored: readonly Scored[]): void {
  for (const [at, { found, score }] of scored.entries()) {
    if (Object.keys(found.hit.lanes).length === 0) hits.push(found.hit);
    found.hit.lanes[lane] = { rank: at + 1, score };
  }
}

/** A fact speaks for its turns wherever other lanes found them. */
function addFacts(hits: OpenHit[], lanes: readonly (readonly [Lane, readonly Scored[]])[]): void {
  const byTurn = new Map<string, OpenHit[]>();
  for (const hit of hits) if (hit.turnId !== null) byTurn.set(hit.turnId, [...(byTurn.get(hit.turnId) ?? []), hit]);
  for (const [lane, scored] of lanes) {
    for (const [at, { found, score }] of scored.entries()) {
      for (const turnId of found.sources) {
        let known = byTurn.get(turnId);
        if (known === undefined) {
          known = [{ ...found.hit, turnId, lanes: {} }];
          byTurn.set(turnId, known);
          hits.push(...known);
        }
        for (const hit of known) hit.lanes[lane] ??= { rank: at + 1, score };
      }
    }
  }
}
