import type { Table as ArrowTable } from 'apache-arrow';
import type { Hit, Lane, LaneScore } from '../search-index.ts';
import { type Kind, splitIds } from './schema.ts';

interface Found extends Omit<Hit, 'lanes'> {
  /** Turns that a fact rests on. */
  readonly sources: readonly string[];
}

interface Scored {
  readonly row: Found;
  readonly score: number;
}

/** Joins what lanes found in several tables: a row that several lanes found is read once and becomes one hit. */
export interface HitList {
  /** @param rows  as `RowTable` gives them */
  add(lane: Lane, kind: Kind, table: string, rows: ArrowTable): void;
  ranked(limit: number): Hit[];
}

export function createHitList(): HitList {
  const rowsByTable = new Map<string, Map<bigint, Found>>();
  const found = new Map<Lane, Scored[]>();

  return {
    add(lane, kind, table, rows) {
      const known = rowsByTable.get(table) ?? new Map<bigint, Found>();
      rowsByTable.set(table, known);
      const readRow = rowReader(kind, rows);
      const ids = rows.getChild('_rowid');
      const [scores, distances] = [rows.getChild('_score'), rows.getChild('_distance')];
      const scored = found.get(lane) ?? [];
      found.set(lane, scored);
      for (let at = 0; at < rows.numRows; at += 1) {
        const score = scores === null ? 1 - ((distances?.get(at) as number | null) ?? 1) : (scores.get(at) as number);
        if (score <= 0) continue;
        const id = ids?.get(at) as bigint;
        const row = known.get(id) ?? readRow(at);
        known.set(id, row);
        scored.push({ row, score });
      }
    },
    ranked(limit) {
      const hits = new Map<string, Hit & { lanes: Partial<Record<Lane, LaneScore>> }>();
      const hitsOfTurn = new Map<string, (Hit & { lanes: Partial<Record<Lane, LaneScore>> })[]>();

      function hitOf(row: Found, turnId: string | null): Hit & { lanes: Partial<Record<Lane, LaneScore>> } {
        const key = `${row.nodeId} ${turnId ?? ''}`;
        const known = hits.get(key);
        if (known !== undefined) return known;
        const { nodeId, atMs, tellsTime, before } = row;
        const hit = { nodeId, turnId, atMs, tellsTime, before, lanes: {} };
        hits.set(key, hit);
        if (turnId !== null) hitsOfTurn.set(turnId, [...(hitsOfTurn.get(turnId) ?? []), hit]);
        return hit;
      }

      const facts: Lane[] = ['fact', 'factMeaning'];
      const lanes = [...found.keys()].sort((one, other) => facts.indexOf(one) - facts.indexOf(other));
      for (const lane of lanes) {
        const best = (found.get(lane) as Scored[]).sort((one, other) => other.score - one.score).slice(0, limit);
        for (const [at, { row, score }] of best.entries()) {
          const place = { rank: at + 1, score };
          if (!facts.includes(lane)) {
            hitOf(row, row.turnId).lanes[lane] = place;
            continue;
          }
          // A fact speaks for its turns wherever these were found.
          for (const turnId of row.sources) {
            for (const hit of hitsOfTurn.get(turnId) ?? [hitOf(row, turnId)]) hit.lanes[lane] ??= place;
          }
        }
      }
      return [...hits.values()];
    },
  };
}

function rowReader(kind: Kind, rows: ArrowTable): (at: number) => Found {
  const column = (name: string) => rows.getChild(name);
  const [nodeIds, times] = [column('node_id'), column('created_at_ms')];
  const [turnIds, befores, timed, sources] = [column('turn_id'), column('before'), column('timed'), column('sources')];
  return (at) => ({
    nodeId: nodeIds?.get(at) as string,
    turnId: kind === 'turn' ? (turnIds?.get(at) as string) : null,
    atMs: times?.get(at) as number,
    tellsTime: (timed?.get(at) as boolean | undefined) ?? false,
    before: splitIds((befores?.get(at) as string | undefined) ?? ''),
    sources: splitIds((sources?.get(at) as string | undefined) ?? ''),
  });
}
