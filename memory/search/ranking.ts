import type { Config } from '../../common/config.ts';
import { compareText } from '../../common/text.ts';
import { dateAgreement, MONTH, type NamedDate } from './dates.ts';
import { FACT_LANES, type Hit, type Lane, TURN_LANES } from './search-index.ts';

export type TurnWeights = Config['recall']['weights'];

export interface TurnHit extends Hit {
  readonly turnId: string;
}

export interface RankedTurn {
  readonly hit: TurnHit;
  /** About 0 to 1. */
  readonly score: number;
}

export interface RankingRules {
  /** `score` adds scores divided by their lane's best, `rrf` reciprocal ranks; `comet` is CoMeT's form. */
  readonly mode: Config['recall']['fusion'];
  readonly weights: TurnWeights;
  readonly rrfK: number;
  readonly comet: CometRules;
  /** Hits asked of each lane: one with half as many or more may have left some out. */
  readonly limit: number;
}

type BestScores = Readonly<Partial<Record<Lane, number>>>;

/** A turn that the vector lane left out is at most as near as its last hit. */
const LEFT_OUT_SHARE = 0.8;
/** A window reaches back; the one that ends three turns later has the turn in its middle. */
const WINDOW_AHEAD = 3;

export function lanesOfTurns({ mode, weights }: Pick<RankingRules, 'mode' | 'weights'>): Lane[] {
  if (mode === 'comet') return ['raw', 'meaning', 'summary', 'trigger'];
  if (mode === 'rrf') return ['raw', 'window', 'meaning', 'fact'];
  return [...TURN_LANES, ...FACT_LANES, 'trigger' as const].filter((lane) => weights[lane] !== 0);
}

export interface Question {
  readonly text: string;
  readonly date: NamedDate | null;
}

/** Every turn that a lane found, best first; ties by age, oldest first. */
export function rankTurns(question: Question, hits: readonly Hit[], rules: RankingRules): RankedTurn[] {
  const turns = hits.filter((hit): hit is TurnHit => hit.turnId !== null);
  const scores = getScores(question, hits, turns, rules);
  return turns
    .map((hit, at) => ({ hit, score: scores[at] as number }))
    .sort((one, other) => other.score - one.score || byAge(one.hit, other.hit));
}

function getScores(asked: Question, hits: readonly Hit[], turns: readonly TurnHit[], rules: RankingRules): number[] {
  if (rules.mode === 'score') return addScores(asked, turns, getTriggers(hits), rules);
  if (rules.mode === 'rrf') return fuseByRank(turns, lanesOfTurns(rules), rules.rrfK);
  return fuseAsComet(hits, turns, rules.comet);
}

function byAge(one: TurnHit, other: TurnHit): number {
  return one.atMs - other.atMs || compareText(one.turnId, other.turnId) || compareText(one.nodeId, other.nodeId);
}

function addScores(
  { text, date }: Question,
  turns: readonly TurnHit[],
  triggers: ReadonlyMap<string, number>,
  rules: RankingRules,
): number[] {
  const { weights } = rules;
  const best = bestScores(turns);
  const own = ownScores(turns, best, rules);
  const lent = lentScores(turns, own, weights);
  const windows = windowScores(turns, best.window);
  const when = asksWhen(text);
  // A turn that is best in every lane, and lent as much by its neighbor.
  const full = (weights.raw + weights.meaning + weights.entity) * (1 + weights.before) + weights.window || 1;
  return turns.map(({ nodeId, atMs, tellsTime, lanes }, at) => {
    let sum = (own[at] as number) + (lent[at] as number) + weights.window * (windows[at] as number);
    if (date !== null) sum += weights.date * dateAgreement(date, atMs);
    if (when && tellsTime) sum += weights.when;
    sum += weights.fact * share(lanes.fact?.score, best.fact);
    sum += weights.factMeaning * Math.max(0, lanes.factMeaning?.score ?? 0);
    sum += weights.trigger * (triggers.get(nodeId) ?? 0);
    return Math.max(0, sum / full);
  });
}

/** What the trigger of each node is worth, as a share of the best. */
function getTriggers(hits: readonly Hit[]): ReadonlyMap<string, number> {
  const scores = hits.flatMap(({ nodeId, lanes }) =>
    lanes.trigger === undefined ? [] : [[nodeId, lanes.trigger.score] as const],
  );
  const best = Math.max(...scores.map(([, score]) => score));
  return new Map(scores.map(([nodeId, score]) => [nodeId, score / best]));
}

function bestScores(turns: readonly TurnHit[]): BestScores {
  const best: Partial<Record<Lane, number>> = {};
  for (const { lanes } of turns) {
    for (const lane of Object.keys(lanes) as Lane[]) best[lane] = Math.max(best[lane] ?? 0, lanes[lane]?.score ?? 0);
  }
  return best;
}

function ownScores(turns: readonly TurnHit[], best: BestScores, { weights, limit }: RankingRules): number[] {
  const likenesses = turns.flatMap(({ lanes }) => lanes.meaning?.score ?? []);
  const leftOut = likenesses.length < limit / 2 ? 0 : Math.min(...likenesses) * LEFT_OUT_SHARE;
  return turns.map(
    ({ lanes }) =>
      weights.raw * share(lanes.raw?.score, best.raw) +
      weights.meaning * (lanes.meaning?.score ?? leftOut) +
      weights.entity * share(lanes.entity?.score, best.entity),
  );
}

function lentScores(turns: readonly TurnHit[], own: readonly number[], weights: TurnWeights): number[] {
  const best = new Map<number, number>();
  for (const [at, { place }] of turns.entries()) {
    if (place !== null) best.set(place, Math.max(best.get(place) ?? 0, own[at] as number));
  }
  return turns.map(({ place }) => {
    if (place === null) return 0;
    return Math.max(weights.before * (best.get(place - 1) ?? 0), weights.after * (best.get(place + 1) ?? 0));
  });
}

/** Of each turn the mean of its own window and of the one that has the turn in its middle, as shares of the best. */
function windowScores(turns: readonly TurnHit[], best: number | undefined): number[] {
  const windows = new Map<number, number>();
  for (const { place, lanes } of turns) {
    if (place !== null && lanes.window !== undefined) windows.set(place, share(lanes.window.score, best));
  }
  return turns.map(({ place }) => {
    if (place === null) return 0;
    const own = windows.get(place) ?? 0;
    let ahead = own;
    for (let by = 1; by <= WINDOW_AHEAD; by += 1) ahead = windows.get(place + by) ?? ahead;
    return (own + ahead) / 2;
  });
}

function share(score: number | undefined, best: number | undefined): number {
  return score === undefined || !best ? 0 : score / best;
}

/** CoMeT's parameters: `rrf_k`, `fusion_alpha` (summary against trigger), `raw_search_weight`. */
export type CometRules = Config['recall']['comet'];

const COMET_RANKS = 0.6;
const COMET_SIMILARITY = 0.4;

/**
 * Reciprocal-rank fusion; 1 is first in every lane that found anything.
 *
 * Source: Cormack, Clarke, Büttcher, SIGIR 2009.
 */
export function fuseByRank(turns: readonly Hit[], lanes: readonly Lane[], k: number): number[] {
  const answering = lanes.filter((lane) => turns.some((turn) => turn.lanes[lane] !== undefined));
  const most = answering.length / (k + 1) || 1;
  return turns.map((turn) => lanes.reduce((sum, lane) => sum + reciprocalRank(turn, lane, k), 0) / most);
}

/** Ranks of what a node says (summary), of when it applies (trigger) and of the turn itself; and the greatest cosine. */
export function fuseAsComet(hits: readonly Hit[], turns: readonly Hit[], { rrfK, alpha, rawWeight }: CometRules) {
  const nodes = new Map(hits.filter(({ turnId }) => turnId === null).map((hit) => [hit.nodeId, hit]));
  const most = (1 + rawWeight) / (rrfK + 1);
  return turns.map((turn) => {
    const node = nodes.get(turn.nodeId);
    const ranks =
      alpha * reciprocalRank(node, 'summary', rrfK) +
      (1 - alpha) * reciprocalRank(node, 'trigger', rrfK) +
      rawWeight * reciprocalRank(turn, 'raw', rrfK);
    const similarity = Math.max(0, turn.lanes.meaning?.score ?? 0, node?.lanes.summary?.score ?? 0);
    return (COMET_RANKS * ranks) / most + COMET_SIMILARITY * similarity;
  });
}

function reciprocalRank(hit: Hit | undefined, lane: Lane, k: number): number {
  const rank = hit?.lanes[lane]?.rank;
  return rank === undefined ? 0 : 1 / (k + rank);
}

const ASKS_WHEN =
  /^(?:when|how long|what (?:date|day|month|year|time)|which (?:month|year|day))\b|\bhow long ago\b|\bwhen (?:did|was|is|were|will|has)\b/i;
const TELLS_TIME = new RegExp(
  '\\b(?:yesterday|today|tonight|tomorrow|ago|last|next|this (?:week|month|year|weekend|morning|season)|recently|since|' +
    `weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day|${MONTH}|\\d+ (?:days?|weeks?|months?|years?))\\b`,
  'i',
);

export const asksWhen = (question: string): boolean => ASKS_WHEN.test(question.trim());

/** Whether a text tells a time: a date, or one that is reckoned from when it was said. */
export const tellsTime = (text: string): boolean => TELLS_TIME.test(text);
