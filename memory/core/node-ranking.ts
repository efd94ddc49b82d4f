import type { Origin } from '../../common/turn.ts';
import type { LaneScore } from '../face.ts';
import type { FoundRow, Lane, LaneHit, LaneHits } from '../ports.ts';
import { inOrder, type RankedTurn } from './turn-ranking.ts';

/** What a node's best turn and its own lanes count. */
export interface NodeWeights {
  readonly turn: number;
  readonly fts: number;
  readonly summary: number;
  readonly trigger: number;
}

export const NODE_WEIGHTS: NodeWeights = { turn: 1, fts: 0.5, summary: 0.25, trigger: 0 };

/** Links carry a share of a node's score over two hops. */
const HOP_SHARES = [0.5, 0.25];
/** So many of the best nodes pass their score on. */
const LINKING = 20;

/** Shares by which a signal at its best raises a score. */
export interface Boosts {
  readonly recency: number;
  /** It was recalled before. */
  readonly proof: number;
  /** By origin: the user's own words most. */
  readonly trust: number;
  /** Of the project that asks. */
  readonly project: number;
  /** Other candidates link to it. */
  readonly references: number;
}

/** What is known of a node beside its words. */
export interface NodeFacts {
  readonly links: readonly string[];
  readonly origin: Origin;
  readonly project: string;
  readonly atMs: number;
  readonly recalled: number;
}

export interface RankedNode {
  readonly nodeId: string;
  /** About 0 to 1 before boosts. */
  readonly score: number;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
  /** Greatest likeness of its rows. */
  readonly similarity: number;
  /** Its turns that were found, best first. */
  readonly turns: readonly FoundRow[];
  /** The node whose link led here, where that gave it its score. */
  readonly linkedFrom: string | null;
}

export interface NodeRules {
  readonly weights: NodeWeights;
  readonly boosts: Boosts;
  /** The project that asks, '' for none. */
  readonly project: string;
  readonly nowMs: number;
  /** Null for a node that is gone. */
  readonly factsOf: (nodeId: string) => NodeFacts | null;
}

/** The nodes that turns and node lanes lead to, and those they link to, best first; ties by age, oldest first. */
export function rankNodes(turns: readonly RankedTurn[], hits: LaneHits, rules: NodeRules): RankedNode[] {
  const drafts = new Map<string, Draft>();
  addTurns(drafts, turns, rules.weights);
  for (const lane of ['fts', 'summary', 'trigger'] as const) addLane(drafts, lane, hits[lane], rules.weights[lane]);
  const known = [...drafts].flatMap(([nodeId, draft]): [string, Draft][] =>
    rules.factsOf(nodeId) === null ? [] : [[nodeId, draft]],
  );
  const linked = withLinked(new Map(known), rules);
  const atMs = (nodeId: string): number => rules.factsOf(nodeId)?.atMs ?? 0;
  return [...linked]
    .map(([nodeId, draft]) => boosted(nodeId, draft, rules))
    .sort(
      (one, other) =>
        other.score - one.score ||
        atMs(one.nodeId) - atMs(other.nodeId) ||
        inOrder(firstTurn(one), firstTurn(other)) ||
        inOrder(one.nodeId, other.nodeId),
    );
}

/** Ids of nodes are random, names of turns are not: with the same turns every index gives the same order. */
function firstTurn({ turns }: RankedNode): string {
  return turns.reduce((first, { turn }) => (first === '' || turn < first ? turn : first), '');
}

interface Draft {
  readonly lanes: Partial<Record<Lane, LaneScore>>;
  readonly turns: FoundRow[];
  score: number;
  similarity: number;
  references: number;
  linkedFrom: string | null;
}

function draftIn(drafts: Map<string, Draft>, nodeId: string): Draft {
  const known = drafts.get(nodeId);
  if (known !== undefined) return known;
  const fresh = { lanes: {}, turns: [], score: 0, similarity: 0, references: 0, linkedFrom: null };
  drafts.set(nodeId, fresh);
  return fresh;
}

function addTurns(drafts: Map<string, Draft>, turns: readonly RankedTurn[], weights: NodeWeights): void {
  const best = turns[0]?.score ?? 0;

  for (const { row, score, lanes } of turns) {
    const draft = draftIn(drafts, row.node_id);
    if (draft.turns.length === 0 && best > 0) draft.score += (weights.turn * score) / best;
    draft.turns.push(row);
    draft.similarity = Math.max(draft.similarity, lanes.meaning?.score ?? 0, lanes.factMeaning?.score ?? 0);
    for (const [lane, found] of Object.entries(lanes) as [Lane, LaneScore][]) {
      if (found.rank < (draft.lanes[lane]?.rank ?? Number.POSITIVE_INFINITY)) draft.lanes[lane] = found;
    }
  }
}

function addLane(
  drafts: Map<string, Draft>,
  lane: 'fts' | 'summary' | 'trigger',
  hits: readonly LaneHit[],
  weight: number,
): void {
  const best = hits[0]?.score ?? 0;
  if (best <= 0) return;
  for (const [at, { row, score }] of hits.entries()) {
    const draft = draftIn(drafts, row.node_id);
    if (draft.lanes[lane] !== undefined) continue;
    draft.lanes[lane] = { rank: at + 1, score };
    draft.score += (weight * score) / best;
    if (lane !== 'fts') draft.similarity = Math.max(draft.similarity, score);
  }
}

/** Adds what is linked to, and counts how many candidates link to each. */
function withLinked(drafts: Map<string, Draft>, { factsOf }: NodeRules): Map<string, Draft> {
  const best = [...drafts].sort(([, one], [, other]) => other.score - one.score).slice(0, LINKING);
  for (const [from, { score }] of best) {
    let reached = [from];
    const seen = new Set(reached);
    for (const [hop, share] of HOP_SHARES.entries()) {
      reached = [...new Set(reached.flatMap((id) => factsOf(id)?.links ?? []))].filter((id) => !seen.has(id));
      for (const id of reached) {
        seen.add(id);
        if (factsOf(id) === null) continue;
        const draft = draftIn(drafts, id);
        if (hop === 0) draft.references += 1;
        if (score * share <= draft.score) continue;
        draft.score = score * share;
        draft.linkedFrom = from;
      }
    }
  }
  return drafts;
}

const ORIGIN_TRUST: Readonly<Record<Origin, number>> = { user: 1, assistant: 0.7, tool: 0.3, external: 0 };
const HALF_LIFE_MS = 30 * 86_400_000;
const PROVEN_RECALLS = 5;
const REFERRED_OFTEN = 2;

function boosted(nodeId: string, draft: Draft, { boosts, project, nowMs, factsOf }: NodeRules): RankedNode {
  const { origin, atMs, recalled, ...node } = factsOf(nodeId) as NodeFacts;
  const raise =
    (1 + boosts.recency * 2 ** (-Math.max(0, nowMs - atMs) / HALF_LIFE_MS)) *
    (1 + boosts.proof * (recalled / (recalled + PROVEN_RECALLS))) *
    (1 + boosts.trust * ORIGIN_TRUST[origin]) *
    (1 + (node.project === project && project !== '' ? boosts.project : 0)) *
    (1 + boosts.references * (draft.references / (draft.references + REFERRED_OFTEN)));
  const { lanes, similarity, turns, linkedFrom } = draft;
  const score = draft.score * raise;
  return { nodeId, score, lanes, similarity, turns, linkedFrom };
}
