import type { Found, Hits, LaneHits, RowReader } from '../search/node-index.ts';
import { type FusionMode, fuseByRank, turnKey } from '../search/rrf.ts';
import { asksWhen, dateAgreement, namedDate } from '../search/temporal-query.ts';
import { type FACT_LANES, type FoundTurns, type OWN_LANES, turnsIn } from './turn-candidates.ts';
import type { LaneScore } from './types.ts';

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
export type TurnLane = (typeof OWN_LANES | typeof FACT_LANES)[number];

/** Turns best first, in columns: the nth of each stands for the nth turn. */
export interface RankedTurns {
  /** Numbers of the turns and of their nodes, see `RowReader`. */
  readonly turns: readonly number[];
  readonly nodes: readonly number[];
  /** About 0 to 1. */
  readonly scores: readonly number[];
  /** Where a lane found the nth; null where it did not. */
  found(lane: TurnLane, nth: number): LaneScore | null;
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
export function rankTurns(question: string, found: Found, rules: RankingRules): RankedTurns {
  const turns = turnsIn(found);
  const { mode } = rules;
  const scores = mode === 'score' ? addUp(question, found, turns, rules) : fuse(found, turns, mode);
  const order = inOrderOf(scores, found.rows, turns);
  return {
    turns: order.map((row) => numberOf(turns, row)),
    nodes: order.map((row) => turns.rows.nodes[row] as number),
    scores: order.map((row) => scores[row] as number),
    found(lane, nth) {
      const rank = rankOf(turns, lane, order[nth] as number);
      return rank === 0 ? null : { rank, score: found.lanes[lane].scores[rank - 1] as number };
    },
  };
}

function rankOf({ rows, turns }: FoundTurns, lane: TurnLane, row: number): number {
  const isFact = lane === 'fact' || lane === 'factMeaning';
  return (isFact ? turns.ranks[lane][rows.turns[row] as number] : rows.ranks[lane][row]) as number;
}

function numberOf({ rows, turns }: FoundTurns, row: number): number {
  return turns.numbers[rows.turns[row] as number] as number;
}

function inOrderOf(scores: Float64Array, { atMs, nameOf }: RowReader, found: FoundTurns): number[] {
  const { slots, nodes } = found.rows;
  const inTime = (one: number, other: number): number =>
    atMs(slots[one] as number) - atMs(slots[other] as number) ||
    inOrder(nameOf(numberOf(found, one)), nameOf(numberOf(found, other))) ||
    inOrder(nameOf(nodes[one] as number), nameOf(nodes[other] as number));
  return Array.from(scores.keys()).sort(
    (one, other) => (scores[other] as number) - (scores[one] as number) || inTime(one, other),
  );
}

function fuse(found: Found, turns: FoundTurns, mode: Exclude<FusionMode, 'score'>): Float64Array {
  const fused = fuseByRank(found, mode);
  const scores = new Float64Array(turns.rows.count);
  for (let row = 0; row < scores.length; row += 1) {
    scores[row] = fused.get(turnKey(turns.rows.nodes[row] as number, numberOf(turns, row))) ?? 0;
  }
  return scores;
}

function addUp(question: string, found: Found, { rows, turns }: FoundTurns, rules: RankingRules): Float64Array {
  const { weights } = rules;
  const { lanes } = found;
  const own = ownWorth(lanes, { rows, turns }, rules);
  const { best, before, after } = neighbours(own, found.rows, { rows, turns });
  const windows = windowsOf(found, turns);
  const [date, when] = [namedDate(question), asksWhen(question)];
  const bestFact = top(lanes.fact);
  const full = scaleOf(weights);
  const scores = new Float64Array(rows.count);
  for (let row = 0; row < rows.count; row += 1) {
    const slot = rows.slots[row] as number;
    const turn = rows.turns[row] as number;
    const earlier = before[row] as number;
    const lent = Math.max(
      weights.before * (earlier === NONE ? 0 : (best[earlier] as number)),
      weights.after * (after[turn] as number),
    );
    let sum = (own[row] as number) + lent + weights.window * (windows[turn] as number);
    if (date !== null) sum += weights.date * dateAgreement(date, found.rows.atMs(slot));
    if (when && found.rows.isTimed(slot)) sum += weights.when;
    sum += share(weights.fact, lanes.fact, turns.ranks.fact[turn] as number, bestFact);
    const rank = turns.ranks.factMeaning[turn] as number;
    if (rank > 0) sum += weights.factMeaning * Math.max(0, lanes.factMeaning.scores[rank - 1] as number);
    scores[row] = Math.max(0, sum / full);
  }
  return scores;
}

/** What each row is worth by itself. */
function ownWorth(lanes: LaneHits, { rows }: FoundTurns, { weights, limit }: RankingRules): Float64Array {
  const { ranks } = rows;
  const raw = top(lanes.raw) || top(lanes.expanded);
  const entity = top(lanes.entity);
  const { scores: likenesses } = lanes.meaning;
  const leftOut = likenesses.length < limit / 2 ? 0 : (likenesses.at(-1) ?? 0) * LEFT_OUT_SHARE;
  const own = new Float64Array(rows.count);
  for (let row = 0; row < rows.count; row += 1) {
    const near = ranks.meaning[row] as number;
    own[row] =
      share(weights.raw, lanes.raw, ranks.raw[row] as number, raw) +
      weights.meaning * (near === 0 ? leftOut : (likenesses[near - 1] as number)) +
      share(weights.expanded, lanes.expanded, ranks.expanded[row] as number, raw) +
      share(weights.entity, lanes.entity, ranks.entity[row] as number, entity);
  }
  return own;
}

interface Neighbours {
  /** By turn: of its rows the best by itself; and the same of the turns after it. */
  readonly best: Float64Array;
  readonly after: Float64Array;
  /** By row: the place of the turn before it. */
  readonly before: Int32Array;
}

const NONE = -1;

function neighbours(own: Float64Array, { beforeOf }: RowReader, { rows, turns }: FoundTurns): Neighbours {
  const [best, after] = [new Float64Array(turns.count), new Float64Array(turns.count)];
  const before = new Int32Array(rows.count);
  for (let row = 0; row < rows.count; row += 1) {
    const turn = rows.turns[row] as number;
    best[turn] = Math.max(best[turn] as number, own[row] as number);
  }
  for (let row = 0; row < rows.count; row += 1) {
    const earlier = turns.placeOf(beforeOf(rows.slots[row] as number, 1)) ?? NONE;
    before[row] = earlier;
    if (earlier === NONE) continue;
    after[earlier] = Math.max(after[earlier] as number, best[rows.turns[row] as number] as number);
  }
  return { best, before, after };
}

/** Of each turn the mean of its own window and of the one that has the turn in its middle, as shares of the best. */
function windowsOf({ lanes, rows }: Found, turns: FoundTurns['turns']): Float64Array {
  const best = top(lanes.window);
  const [own, ahead, by] = [new Float64Array(turns.count), new Float64Array(turns.count), new Uint8Array(turns.count)];
  if (best === 0) return own;
  const { slots, scores } = lanes.window;
  for (let at = 0; at < slots.length; at += 1) {
    const slot = slots[at] as number;
    const worth = (scores[at] as number) / best;
    own[turns.placeOf(rows.turnOf(slot)) as number] = worth;
    for (let far = WINDOW_AHEAD; far > 0; far -= 1) {
      const earlier = turns.placeOf(rows.beforeOf(slot, far));
      if (earlier === undefined || far <= (by[earlier] as number)) continue;
      by[earlier] = far;
      ahead[earlier] = worth;
    }
  }
  for (let turn = 0; turn < turns.count; turn += 1) {
    const alone = own[turn] as number;
    own[turn] = (alone + (by[turn] === 0 ? alone : (ahead[turn] as number))) / 2;
  }
  return own;
}

function share(weight: number, { scores }: Hits, rank: number, best: number): number {
  return rank === 0 || best === 0 ? 0 : (weight * (scores[rank - 1] as number)) / best;
}

/** A turn that is best in every lane, lent its neighbour's worth. */
function scaleOf({ raw, meaning, expanded, entity, before, window }: TurnWeights): number {
  const own = raw + meaning + expanded + entity;
  return own * (1 + before) + window || 1;
}

function top({ scores }: Hits): number {
  return scores[0] ?? 0;
}

export function inOrder(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
