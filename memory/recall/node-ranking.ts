import type { Found, Hits, Lane } from '../search/node-index.ts';
import { type Boosts, type Raised, raiseOf, raises } from './boosts.ts';
import { FACT_LANES, OWN_LANES } from './turn-candidates.ts';
import { inOrder, type RankedTurns } from './turn-ranking.ts';
import type { LaneScore } from './types.ts';

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

/** What is known of a node beside its words. */
export interface NodeFacts extends Raised {
  readonly links: readonly string[];
}

export interface RankedNode {
  readonly nodeId: string;
  /** 0 to 1 before boosts: of the best what it is worth, of others their share of that. */
  readonly score: number;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
  /** Greatest likeness of its rows. */
  readonly similarity: number;
  /** Ids of its turns that were found, best first. */
  readonly turns: readonly string[];
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

const NODE_LANES = ['fts', 'summary', 'trigger'] as const;
type NodeLane = (typeof NODE_LANES)[number];
const TURN_LANES = [...OWN_LANES, ...FACT_LANES] as const;

/** The nodes that turns and node lanes lead to, and those they link to, best first; ties by age, oldest first. */
export function rankNodes(turns: RankedTurns, found: Found, rules: NodeRules): RankedNode[] {
  const drafts = createDrafts(found, rules);
  addTurns(drafts, turns, rules);
  for (const lane of NODE_LANES) addLane(drafts, lane, found, rules);
  addLinked(drafts);
  let best = 0;
  for (const draft of drafts.all) if (draft.score > best && drafts.factsOf(draft) !== null) best = draft.score;
  const scale = best === 0 ? 0 : worthOf(turns, found, rules.weights) / best;
  for (const draft of drafts.all) draft.score *= scale;
  if (raises(rules.boosts))
    for (const draft of drafts.all) draft.score *= raiseOf(draft.references, drafts.factsOf(draft), rules);
  const namesOf = (places: readonly number[]): string[] =>
    places.map((nth) => found.rows.nameOf(turns.turns[nth] as number));
  // Ids of nodes are random, names of turns are not: with the same turns every index gives the same order.
  const firstOf = (draft: Draft): string =>
    namesOf(placesOf(draft, turns)).reduce((first, turnId) => (first === '' || turnId < first ? turnId : first), '');
  const ageOf = (draft: Draft): number => drafts.factsOf(draft)?.atMs ?? 0;
  const { idOf } = drafts;
  const inTime = (one: Draft, other: Draft): number =>
    ageOf(one) - ageOf(other) || inOrder(firstOf(one), firstOf(other)) || inOrder(idOf(one), idOf(other));
  const given: RankedNode[] = [];
  for (const draft of inTurn(drafts.all, inTime)) {
    if (given.length === rules.limit) break;
    if (drafts.factsOf(draft) === null || !rules.keeps(idOf(draft), draft.score)) continue;
    const places = placesOf(draft, turns);
    const { linkedFrom, score } = draft;
    given.push({
      ...{ nodeId: idOf(draft), score, linkedFrom, turns: namesOf(places) },
      ...foundBy(draft, places, { turns, found }),
    });
  }
  return given;
}

/** The best node may be far from the question: what the best turn is worth, or the best node by itself, says how far. */
function worthOf({ scores: [bestTurn = 0] }: RankedTurns, { lanes }: Found, weights: NodeWeights): number {
  const { fts, summary, trigger } = weights;
  const own = fts * Math.sign(top(lanes.fts)) + summary * top(lanes.summary) + trigger * top(lanes.trigger);
  return Math.min(1, Math.max(bestTurn, own / (fts + summary + trigger || 1)));
}

function top({ scores: [best = 0] }: Hits): number {
  return Math.max(0, best);
}

/** Best first. Ties are put in order when they are reached: few are, and what decides them is not at hand. */
function* inTurn(drafts: readonly Draft[], inTime: (one: Draft, other: Draft) => number): Generator<Draft> {
  const sorted = drafts.toSorted((one, other) => other.score - one.score);
  for (let from = 0; from < sorted.length; ) {
    let to = from + 1;
    while (sorted[to]?.score === sorted[from]?.score) to += 1;
    yield* sorted.slice(from, to).sort(inTime);
    from = to;
  }
}

/** Small: hundreds are made for each that is given, so its id and turns are looked up when it is. */
interface Draft extends Record<NodeLane, number> {
  /** Its number, 0 for one that only links name. */
  readonly node: number;
  nodeId: string | null;
  /** Null where the node is gone, undefined where nobody asked. */
  facts: NodeFacts | null | undefined;
  hasTurn: boolean;
  score: number;
  references: number;
  linkedFrom: string | null;
}

interface Drafts {
  readonly all: Draft[];
  /** By the node's number. */
  numbered(node: number): Draft;
  named(nodeId: string): Draft;
  idOf(draft: Draft): string;
  factsOf(draft: Draft): NodeFacts | null;
}

function createDrafts({ rows }: Found, rules: NodeRules): Drafts {
  const all: Draft[] = [];
  const byNumber = new Map<number, Draft>();
  /** Those that no row names. */
  const byName = new Map<string, Draft>();

  function add(node: number, nodeId: string | null): Draft {
    // Written out, so that all have one shape.
    const fresh: Draft = {
      node,
      nodeId,
      facts: undefined,
      hasTurn: false,
      fts: 0,
      summary: 0,
      trigger: 0,
      score: 0,
      references: 0,
      linkedFrom: null,
    };
    all.push(fresh);
    return fresh;
  }

  function idOf(draft: Draft): string {
    draft.nodeId ??= rows.nameOf(draft.node);
    return draft.nodeId;
  }

  function numbered(node: number): Draft {
    const known = byNumber.get(node);
    if (known !== undefined) return known;
    const fresh = add(node, null);
    byNumber.set(node, fresh);
    return fresh;
  }

  return {
    all,
    numbered,
    named(nodeId) {
      const node = rows.numberOf(nodeId);
      if (node !== 0) return numbered(node);
      const draft = byName.get(nodeId) ?? add(0, nodeId);
      byName.set(nodeId, draft);
      return draft;
    },
    idOf,
    factsOf(draft) {
      if (draft.facts === undefined) draft.facts = rules.factsOf(idOf(draft));
      return draft.facts;
    },
  };
}

function addTurns({ numbered }: Drafts, { nodes, scores }: RankedTurns, { weights }: NodeRules): void {
  const best = scores[0] ?? 0;
  for (let nth = 0; nth < nodes.length; nth += 1) {
    const draft = numbered(nodes[nth] as number);
    if (!draft.hasTurn && best > 0) draft.score += (weights.turn * (scores[nth] as number)) / best;
    draft.hasTurn = true;
  }
}

/** Of its turns among those that were ranked, best first. */
function placesOf({ node, hasTurn }: Draft, { nodes }: RankedTurns): number[] {
  const places: number[] = [];
  if (!hasTurn) return places;
  for (let nth = nodes.indexOf(node); nth >= 0; nth = nodes.indexOf(node, nth + 1)) places.push(nth);
  return places;
}

function addLane({ numbered }: Drafts, lane: NodeLane, { lanes, rows }: Found, { weights }: NodeRules): void {
  const { slots, scores } = lanes[lane];
  const best = scores[0] ?? 0;
  if (best <= 0) return;
  for (let at = 0; at < slots.length; at += 1) {
    const draft = numbered(rows.nodeOf(slots[at] as number));
    if (draft[lane] !== 0) continue;
    draft[lane] = at + 1;
    draft.score += (weights[lane] * (scores[at] as number)) / best;
  }
}

/** Adds what is linked to, and counts how many candidates link to each. */
function addLinked({ all, named, idOf, factsOf }: Drafts): void {
  for (const best of bestKnown(all, factsOf)) {
    const { score } = best;
    const from = idOf(best);
    let reached = [from];
    const seen = new Set(reached);
    for (const [hop, carried] of HOP_SHARES.entries()) {
      const links = reached.flatMap((id) => factsOf(named(id))?.links ?? []);
      reached = [...new Set(links)].filter((id) => !seen.has(id));
      for (const id of reached) {
        seen.add(id);
        const draft = named(id);
        if (factsOf(draft) === null) continue;
        if (hop === 0) draft.references += 1;
        if (score * carried <= draft.score) continue;
        draft.score = score * carried;
        draft.linkedFrom = from;
      }
    }
  }
}

function bestKnown(all: readonly Draft[], factsOf: Drafts['factsOf']): Draft[] {
  const known: Draft[] = [];
  for (const draft of all.toSorted((one, other) => other.score - one.score)) {
    if (known.length === LINKING) break;
    if (factsOf(draft) !== null) known.push(draft);
  }
  return known;
}

/** What led to a node, and the greatest likeness of its rows. */
function foundBy(
  draft: Draft,
  places: readonly number[],
  { turns, found }: { readonly turns: RankedTurns; readonly found: Found },
): Pick<RankedNode, 'lanes' | 'similarity'> {
  const lanes: Partial<Record<Lane, LaneScore>> = {};
  let similarity = 0;
  for (const nth of places) {
    for (const lane of TURN_LANES) {
      const place = turns.found(lane, nth);
      if (place === null) continue;
      if (lane === 'meaning' || lane === 'factMeaning') similarity = Math.max(similarity, place.score);
      if (place.rank < (lanes[lane]?.rank ?? Number.POSITIVE_INFINITY)) lanes[lane] = place;
    }
  }
  for (const lane of NODE_LANES) {
    const rank = draft[lane];
    if (rank === 0) continue;
    const place = { rank, score: found.lanes[lane].scores[rank - 1] as number };
    lanes[lane] = place;
    if (lane !== 'fts') similarity = Math.max(similarity, place.score);
  }
  return { lanes, similarity };
}
