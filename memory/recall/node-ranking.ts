import { compareText } from '../../common/text.ts';
import type { RankedTurn } from '../search/ranking.ts';
import type { Hit, Lane, LaneScore } from '../search/search-index.ts';
import { type BoostRules, getRaise, ORIGIN_TRUST, type Raised } from './boosts.ts';

/** What a node's best turn and its own lanes count. Source: `npm run bench:real`. */
const WEIGHTS = { turn: 1, fts: 0.1, summary: 0.05 };

/** Links carry a share of a node's score over two hops. */
const HOP_SHARES = [0.5, 0.25];
const LINKING = 20;

/** What is known of a node beside its words. */
export interface NodeFacts extends Raised {
  readonly links: readonly string[];
}

export interface RankedNode {
  readonly nodeId: string;
  /** 0 to 1 before boosts: what the best node is worth, and for the others their share of that. */
  readonly score: number;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
  readonly similarity: number;
  /** Its turns that were found, best first. */
  readonly turns: readonly string[];
  /** The best node whose links lead here. */
  readonly linkedFrom: string | null;
}

export interface NodeRules extends BoostRules {
  /** Null for a node that is gone. */
  readonly getFacts: (nodeId: string) => NodeFacts | null;
  /** Whether a node of this score may be given. */
  readonly keeps: (nodeId: string, score: number) => boolean;
  readonly limit: number;
}

interface Candidate {
  readonly nodeId: string;
  readonly facts: NodeFacts;
  readonly turns: RankedTurn[];
  own: Hit | null;
  score: number;
  linkedFrom: string | null;
}

type Candidates = Map<string, Candidate>;

/** The nodes that turns and node lanes lead to, and those they link to, best first; ties by trust, then by age, oldest first. */
export function rankNodes(turns: readonly RankedTurn[], hits: readonly Hit[], rules: NodeRules): RankedNode[] {
  const candidates: Candidates = new Map();
  addTurns(candidates, turns, rules);
  const best = addNodes(candidates, hits, rules);
  addLinked(candidates, rules);
  const nodes = [...candidates.values()];
  const top = nodes.reduce((most, { score }) => Math.max(most, score), 0);
  const scale = top === 0 ? 0 : getWorth(turns, best) / top;
  for (const each of nodes) each.score *= scale * getRaise(each.facts, rules);
  const given: RankedNode[] = [];
  for (const candidate of nodes.sort((one, other) => other.score - one.score || byTrustAndAge(one, other))) {
    if (given.length === rules.limit) break;
    const { nodeId, score, linkedFrom } = candidate;
    if (!rules.keeps(nodeId, score)) continue;
    const turnIds = candidate.turns.map(({ hit }) => hit.turnId);
    given.push({ nodeId, score, linkedFrom, turns: turnIds, ...foundBy(candidate) });
  }
  return given;
}

const LANES = ['fts', 'summary'] as const;
type NodeScores = Readonly<Record<(typeof LANES)[number], number>>;

/** The best node may be far from the question: what the best turn is worth, or the best node by itself, says how far. */
function getWorth([best]: readonly RankedTurn[], nodes: NodeScores): number {
  const { fts, summary } = WEIGHTS;
  const own = fts * Math.sign(nodes.fts) + summary * nodes.summary;
  return Math.min(1, Math.max(best?.score ?? 0, own / (fts + summary || 1)));
}

/** Ids of nodes are random and ids of turns are not: with the same turns every index gives the same order. */
function byTrustAndAge(one: Candidate, other: Candidate): number {
  return (
    ORIGIN_TRUST[other.facts.origin] - ORIGIN_TRUST[one.facts.origin] ||
    one.facts.atMs - other.facts.atMs ||
    compareText(firstTurn(one), firstTurn(other)) ||
    compareText(one.nodeId, other.nodeId)
  );
}

function firstTurn({ turns }: Candidate): string {
  return turns.reduce((first, { hit }) => (first === '' || hit.turnId < first ? hit.turnId : first), '');
}

/** Null for a node that is gone. */
function getCandidate(candidates: Candidates, nodeId: string, { getFacts }: NodeRules): Candidate | null {
  const candidate = candidates.get(nodeId);
  if (candidate !== undefined) return candidate;
  const facts = getFacts(nodeId);
  if (facts === null) return null;
  const fresh: Candidate = { nodeId, facts, turns: [], own: null, score: 0, linkedFrom: null };
  candidates.set(nodeId, fresh);
  return fresh;
}

function addTurns(candidates: Candidates, turns: readonly RankedTurn[], rules: NodeRules): void {
  const best = turns[0]?.score ?? 0;
  for (const turn of turns) {
    const candidate = getCandidate(candidates, turn.hit.nodeId, rules);
    if (candidate === null) continue;
    if (candidate.turns.length === 0 && best > 0) candidate.score += (WEIGHTS.turn * turn.score) / best;
    candidate.turns.push(turn);
  }
}

/** @returns the best score of each lane of nodes */
function addNodes(candidates: Candidates, hits: readonly Hit[], rules: NodeRules): NodeScores {
  const nodes = hits.filter(({ turnId }) => turnId === null);
  const best = { fts: 0, summary: 0 };
  for (const { lanes } of nodes) for (const lane of LANES) best[lane] = Math.max(best[lane], lanes[lane]?.score ?? 0);
  for (const hit of nodes) {
    const candidate = getCandidate(candidates, hit.nodeId, rules);
    if (candidate === null) continue;
    candidate.own = hit;
    for (const lane of LANES) {
      const score = hit.lanes[lane]?.score ?? 0;
      if (best[lane] > 0) candidate.score += (WEIGHTS[lane] * score) / best[lane];
    }
  }
  return best;
}

function addLinked(candidates: Candidates, rules: NodeRules): void {
  const best = [...candidates.values()].sort((one, other) => other.score - one.score).slice(0, LINKING);
  for (const { nodeId: from, score } of best) {
    let reached = [from];
    const seen = new Set(reached);
    for (const carried of HOP_SHARES) {
      const links = reached.flatMap((id) => getCandidate(candidates, id, rules)?.facts.links ?? []);
      reached = [...new Set(links)].filter((id) => !seen.has(id));
      for (const id of reached) {
        seen.add(id);
        const linked = getCandidate(candidates, id, rules);
        if (linked === null) continue;
        linked.linkedFrom ??= from;
        linked.score = Math.max(linked.score, score * carried);
      }
    }
  }
}

/** What led to a node, and the greatest cosine of its rows. */
function foundBy({ turns, own }: Candidate): Pick<RankedNode, 'lanes' | 'similarity'> {
  const lanes: Partial<Record<Lane, LaneScore>> = {};
  let similarity = 0;
  for (const found of [...turns.map(({ hit }) => hit.lanes), own?.lanes ?? {}]) {
    for (const [lane, place] of Object.entries(found) as [Lane, LaneScore][]) {
      if (place.rank < (lanes[lane]?.rank ?? Number.POSITIVE_INFINITY)) lanes[lane] = place;
    }
    const scores = [found.meaning, found.factMeaning, found.summary].map((place) => place?.score ?? 0);
    similarity = Math.max(similarity, ...scores);
  }
  return { lanes, similarity };
}
