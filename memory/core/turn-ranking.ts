import type { LaneScore } from '../face.ts';
import type { FoundRow, LaneHit, LaneHits } from '../ports.ts';
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

/** Lanes that find turns. */
export type TurnLane = 'raw' | 'meaning' | 'expanded' | 'window' | 'entity' | 'fact' | 'factMeaning';

export interface RankedTurn {
  readonly row: FoundRow;
  /** About 0 to 1. */
  readonly score: number;
  readonly lanes: Readonly<Record<TurnLane, LaneScore | null>>;
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
export function rankTurns(question: string, hits: LaneHits, rules: RankingRules): RankedTurn[] {
  const found = foundIn(hits);
  if (rules.mode === 'score') addUp(question, hits, found, rules);
  else {
    const fused = fuseByRank(hits, rules.mode);
    for (const draft of found.drafts.values()) draft.score = fused.get(draft.row.row_id) ?? 0;
  }
  return [...found.drafts.values()].sort((one, other) => other.score - one.score || inTime(one.row, other.row));
}

/** A row of a turn. All have one shape, and no object is made for a part of a score: a thousand are ranked at once. */
interface Draft extends RankedTurn {
  readonly lanes: Record<TurnLane, LaneScore | null>;
  readonly turn: Turn;
  /** The turn before it, where that was found. */
  before: Turn | null;
  /** What it is worth by itself. */
  own: number;
  score: number;
}

/** A turn that stands in several nodes has several rows, and counts once for its neighbours. */
interface Turn {
  readonly drafts: Draft[];
  /** Of its rows the best by itself; and the same of the turns after it. */
  best: number;
  after: number;
  /** Of the best window: the share of its own, null without one, and of the one furthest ahead that holds it. */
  window: number | null;
  ahead: number;
  aheadBy: number;
}

interface Found {
  readonly drafts: ReadonlyMap<string, Draft>;
  readonly turns: ReadonlyMap<string, Turn>;
}

/** The turn rows of all lanes, and the turns that found facts rest on. */
function foundIn(hits: LaneHits): Found {
  const drafts = new Map<string, Draft>();
  const turns = new Map<string, Turn>();
  const add = (row: FoundRow): Draft => {
    let turn = turns.get(row.turn);
    if (turn === undefined) {
      turn = { drafts: [], best: 0, after: 0, window: null, ahead: 0, aheadBy: 0 };
      turns.set(row.turn, turn);
    }
    // Written out: spreading takes longer than all else here.
    const lanes: Draft['lanes'] = {
      raw: null,
      meaning: null,
      expanded: null,
      window: null,
      entity: null,
      fact: null,
      factMeaning: null,
    };
    const draft: Draft = { row, lanes, turn, before: null, own: 0, score: 0 };
    turn.drafts.push(draft);
    drafts.set(row.row_id, draft);
    return draft;
  };
  for (const lane of ['raw', 'meaning', 'expanded', 'window', 'entity'] as const) {
    for (const [at, { row, score }] of hits[lane].entries()) {
      const draft = drafts.get(row.row_id) ?? add(row);
      draft.lanes[lane] = { rank: at + 1, score };
    }
  }
  for (const lane of ['fact', 'factMeaning'] as const) {
    for (const [at, { row, score }] of hits[lane].entries()) {
      for (const end of row.sources) {
        for (const draft of turns.get(end)?.drafts ?? [add(factTurn(row, end))]) {
          draft.lanes[lane] ??= { rank: at + 1, score };
        }
      }
    }
  }
  return { drafts, turns };
}

/** What is known of a turn that only a fact led to. */
function factTurn(fact: FoundRow, turn: string): FoundRow {
  return { ...fact, row_id: `${fact.node_id}:${turn}`, kind: 'turn', turn, before: [], sources: [] };
}

function addUp(question: string, hits: LaneHits, found: Found, { weights, limit }: RankingRules): void {
  weighOwn(hits, found, { weights, limit });
  weighWindows(hits.window, found);
  const [date, when] = [namedDate(question), asksWhen(question)];
  const bestFact = top(hits.fact);
  const full = scaleOf(weights);
  for (const draft of found.drafts.values()) {
    const { row, lanes, turn } = draft;
    const before = weights.before * (draft.before?.best ?? 0);
    const after = weights.after * turn.after;
    const own = turn.window ?? 0;
    const window = (own + (turn.aheadBy === 0 ? own : turn.ahead)) / 2;
    let sum = draft.own + Math.max(before, after) + weights.window * window;
    if (date !== null) sum += weights.date * dateAgreement(date, row.created_at_ms);
    if (when && row.timed) sum += weights.when;
    sum += share(weights.fact, lanes.fact, bestFact);
    sum += weights.factMeaning * Math.max(0, lanes.factMeaning?.score ?? 0);
    draft.score = Math.max(0, sum / full);
  }
}

/** What each turn is worth by itself, and lends to the one before it. */
function weighOwn(hits: LaneHits, { drafts, turns }: Found, { weights, limit }: Omit<RankingRules, 'mode'>): void {
  const raw = top(hits.raw) || top(hits.expanded);
  const entity = top(hits.entity);
  const leftOut = hits.meaning.length < limit / 2 ? 0 : (hits.meaning.at(-1)?.score ?? 0) * LEFT_OUT_SHARE;
  for (const draft of drafts.values()) {
    const { lanes, turn } = draft;
    draft.own =
      share(weights.raw, lanes.raw, raw) +
      weights.meaning * (lanes.meaning?.score ?? leftOut) +
      share(weights.expanded, lanes.expanded, raw) +
      share(weights.entity, lanes.entity, entity);
    turn.best = Math.max(turn.best, draft.own);
  }
  for (const draft of drafts.values()) {
    const [end] = draft.row.before;
    const before = end === undefined ? undefined : turns.get(end);
    if (before === undefined) continue;
    draft.before = before;
    before.after = Math.max(before.after, draft.turn.best);
  }
}

/** Each turn counts with its own window and with the one that has the turn in its middle. */
function weighWindows(hits: readonly LaneHit[], { turns }: Found): void {
  const best = top(hits);
  if (best === 0) return;
  for (const { row, score } of hits) {
    const own = turns.get(row.turn);
    if (own !== undefined) own.window = score / best;
    for (let by = Math.min(WINDOW_AHEAD, row.before.length); by > 0; by -= 1) {
      const earlier = turns.get(row.before[by - 1] as string);
      if (earlier === undefined || by <= earlier.aheadBy) continue;
      earlier.aheadBy = by;
      earlier.ahead = score / best;
    }
  }
}

function share(weight: number, found: LaneScore | null, best: number): number {
  return found === null || best === 0 ? 0 : (weight * found.score) / best;
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
