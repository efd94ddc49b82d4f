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
  /** Whether a node of this score may be given. */
  readonly keeps: (nodeId: string, score: number) => boolean;
  readonly limit: number;
}

/** The nodes that turns and node lanes lead to, and those they link to, best first; ties by age, oldest first. */
export function rankNodes(turns: readonly RankedTurn[], hits: LaneHits, rules: NodeRules): RankedNode[] {
  const drafts = new Map<string, Draft | null>();
  addTurns(drafts, turns, rules);
  for (const lane of NODE_LANES) addLane(drafts, lane, hits[lane], rules);
  addLinked(drafts, rules);
  const known = [...drafts.values()].filter((draft) => draft !== null);
  for (const draft of known) draft.score *= raiseOf(draft, rules);
  known.sort(
    (one, other) =>
      other.score - one.score ||
      one.facts.atMs - other.facts.atMs ||
      inOrder(firstTurn(one), firstTurn(other)) ||
      inOrder(one.nodeId, other.nodeId),
  );
  const given: RankedNode[] = [];
  for (const draft of known) {
    if (given.length === rules.limit) break;
    if (rules.keeps(draft.nodeId, draft.score)) given.push(rankedNode(draft));
  }
  return given;
}

/** Ids of nodes are random, names of turns are not: with the same turns every index gives the same order. */
function firstTurn({ turns }: Draft): string {
  return turns.reduce((first, { row }) => (first === '' || row.turn < first ? row.turn : first), '');
}

const NODE_LANES = ['fts', 'summary', 'trigger'] as const;
type NodeLane = (typeof NODE_LANES)[number];
const TURN_LANES = ['raw', 'meaning', 'expanded', 'window', 'entity', 'fact', 'factMeaning'] as const;

interface Draft {
  readonly nodeId: string;
  readonly facts: NodeFacts;
  readonly lanes: Record<NodeLane, LaneScore | null>;
  /** Best first. */
  readonly turns: RankedTurn[];
  score: number;
  references: number;
  linkedFrom: string | null;
}

/** Null where the node is gone. */
type Drafts = Map<string, Draft | null>;

function draftIn(drafts: Drafts, nodeId: string, { factsOf }: NodeRules): Draft | null {
  const known = drafts.get(nodeId);
  if (known !== undefined) return known;
  const facts = factsOf(nodeId);
  const lanes = { fts: null, summary: null, trigger: null };
  const fresh = facts && { nodeId, facts, lanes, turns: [], score: 0, references: 0, linkedFrom: null };
  drafts.set(nodeId, fresh);
  return fresh;
}

function addTurns(drafts: Drafts, turns: readonly RankedTurn[], rules: NodeRules): void {
  const best = turns[0]?.score ?? 0;
  for (const turn of turns) {
    const draft = draftIn(drafts, turn.row.node_id, rules);
    if (draft === null) continue;
    if (draft.turns.length === 0 && best > 0) draft.score += (rules.weights.turn * turn.score) / best;
    draft.turns.push(turn);
  }
}

function addLane(drafts: Drafts, lane: NodeLane, hits: readonly LaneHit[], rules: NodeRules): void {
  const best = hits[0]?.score ?? 0;
  if (best <= 0) return;
  for (const [at, { row, score }] of hits.entries()) {
    const draft = draftIn(drafts, row.node_id, rules);
    if (draft === null || draft.lanes[lane] !== null) continue;
    draft.lanes[lane] = { rank: at + 1, score };
    draft.score += (rules.weights[lane] * score) / best;
  }
}

/** Adds what is linked to, and counts how many candidates link to each. */
function addLinked(drafts: Drafts, rules: NodeRules): void {
  const known = [...drafts.values()].filter((draft) => draft !== null);
  const best = known.sort((one, other) => other.score - one.score).slice(0, LINKING);
  for (const { nodeId: from, score } of best) {
    let reached = [from];
    const seen = new Set(reached);
    for (const [hop, carried] of HOP_SHARES.entries()) {
      const links = reached.flatMap((id) => draftIn(drafts, id, rules)?.facts.links ?? []);
      reached = [...new Set(links)].filter((id) => !seen.has(id));
      for (const id of reached) {
        seen.add(id);
        const draft = draftIn(drafts, id, rules);
        if (draft === null) continue;
        if (hop === 0) draft.references += 1;
        if (score * carried <= draft.score) continue;
        draft.score = score * carried;
        draft.linkedFrom = from;
      }
    }
  }
}

const ORIGIN_TRUST: Readonly<Record<Origin, number>> = { user: 1, assistant: 0.7, tool: 0.3, external: 0 };
const HALF_LIFE_MS = 30 * 86_400_000;
const PROVEN_RECALLS = 5;
const REFERRED_OFTEN = 2;

function raiseOf({ facts, references }: Draft, { boosts, project, nowMs }: NodeRules): number {
  const { origin, atMs, recalled } = facts;
  return (
    (1 + boosts.recency * 2 ** (-Math.max(0, nowMs - atMs) / HALF_LIFE_MS)) *
    (1 + boosts.proof * (recalled / (recalled + PROVEN_RECALLS))) *
    (1 + boosts.trust * ORIGIN_TRUST[origin]) *
    (1 + (facts.project === project && project !== '' ? boosts.project : 0)) *
    (1 + boosts.references * (references / (references + REFERRED_OFTEN)))
  );
}

function rankedNode({ nodeId, score, lanes, turns, linkedFrom }: Draft): RankedNode {
  const found: Partial<Record<Lane, LaneScore>> = {};
  for (const turn of turns) {
    for (const lane of TURN_LANES) {
      const of = turn.lanes[lane];
      if (of !== null && of.rank < (found[lane]?.rank ?? Number.POSITIVE_INFINITY)) found[lane] = of;
    }
  }
  for (const lane of NODE_LANES) if (lanes[lane] !== null) found[lane] = lanes[lane];
  const likenesses = turns.flatMap(({ lanes: { meaning, factMeaning } }) => [meaning, factMeaning]);
  const near = [...likenesses, lanes.summary, lanes.trigger].map((each) => each?.score ?? 0);
  return {
    nodeId,
    score,
    lanes: found,
    similarity: Math.max(0, ...near),
    turns: turns.map(({ row }) => row),
    linkedFrom,
  };
}
