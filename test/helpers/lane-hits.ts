import type { FoundRow, LaneHit, LaneHits } from '../../memory/ports.ts';

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

export function hit(row: FoundRow, score: number): LaneHit {
  return { row, score };
}

export function lanes(over: Partial<LaneHits>): LaneHits {
  const none = { fts: [], summary: [], trigger: [], raw: [], meaning: [], expanded: [], window: [], entity: [] };
  return { ...none, fact: [], factMeaning: [], ...over };
}
