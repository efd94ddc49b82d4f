import type { LaneScore } from '../face.ts';
import type { FoundRow, Lane, LaneHit, LaneHits } from '../ports.ts';
import { type FusionMode, fuseByRank } from './rank-fusion.ts';
import { asksWhen, dateAgreement, namedDate } from './time-signs.ts';

/** What each part of a turn's score counts. */
export interface TurnWeights {
  /** Full text over what was said. */
  readonly raw: number;
  /** Likeness of the turn's vector and the question's. */
  readonly meaning: number;
  /** Full text with words that mean nearly the same. */
  readonly expanded: number;
  readonly entity: number;
  /** Share of the turn before and of the turn after that a turn is lent, whichever is more. */
  readonly before: number;
  readonly after: number;
  /** Full text over the turns around it. */
  readonly window: number;
  /** The question names the turn's date. */
  readonly date: number;
  /** The question asks when, and the turn tells a time. */
  readonly when: number;
  /** Full text over the facts that rest on the turn. */
  readonly fact: number;
  readonly factMeaning: number;
}

/** Fitted on long dialogues; see decision 0021. */
export const TURN_WEIGHTS: TurnWeights = {
  raw: 1,
  meaning: 1.5,
  expanded: 0.5,
  entity: 0,
  before: 0.4,
  after: 0.2,
  window: 2,
  date: 2.5,
  when: 1,
  fact: 0.6,
  factMeaning: 0.7,
};

export interface RankedTurn {
  readonly row: FoundRow;
  /** About 0 to 1. */
  readonly score: number;
  /** What each part adds to the score before it is brought to that scale. */
  readonly parts: Readonly<Partial<Record<keyof TurnWeights, number>>>;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
}

export interface RankingRules {
  readonly mode: FusionMode;
  readonly weights: TurnWeights;
  /** Hits asked of each lane: one with half as many or more may have left some out. */
  readonly limit: number;
}

/** A turn that the vector lane left out is at most as near as its last hit. */
const LEFT_OUT_SHARE = 0.8;
/** A window reaches back; the one that ends so many turns later has the turn in its middle. */
const WINDOW_AHEAD = 3;

/** Every turn that a lane found, best first; ties by age, oldest first. */
export function rankTurns(question: string, hits: LaneHits, { mode, weights, limit }: RankingRules): RankedTurn[] {
  const drafts = draftsOf(hits);
  const scored = mode === 'score' ? scoreParts(question, hits, drafts, { weights, limit }) : fuseByRank(hits, mode);
  return [...drafts.values()]
    .map(({ row, lanes }): RankedTurn => {
      const { score = 0, parts = {} } = scored.get(row.row_id) ?? {};
      return { row, score, parts, lanes };
    })
    .sort((one, other) => other.score - one.score || inTime(one.row, other.row));
}

interface Draft {
  readonly row: FoundRow;
  readonly lanes: Partial<Record<Lane, LaneScore>>;
}

/** The turn rows of all lanes, and the turns that found facts rest on. */
function draftsOf(hits: LaneHits): Map<string, Draft> {
  const drafts = new Map<string, Draft>();
  const byTurn = new Map<string, Draft[]>();
  for (const lane of ['raw', 'meaning', 'expanded', 'window', 'entity'] as const) {
    for (const [at, { row, score }] of hits[lane].entries()) {
      let draft = drafts.get(row.row_id);
      if (draft === undefined) {
        draft = { row, lanes: {} };
        drafts.set(row.row_id, draft);
        byTurn.set(row.turn, [...(byTurn.get(row.turn) ?? []), draft]);
      }
      draft.lanes[lane] = { rank: at + 1, score };
    }
  }
  for (const lane of ['fact', 'factMeaning'] as const) {
    for (const [at, { row, score }] of hits[lane].entries()) {
      for (const turn of row.sources) {
        const known = byTurn.get(turn) ?? [factTurn(row, turn)];
        byTurn.set(turn, known);
        for (const draft of known) {
          drafts.set(draft.row.row_id, draft);
          draft.lanes[lane] ??= { rank: at + 1, score };
        }
      }
    }
  }
  return drafts;
}

/** What is known of a turn that only a fact led to. */
function factTurn(fact: FoundRow, turn: string): Draft {
  const row = { ...fact, row_id: `${fact.node_id}:${turn}`, kind: 'turn' as const, turn, before: [], sources: [] };
  return { row, lanes: {} };
}

type Scored = Pick<RankedTurn, 'score' | 'parts'>;

function scoreParts(
  question: string,
  hits: LaneHits,
  drafts: ReadonlyMap<string, Draft>,
  { weights, limit }: Pick<RankingRules, 'weights' | 'limit'>,
): Map<string, Scored> {
  const base = baseScores(hits, drafts, { weights, limit });
  const ofTurn = bestOf(drafts, base);
  const after = new Map<string, number>();
  for (const { row } of drafts.values()) {
    const before = row.before[0];
    if (before !== undefined) after.set(before, Math.max(after.get(before) ?? 0, ofTurn.get(row.turn) ?? 0));
  }
  const windows = windowShares(hits.window);
  const [date, when] = [namedDate(question), asksWhen(question)];
  const best = { fact: top(hits.fact) };
  const full = scaleOf(weights);
  const scored = new Map<string, Scored>();
  for (const [rowId, { row, lanes }] of drafts) {
    const { parts, sum } = base.get(rowId) as Base;
    const before = weights.before * (ofTurn.get(row.before[0] ?? '') ?? 0);
    const afterwards = weights.after * (after.get(row.turn) ?? 0);
    const extra = {
      before: before >= afterwards ? before : 0,
      after: before >= afterwards ? 0 : afterwards,
      window: weights.window * (windows.get(row.turn) ?? 0),
      date: date === null ? 0 : weights.date * dateAgreement(date, row.created_at_ms),
      when: when && row.timed ? weights.when : 0,
      fact: best.fact === 0 ? 0 : (weights.fact * (lanes.fact?.score ?? 0)) / best.fact,
      factMeaning: weights.factMeaning * Math.max(0, lanes.factMeaning?.score ?? 0),
    };
    let all = sum;
    for (const part of EXTRA_PARTS) {
      if (extra[part] === 0) continue;
      all += extra[part];
      parts[part] = extra[part];
    }
    scored.set(rowId, { score: Math.max(0, all / full), parts });
  }
  return scored;
}

const OWN_PARTS = ['raw', 'meaning', 'expanded', 'entity'] as const;
const EXTRA_PARTS = ['before', 'after', 'window', 'date', 'when', 'fact', 'factMeaning'] as const;

interface Base {
  /** Without those that add nothing. */
  readonly parts: Partial<Record<keyof TurnWeights, number>>;
  readonly sum: number;
}

/** What a turn is worth by itself. */
function baseScores(
  hits: LaneHits,
  drafts: ReadonlyMap<string, Draft>,
  { weights, limit }: Pick<RankingRules, 'weights' | 'limit'>,
): Map<string, Base> {
  const raw = top(hits.raw) || top(hits.expanded);
  const entity = top(hits.entity);
  const leftOut = hits.meaning.length < limit / 2 ? 0 : (hits.meaning.at(-1)?.score ?? 0) * LEFT_OUT_SHARE;
  const scores = new Map<string, Base>();
  for (const [rowId, { lanes }] of drafts) {
    const own = {
      raw: raw === 0 ? 0 : (weights.raw * (lanes.raw?.score ?? 0)) / raw,
      meaning: weights.meaning * (lanes.meaning?.score ?? leftOut),
      expanded: raw === 0 ? 0 : (weights.expanded * (lanes.expanded?.score ?? 0)) / raw,
      entity: entity === 0 ? 0 : (weights.entity * (lanes.entity?.score ?? 0)) / entity,
    };
    const parts: Base['parts'] = {};
    for (const part of OWN_PARTS) if (own[part] !== 0) parts[part] = own[part];
    scores.set(rowId, { parts, sum: own.raw + own.meaning + own.expanded + own.entity });
  }
  return scores;
}

/** Turns that stand in several nodes have several rows; each turn counts once. */
function bestOf(drafts: ReadonlyMap<string, Draft>, scores: ReadonlyMap<string, Base>): Map<string, number> {
  const best = new Map<string, number>();
  for (const [rowId, { row }] of drafts) {
    best.set(row.turn, Math.max(best.get(row.turn) ?? 0, scores.get(rowId)?.sum ?? 0));
  }
  return best;
}

/** For each turn the mean of its own window and of the one with the turn in its middle; 1 is the best window. */
function windowShares(hits: readonly LaneHit[]): Map<string, number> {
  const best = top(hits);
  const own = new Map<string, number>();
  const ahead = new Map<string, { readonly by: number; readonly share: number }>();
  if (best === 0) return own;
  for (const { row, score } of hits) own.set(row.turn, score / best);
  for (const { row, score } of hits) {
    for (const [at, turn] of row.before.slice(0, WINDOW_AHEAD).entries()) {
      if (at + 1 > (ahead.get(turn)?.by ?? 0)) ahead.set(turn, { by: at + 1, share: score / best });
    }
  }
  const turns = new Set([...own.keys(), ...ahead.keys()]);
  return new Map(
    [...turns].map((turn) => {
      const share = own.get(turn) ?? 0;
      return [turn, (share + (ahead.get(turn)?.share ?? share)) / 2];
    }),
  );
}

/** A turn that is best in every lane, lent its neighbour's worth. */
function scaleOf({ raw, meaning, expanded, entity, before, window }: TurnWeights): number {
  const own = raw + meaning + expanded + entity;
  return own * (1 + before) + window || 1;
}

function top(hits: readonly LaneHit[]): number {
  return hits[0]?.score ?? 0;
}

function inTime(one: FoundRow, other: FoundRow): number {
  return one.created_at_ms - other.created_at_ms || inOrder(one.turn, other.turn) || inOrder(one.row_id, other.row_id);
}

export function inOrder(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
