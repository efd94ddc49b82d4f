import type { Table as ArrowTable } from 'apache-arrow';
import { FACT_LANES, type Hit, type Lane, type LaneScore } from '../search-index.ts';
import { type Kind, splitIds } from './schema.ts';

type OpenHit = Hit & { readonly lanes: Partial<Record<Lane, LaneScore>> };

/** A row that a lane found. Hits of a fact are those of its turns, and are known when all lanes have answered. */
interface Found {
  readonly hit: OpenHit;
  /** Turns that a fact rests on; null for other rows. */
  readonly sources: readonly string[] | null;
}

interface Scored {
  readonly found: Found;
  readonly score: number;
}

/** Joins what lanes found in several tables: a row that several lanes found is read once and becomes one hit. */
export interface HitList {
  /** @param rows  as `RowTable` gives them */
  add(lane: Lane, kind: Kind, table: string, rows: ArrowTable): void;
  ranked(limit: number): Hit[];
}

export function createHitList(): HitList {
  const rowsOfTable = new Map<string, Map<number, Found>>();
  const lanes = new Map<Lane, Scored[]>();

  return {
    add(lane, kind, table, rows) {
      const known = rowsOfTable.get(table) ?? new Map<number, Found>();
      rowsOfTable.set(table, known);
      const readRow = rowReader(kind, rows);
      const idOf = rowIdReader(rows);
      const [scores, distances] = [rows.getChild('_score'), rows.getChild('_distance')];
      const scored = lanes.get(lane) ?? [];
      lanes.set(lane, scored);
      for (let at = 0; at < rows.numRows; at += 1) {
        const score = scores === null ? 1 - ((distances?.get(at) as number | null) ?? 1) : (scores.get(at) as number);
        if (score <= 0) continue;
        const id = idOf(at);
        let found = known.get(id);
        if (found === undefined) {
          found = readRow(at);
          known.set(id, found);
        }
        scored.push({ found, score });
      }
    },
    ranked(limit) {
      const best = new Map([...lanes].map(([lane, scored]) => [lane, bestOf(scored, limit)]));
      const hits: OpenHit[] = [];
      for (const [lane, scored] of best) if (!isOfFacts(lane)) addRanks(hits, lane, scored);
      const facts = [...best].filter(([lane]) => isOfFacts(lane));
      if (facts.length > 0) addFacts(hits, facts);
      return hits;
    },
  };
}

function isOfFacts(lane: Lane): boolean {
  return (FACT_LANES as readonly Lane[]).includes(lane);
}

function bestOf(scored: Scored[], limit: number): Scored[] {
  return scored.sort((one, other) => other.score - one.score).slice(0, limit);
}

function addRanks(hits: OpenHit[], lane: Lane, scored: readonly Scored[]): void {
  for (let at = 0; at < scored.length; at += 1) {
    const { found, score } = scored[at] as Scored;
    if (isUnseen(found.hit)) hits.push(found.hit);
    found.hit.lanes[lane] = { rank: at + 1, score };
  }
}

function isUnseen({ lanes }: Hit): boolean {
  for (const _ in lanes) return false;
  return true;
}

/** A fact speaks for its turns wherever other lanes found them. */
function addFacts(hits: OpenHit[], lanes: readonly (readonly [Lane, readonly Scored[]])[]): void {
  const byTurn = new Map<string, OpenHit[]>();
  for (const hit of hits) if (hit.turnId !== null) byTurn.set(hit.turnId, [...(byTurn.get(hit.turnId) ?? []), hit]);
  for (const [lane, scored] of lanes) {
    for (const [at, { found, score }] of scored.entries()) {
      for (const turnId of found.sources ?? []) {
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

/** 64-bit numbers that a float holds, without making a bigint of each. */
function rowIdReader(rows: ArrowTable): (at: number) => number {
  const column = rows.getChild('_rowid');
  const [data] = column?.data ?? [];
  if (column?.data.length !== 1 || data === undefined) return (at) => Number(column?.get(at));
  const { buffer, byteOffset, length } = data.values as BigUint64Array;
  const halves = new Uint32Array(buffer, byteOffset, length * 2);
  return (at) => (halves[at * 2 + 1] as number) * 2 ** 32 + (halves[at * 2] as number);
}

function rowReader(kind: Kind, rows: ArrowTable): (at: number) => Found {
  const column = (name: string) => rows.getChild(name);
  const [nodeIds, times] = [column('node_id'), column('created_at_ms')];
  const [turnIds, places, timed, sources] = [column('turn_id'), column('place'), column('timed'), column('sources')];
  return (at) => {
    const place = (places?.get(at) as number | undefined) ?? -1;
    const hit: OpenHit = {
      nodeId: nodeIds?.get(at) as string,
      turnId: kind === 'turn' ? (turnIds?.get(at) as string) : null,
      atMs: times?.get(at) as number,
      tellsTime: (timed?.get(at) as boolean | undefined) ?? false,
      place: place < 0 ? null : place,
      lanes: {},
    };
    return { hit, sources: kind === 'fact' ? splitIds(sources?.get(at) as string) : null };
  };
}
