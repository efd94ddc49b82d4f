import { type Breaker, beforeAbort, createBreaker } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import { createWordRarity, loadStaticTable, type WordRarity } from '../embeddings/static-encoder.ts';
import type { FileReferences, Freshness } from '../ingest/file-references.ts';
import type { MemoryNode } from '../model/node.ts';
import { lanesOfTurns, type RankingRules, rankTurns } from '../search/ranking.ts';
import type { Hit, IndexFilter, Lane, SearchIndex, TurnWords } from '../search/search-index.ts';
import { contentTokens } from '../text/keywords.ts';
import { isNearDuplicate } from '../text/paraphrase.ts';
import { isPast } from '../text/validity.ts';
import { answerKind } from './answer-type.ts';
import { memoryLine, RAW_CHARS } from './format-memory.ts';
import { type NodeFacts, type RankedNode, rankNodes } from './node-ranking.ts';
import { passagesOf } from './passages.ts';
import { isQuarantined } from './quarantine.ts';
import { asksExact, asksPast, namesCall, recallQuery } from './query.ts';
import { type QueryWeights, UNSEEN, weighQuery } from './query-weights.ts';
import { createPassageScale, type PassageScale, passesGate } from './relevance-filter.ts';
import { weighAsked } from './required-terms.ts';
import { type Reranking, reranked, rerankedText } from './reranking.ts';
import { freshnessFactor, staleNote } from './staleness.ts';
import { originOf, rawLine, readTurns, type TurnOfMemory, turnsRead } from './turn-text.ts';
import type { RecallHit, RecallRequest, SearchOptions } from './types.ts';

export type RecallConfig = Config['recall'];

export interface RecallerDeps {
  readonly index: SearchIndex;
  /** The node of an id from memory; null where the index is behind. */
  readonly nodeOf: (nodeId: string) => MemoryNode | null;
  /** Text and origin of a turn by its id, redacted; null where it is not known. */
  readonly turnText: (turnId: string) => TurnOfMemory | null | Promise<TurnOfMemory | null>;
  /** Project key of a directory, '' for null. */
  readonly projectOf: (directory: string | null) => string;
  /** Where it is not given, no memory is stale. */
  readonly files?: Pick<FileReferences, 'freshness'>;
  readonly config: RecallConfig;
  /** Where it is not given, the order of ranking stands. */
  readonly reranking?: Reranking;
  readonly now: () => number;
}

export interface Recaller {
  /**
   * What fits the prompt, best first; empty when nothing does, or while the index fails.
   *
   * @throws the signal's reason as soon as it aborts; CometError `index_failed`
   */
  recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]>;
  /** Like `recall`, for an explicit search: results below the relevance filter follow those that pass it. */
  search(query: string, options: SearchOptions): Promise<readonly RecallHit[]>;
  /** Ids of the turns that search makes its hits of, best first, each once. */
  turns: (query: string, options: SearchOptions) => Promise<readonly string[]>;
}

/** Hits asked of each lane of turns: enough that a turn which is good in one is found in the others. */
const LANE_LIMIT = 400;
/** Turns whose nodes are ranked: later ones are far below what is given. */
const RANKED_TURNS = 300;
/** How long somebody who asks waits to be told which files changed; a prompt waits less. */
export const ASKED_MS = 250;
/** Candidates read per requested result; lower ones rarely pass the relevance filter, and reading turns is slow. */
const LOOKED_AT = 3;
const CHARS_PER_TOKEN = 3.5;
const NODE_WEIGHTS = { turn: 1, fts: 0.5, summary: 0.25 };

interface Search {
  readonly query: string;
  readonly filter: IndexFilter;
  readonly limit: number;
  readonly gated: boolean;
  readonly skips: (node: MemoryNode) => boolean;
  readonly shown: ReadonlySet<string>;
  /** Where the question is asked. */
  readonly projectDir: string | null;
}

/** What may be shown, and whether it passes the gate. */
interface Fitting {
  readonly candidate: RankedNode;
  readonly node: MemoryNode;
  readonly turns: ReadonlyMap<string, TurnWords>;
  readonly fits: boolean;
}

interface State extends RecallerDeps {
  readonly ranking: RankingRules;
  readonly lanes: readonly Lane[];
  readonly lexicon: WordRarity;
  readonly breaker: Breaker;
}

export function createRecaller(deps: RecallerDeps): Recaller {
  const { projectOf, config } = deps;
  const ranking = rankingRules(config);
  const lanes = [...new Set<Lane>([...lanesOfTurns(ranking), 'fts', 'summary'])];
  const state = {
    ...deps,
    ranking,
    lanes,
    lexicon: createWordRarity(loadStaticTable),
    breaker: createBreaker(deps.now),
  };
  const filterOf = ({ sessionId, projectDir }: SearchOptions): IndexFilter => ({
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(projectDir === undefined ? {} : { project: projectOf(projectDir) }),
  });
  return {
    async recall(request, signal) {
      signal.throwIfAborted();
      if (!state.breaker.allows()) return [];
      const query = recallQuery(request.prompt, request.recent);
      const { visibleTurns, shown } = request;
      const visible = ({ turns }: MemoryNode): boolean =>
        turns.length > 0 && turns.every((turnId) => visibleTurns.has(turnId));
      const { projectDir } = request;
      const filter = scopeOf(request.scope ?? config.scope, request.sessionId, projectOf(projectDir));
      const search = { query, projectDir, filter, limit: config.topK, gated: true, skips: visible, shown };
      return beforeAbort(find(state, search), signal);
    },

    search(query, options) {
      const { top: limit, projectDir = null } = options;
      const filter = filterOf(options);
      return find(state, { query, projectDir, filter, limit, gated: false, skips: () => false, shown: new Set() });
    },

    async turns(query, options) {
      const hits = await searchIndex(state, query, filterOf(options));
      const turns = rankTurns(query, hits, ranking).map(({ hit }) => hit.turnId);
      return [...new Set(turns)].slice(0, options.top);
    },
  };
}

async function find(state: State, search: Search): Promise<RecallHit[]> {
  const { query, filter } = search;
  const tokens = contentTokens(query);
  if (tokens.length === 0) return [];
  const hits = await searchIndex(state, query, filter);
  const idf = await state.index.termWeights([...tokens, UNSEEN], filter);
  const nodes = rankCandidates(state, search, hits);
  const words = await state.index.turnTexts(
    nodes.map(({ nodeId }) => nodeId),
    [...new Set(nodes.flatMap((each) => turnsRead(each, state.nodeOf(each.nodeId))))],
  );
  const freshness = await state.files?.freshness(
    nodes.flatMap(({ nodeId }) => state.nodeOf(nodeId) ?? []),
    search.projectDir,
    search.gated ? undefined : ASKED_MS,
  );
  const candidates = demoted(await rerank(state, search, nodes, words), freshness);
  const weigh = createPassageScale(weighAsked(query, idf, state.lexicon), state.lexicon);
  const fitting = await filterRelevant(state, search, { candidates, words, weigh });
  return formatHits(state, search, { fitting, freshness, weights: weighQuery(tokens, idf) });
}

async function searchIndex(
  { index, lanes, breaker }: State,
  query: string,
  filter: IndexFilter,
): Promise<readonly Hit[]> {
  try {
    const hits = await index.search(query, filter, LANE_LIMIT, lanes);
    breaker.succeeded();
    return hits;
  } catch (error) {
    breaker.failed();
    throw error;
  }
}

function rankCandidates(state: State, search: Search, hits: readonly Hit[]): RankedNode[] {
  const { nodeOf, config, projectOf, now, reranking } = state;
  const { query, filter, limit, gated, skips, projectDir } = search;
  const past = asksPast(query);
  const current = (id: string): string => nodeOf(id)?.node_id ?? id;
  return rankNodes(rankTurns(query, hits, state.ranking).slice(0, RANKED_TURNS), hits, {
    weights: NODE_WEIGHTS,
    boosts: config.boosts,
    project: projectOf(projectDir),
    nowMs: now(),
    factsOf(id) {
      const facts = nodeFacts(nodeOf(id), filter);
      return facts === null || facts.links.length === 0 ? facts : { ...facts, links: facts.links.map(current) };
    },
    keeps: (id, score) => score >= config.minScore && wanted(nodeOf(id), { past, skips, least: config.leastOrigin }),
    limit: Math.max(limit * LOOKED_AT, reranking?.candidates(gated) ?? 0),
  });
}

async function rerank(
  { reranking, nodeOf }: State,
  { query, gated }: Search,
  nodes: readonly RankedNode[],
  words: ReadonlyMap<string, TurnWords>,
): Promise<readonly RankedNode[]> {
  const most = reranking?.candidates(gated) ?? 0;
  const first = nodes.slice(0, most);
  const texts = first.map((node) => rerankedText(nodeOf(node.nodeId)?.summary ?? '', node, words));
  const worth = await reranking?.worth(query, texts, gated);
  return worth ? [...reranked(first, worth), ...nodes.slice(most)] : nodes;
}

interface Candidates {
  readonly candidates: readonly RankedNode[];
  readonly words: ReadonlyMap<string, TurnWords>;
  readonly weigh: PassageScale;
}

async function filterRelevant(
  { nodeOf, turnText, config }: State,
  { gated }: Search,
  { candidates, words, weigh }: Candidates,
): Promise<Fitting[]> {
  const fitting: Fitting[] = [];
  const passed = new Set<string>();
  for (const candidate of candidates) {
    const node = nodeOf(candidate.nodeId);
    if (node === null) continue;
    const turns = await readTurns(candidate, node, words, turnText);
    const evidence = weigh(passagesOf(node, turns));
    const linked = candidate.linkedFrom !== null && passed.has(candidate.linkedFrom);
    const fits = evidence.some((each) => passesGate(each, config, linked));
    if (fits) passed.add(candidate.nodeId);
    if (fits || (!gated && (evidence.length > 0 || candidate.similarity >= config.minSimilarity))) {
      fitting.push({ candidate, node, turns, fits });
    }
  }
  return fitting;
}

interface Found {
  readonly fitting: readonly Fitting[];
  readonly freshness: ReadonlyMap<string, Freshness> | undefined;
  readonly weights: QueryWeights;
}

async function formatHits(state: State, search: Search, { fitting, freshness, weights }: Found): Promise<RecallHit[]> {
  const { query, limit, gated, shown } = search;
  const past = asksPast(query);
  const exact = asksExact(query) ? ({ isExact: true } as const) : {};
  const rules = { maxChars: RAW_CHARS, callsAnswer: namesCall(query), kind: answerKind(query) };
  const found: RecallHit[] = [];
  let left = state.config.maxTokens * CHARS_PER_TOKEN;
  const inOrder = fitting.toSorted((one, other) => Number(other.fits) - Number(one.fits));
  for (const { candidate, node, turns, fits } of inOrder) {
    if (found.length === limit) break;
    const raw = rawLine(node, turns, { weights, rules, past });
    const changed = freshness?.get(node.node_id)?.changes ?? [];
    const said = raw === null ? null : { ...raw, origin: await originOf(raw, state.turnText) };
    const line = memoryLine(node, said, { note: staleNote(changed), past });
    if (shown.has(line.text) || found.some((hit) => isNearDuplicate(hit.node.summary, node.summary))) continue;
    if (gated && line.text.length > left) continue;
    left -= line.text.length;
    const { score, lanes } = candidate;
    const quoted = raw === null ? null : { text: raw.text, turn: raw.turn };
    const hit = { node, score, line, lanes, raw: quoted, ...exact, ...(fits ? {} : { isFar: true as const }) };
    found.push(changed.length === 0 ? hit : { ...hit, changed });
  }
  return found;
}

/** Nodes whose files changed since give way to those whose did not. */
function demoted(nodes: readonly RankedNode[], freshness?: ReadonlyMap<string, Freshness>): readonly RankedNode[] {
  if (freshness === undefined || freshness.size === 0) return nodes;
  const weighed = nodes.map((node) => {
    const { files = 0, changes = [] } = freshness.get(node.nodeId) ?? {};
    return { ...node, score: node.score * freshnessFactor(changes.length, files) };
  });
  return weighed.sort((left, right) => right.score - left.score);
}

function rankingRules({ fusion: mode, weights, rrfK, comet }: RecallConfig): RankingRules {
  return { mode, weights, rrfK, comet, limit: LANE_LIMIT };
}

/** Null for what is gone, and for what a link leads to outside of where was asked. */
function nodeFacts(node: MemoryNode | null, { project, sessionId }: IndexFilter): NodeFacts | null {
  if (node === null) return null;
  if (project !== undefined && node.project !== project) return null;
  if (sessionId !== undefined && node.session_id !== sessionId) return null;
  const { links, origin } = node;
  const atMs = Date.parse(node.valid_from);
  return { links, origin, project: node.project, atMs, recalled: 0 };
}

interface Wanted {
  readonly past: boolean;
  readonly skips: (node: MemoryNode) => boolean;
  readonly least: Origin;
}

function wanted(node: MemoryNode | null, { past, skips, least }: Wanted): boolean {
  if (node === null || (isPast(node) && !past) || skips(node) || isQuarantined(node)) return false;
  return lowestOrigin([node.origin, least]) === least;
}

/** Without a project, only the session itself is searched. */
function scopeOf(scope: Config['recall']['scope'], sessionId: string, project: string): IndexFilter {
  if (scope === 'all') return {};
  return scope === 'session' || project === '' ? { sessionId } : { project };
}
