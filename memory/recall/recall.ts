import { beforeAbort, createBreaker } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { CometError } from '../../common/errors.ts';
import { memoize } from '../../common/map.ts';
import { lowestOrigin } from '../../common/turn.ts';
import { textVector } from '../embeddings/static-embedder.ts';
import type { FileReferences, Freshness } from '../ingest/file-references.ts';
import type { OpenParts } from '../ingest/parts.ts';
import { isSearched, type MemoryNode } from '../model/node.ts';
import { getParts } from '../model/turn.ts';
import { dateAgreement, getDateRarity, type NamedDate, namedDate } from '../search/dates.ts';
import { lanesOfTurns, type RankedTurn, type RankingRules, rankTurns } from '../search/ranking.ts';
import type { Hit, IndexFilter, Lane, TurnWords } from '../search/search-index.ts';
import { contentTokens } from '../text/keywords.ts';
import { getWords, saySame } from '../text/paraphrase.ts';
import { contentTags } from '../text/tags.ts';
import { tokenize } from '../text/tokenizer.ts';
import { isClosed, isPast, toldBy } from '../text/validity.ts';
import { memoryLine, PASSAGE_CHARS, saidIn } from './format-memory.ts';
import { type NodeFacts, type RankedNode, rankNodes } from './node-ranking.ts';
import { bestPassage, containedShare } from './passages.ts';
import { isQuarantined } from './quarantine.ts';
import { asksExact, asksPast, namesCall, recallQuery } from './query.ts';
import {
  computeCoverage,
  FILTER_RULES,
  type FilterRules,
  isRelevant,
  leastCoverage,
  measureCoverage,
  type QueryTerms,
  UNSEEN,
  weighTerms,
} from './relevance-filter.ts';
import { type Reranking, reranked, rerankedText } from './reranking.ts';
import { freshnessFactor, staleNote } from './staleness.ts';
import type { RecallHit, RecallRequest, SearchOptions } from './types.ts';

export type RecallConfig = Config['recall'];

export interface RecallerDeps extends Pick<OpenParts, 'index' | 'getProject'> {
  /** The node of an id from memory; null where the index is behind. */
  readonly getNode: (nodeId: string) => MemoryNode | null;
  /** Marked text and origin of a turn by its id, redacted; null where it is not known. */
  readonly turnText: (turnId: string) => TurnWords | null | Promise<TurnWords | null>;
  /** Where it is not given, no memory is stale. */
  readonly files?: Pick<FileReferences, 'freshness'>;
  readonly config: RecallConfig;
  readonly filter?: FilterRules;
  /** Where it is not given, the order of ranking stands. */
  readonly reranking?: Reranking;
  /** Called when the index could not be read several times in a row; resolves when it can be. */
  readonly repair?: (why: CometError) => Promise<void>;
  readonly now: () => number;
}

/** Hits asked of each lane of turns: enough that a turn which is good in one is found in the others. */
const LANE_LIMIT = 400;
/** Turns whose nodes are ranked: later ones are far below what is given. */
const RANKED_TURNS = 300;
/** How long a search waits for the state of files; a prompt waits less. */
export const ASKED_MS = 250;
const LOOKED_AT = 2;
/** Turns read per candidate, those that were found first. */
const TURNS_READ = 8;
/** Share of the words of a passage from which another line says the same. */
const SAME_WORDS = 0.8;

interface Search {
  readonly query: string;
  readonly filter: IndexFilter;
  readonly limit: number;
  readonly gated: boolean;
  readonly skips: (node: MemoryNode) => boolean;
  /** Turns that are not told: the conversation sends them. */
  readonly visibleTurns: ReadonlySet<string>;
  readonly shown: ReadonlySet<string>;
  readonly projectDir: string | null;
}

interface ReadTurn {
  readonly id: string;
  readonly words: TurnWords;
  readonly coverage: number;
}

/** A candidate with its turns, the one that answers best first; none if only the node's own text matches. */
type Reading = NonNullable<Awaited<ReturnType<typeof readCandidate>>>;

interface SearchContext {
  readonly search: Search;
  readonly terms: QueryTerms;
  readonly past: boolean;
  readonly date: NamedDate | null;
  readonly freshness: ReadonlyMap<string, Freshness> | undefined;
  /** The best memories, before a reranker or the age of files orders them. */
  readonly deciding: ReadonlySet<string>;
}

export type Recaller = ReturnType<typeof createRecaller>;

export function createRecaller(deps: RecallerDeps) {
  const { index, getProject, config, repair = async () => {}, now } = deps;
  const { fusion: mode, weights, rrfK, comet } = config;
  const ranking: RankingRules = { mode, weights, rrfK, comet, limit: LANE_LIMIT };
  const lanes = [...new Set<Lane>([...lanesOfTurns(ranking), 'fts', 'summary'])];
  const breaker = createBreaker(now);
  /** Since the start. */
  const recalls = new Map<string, number>();

  async function collectHits(query: string, filter: IndexFilter): Promise<readonly Hit[]> {
    try {
      const hits = await index.search(query, filter, LANE_LIMIT, lanes);
      breaker.succeeded();
      return hits;
    } catch (error) {
      if (breaker.failed() && error instanceof CometError && error.code === 'index_unreadable')
        void repair(error).then(breaker.succeeded);
      throw error;
    }
  }

  async function find(search: Search): Promise<RecallHit[]> {
    const { query, filter, gated, projectDir } = search;
    const tokens = contentTokens(query);
    if (tokens.length === 0) return [];
    const hits = await collectHits(query, filter);
    const date = namedDate(query, now());
    const idf = await index.termWeights([...tokens, UNSEEN], filter);
    const terms = weighTerms(query, idf, deps.filter, readDate(date, query, hits));
    const past = asksPast(query);
    const isHidden = ({ hit }: RankedTurn): boolean => !search.visibleTurns.has(hit.turnId);
    const turns = rankTurns({ text: query, date }, hits, ranking).filter(isHidden).slice(0, RANKED_TURNS);
    const candidates = rankCandidates(deps, { search, past, date, turns, hits, recalls });
    const turnIds = [...new Set(candidates.flatMap((each) => getTurns(each, deps, search)))];
    const nodeIds = candidates.map(({ nodeId }) => nodeId);
    const words = await index.turnTexts(nodeIds, turnIds);
    const nodes = candidates.flatMap(({ nodeId }) => deps.getNode(nodeId) ?? []);
    const freshness = await deps.files?.freshness(nodes, projectDir, gated ? undefined : ASKED_MS);
    const readings: Reading[] = [];
    for (const candidate of demoted(await inOrder(deps, candidates, { search, words }), freshness)) {
      const reading = await readCandidate(deps, candidate, words, { search, terms, date });
      if (reading !== null) readings.push(reading);
    }
    const deciding = new Set(candidates.slice(0, (deps.filter ?? FILTER_RULES).deciding).map(({ nodeId }) => nodeId));
    return getHits(deps, readings, { search, terms, past, date, freshness, deciding });
  }

  return {
    /**
     * What fits the prompt, best first; empty when nothing does, or while the index fails.
     * @throws the signal's reason as soon as it aborts; CometError `index_failed`, `index_unreadable`
     */
    async recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]> {
      signal.throwIfAborted();
      if (!breaker.allows()) return [];
      const query = recallQuery(request.prompt, request.recent);
      const { visibleTurns, shown, projectDir } = request;
      const visible = ({ turns }: MemoryNode) => turns.length > 0 && turns.every((turnId) => visibleTurns.has(turnId));
      const filter = getScope(request.scope ?? config.scope, request.sessionId, getProject(projectDir));
      const limit = config.maxResults;
      const search = { query, projectDir, filter, limit, gated: true, skips: visible, visibleTurns, shown };
      const hits = await beforeAbort(find(search), signal);
      for (const { node } of hits) recalls.set(node.node_id, (recalls.get(node.node_id) ?? 0) + 1);
      return hits;
    },

    /** Like `recall`, for an explicit search: results below the relevance filter follow those that pass it. */
    search(query: string, options: SearchOptions): Promise<readonly RecallHit[]> {
      const { top: limit, projectDir = null, skips = () => false } = options;
      const nothing = { visibleTurns: new Set<string>(), shown: new Set<string>() };
      return find({ query, projectDir, filter: getFilter(options), limit, gated: false, skips, ...nothing });
    },

    /** Ids of the turns that search makes its hits of, best first, each once. */
    async turns(query: string, options: SearchOptions): Promise<readonly string[]> {
      const hits = await collectHits(query, getFilter(options));
      const turns = rankTurns({ text: query, date: namedDate(query, now()) }, hits, ranking);
      return [...new Set(turns.map(({ hit }) => hit.turnId))].slice(0, options.top);
    },
  };

  function getFilter({ sessionId, projectDir, project }: SearchOptions): IndexFilter {
    const key = project ?? (projectDir === undefined ? undefined : getProject(projectDir));
    return { ...(sessionId === undefined ? {} : { sessionId }), ...(key === undefined ? {} : { project: key }) };
  }
}

/** What the filter knows of the date; null where its words stay in the query: a number that may be a year. */
function readDate(date: NamedDate | null, query: string, hits: readonly Hit[]) {
  if (date === null || date.rest === query) return null;
  const turns = hits.filter(({ turnId }) => turnId !== null);
  return { rest: date.rest, rarity: getDateRarity(date, turns) };
}

function rankCandidates(
  { getNode, getProject, config, reranking, now }: RecallerDeps,
  found: Pick<SearchContext, 'search' | 'past' | 'date'> & {
    readonly turns: RankedTurn[];
    readonly hits: readonly Hit[];
    readonly recalls: ReadonlyMap<string, number>;
  },
): RankedNode[] {
  const { search, past, date, turns, hits, recalls } = found;
  const { filter, limit, gated, skips, projectDir } = search;
  const current = (id: string): string => getNode(id)?.node_id ?? id;
  return rankNodes(turns, hits, {
    boosts: config.boosts,
    project: getProject(projectDir),
    nowMs: now(),
    date,
    getFacts: (id: string): NodeFacts | null => {
      const facts = nodeFacts(getNode(id), filter, recalls.get(id) ?? 0);
      return facts === null || facts.links.length === 0 ? facts : { ...facts, links: facts.links.map(current) };
    },
    keeps: (id, score) => score >= config.minScore && isWanted(getNode(id), { past, skips }),
    limit: Math.max(limit * LOOKED_AT, reranking?.candidates(gated) ?? 0),
  });
}

/** The turns that were found, then the others of the node. */
function getTurns({ turns, nodeId }: RankedNode, { getNode }: Pick<RecallerDeps, 'getNode'>, search: Search) {
  const all = [...new Set([...turns, ...(getNode(nodeId)?.turns ?? [])])];
  return all.filter((id) => !search.visibleTurns.has(id)).slice(0, TURNS_READ);
}

async function inOrder(
  { getNode, reranking }: RecallerDeps,
  nodes: readonly RankedNode[],
  { search, words }: { readonly search: Search; readonly words: ReadonlyMap<string, TurnWords> },
): Promise<readonly RankedNode[]> {
  const most = reranking?.candidates(search.gated) ?? 0;
  const first = nodes.slice(0, most);
  const texts = first.map((node) => rerankedText(getNode(node.nodeId)?.summary ?? '', node, words));
  const worth = await reranking?.worth(search.query, texts, search.gated);
  return worth ? [...reranked(first, worth), ...nodes.slice(most)] : nodes;
}

async function readCandidate(
  deps: RecallerDeps,
  candidate: RankedNode,
  words: ReadonlyMap<string, TurnWords>,
  { search, terms, date }: Pick<SearchContext, 'search' | 'terms' | 'date'>,
) {
  const node = deps.getNode(candidate.nodeId);
  if (node === null) return null;
  const { summary, trigger, topic_tags, facts } = node;
  const texts = [
    summary,
    trigger,
    ...contentTags(topic_tags),
    ...facts.map(({ concept, value }) => `${concept} ${value}`),
  ];
  /** With the date that the query names, 0 to 1. */
  const agreement = date === null ? 0 : dateAgreement(date, Date.parse(node.valid_from));
  const turns: ReadTurn[] = [];
  for (const id of getTurns(candidate, deps, search)) {
    const turn = words.get(id) ?? (await deps.turnText(id));
    if (turn === null) continue;
    turns.push({ id, words: turn, coverage: measureCoverage(terms, getTokens(turn), agreement) });
  }
  const best = turns.toSorted((one, other) => other.coverage - one.coverage);
  // What a memory says of all its turns may be of one that is sent.
  const isSent = node.turns.some((id) => search.visibleTurns.has(id));
  const ownCoverage = isSent ? 0 : computeCoverage(terms, texts.join('\n'), agreement);
  const coverage = Math.max(ownCoverage, best[0]?.coverage ?? 0);
  return { candidate, node, agreement, turns: best.filter((turn) => turn.coverage > 0), coverage };
}

const getTokens = memoize(({ text }: TurnWords) => new Set(tokenize(text)));
const getSpoken = memoize(({ text, origin }: TurnWords) => getParts(text, origin));
const getVector = memoize(({ text }: TurnWords) => textVector(text));

/** One decision for the whole query: where any memory passes the threshold, those near the best one are shown too. */
function getHits(
  { config, filter = FILTER_RULES }: RecallerDeps,
  readings: readonly Reading[],
  context: SearchContext,
): RecallHit[] {
  const { search, terms, deciding } = context;
  const { gated, limit, shown } = search;
  const { nearBest, linkCoverage, secondShare } = filter;
  const most = Math.max(0, ...readings.map(({ coverage }) => coverage));
  const passes = readings.some(({ candidate, coverage, agreement, turns: [best], node }) => {
    if (!deciding.has(candidate.nodeId)) return false;
    const vector = best === undefined ? textVector(node.summary) : getVector(best.words);
    return isRelevant(coverage, terms, leastCoverage(config.minCoverage, terms, vector, filter), agreement);
  });
  const passed = new Set<string>();
  const fitting = readings.map((reading) => {
    const { candidate, coverage } = reading;
    const isLinked = candidate.linkedFrom !== null && passed.has(candidate.linkedFrom) && coverage >= linkCoverage;
    const fits = passes && (coverage >= most * nearBest || isLinked);
    if (fits) passed.add(candidate.nodeId);
    return { ...reading, fits };
  });
  const hits: RecallHit[] = [];
  const shownWords: ReadonlySet<string>[] = [];
  let left = config.maxContextChars;
  const inOrder = heirsFirst(fitting, terms).toSorted((one, other) => Number(other.fits) - Number(one.fits));
  const best = inOrder.map((reading) => ({ ...reading, turn: reading.turns[0] }));
  const others = gated ? inOrder.flatMap((reading) => secondTurn(reading, secondShare)) : [];
  for (const { turn, ...reading } of [...best, ...others]) {
    if (hits.length === limit) break;
    const { fits, coverage, candidate } = reading;
    if (!fits && (gated || (coverage === 0 && candidate.similarity < config.minSimilarity))) continue;
    const hit = getHit({ ...reading, turn }, context);
    const { text, origin } = hit.line;
    const words = getWords(saidIn(text));
    if (isShown(hit, shown) || shownWords.some((otherWords) => saySame(otherWords, words))) continue;
    if (gated && (text.length > left || lowestOrigin([origin, config.leastOrigin]) !== config.leastOrigin)) continue;
    left -= text.length;
    shownWords.push(words);
    hits.push(fits ? hit : { ...hit, isFar: true });
  }
  return hits;
}

/** Of a memory with one that covers nearly as much as its best one. */
function secondTurn<T extends Reading>(reading: T, secondShare: number) {
  const [best, turn] = reading.turns;
  return best && turn && turn.coverage >= best.coverage * secondShare ? [{ ...reading, turn }] : [];
}

/** Of a statement with this share of the words that its memory has of the query, the one that ended it comes first. */
const ENDED_SHARE = 0.5;

function heirsFirst<T extends Reading>(readings: readonly T[], terms: QueryTerms): readonly T[] {
  const ordered = new Set<T>();
  for (const reading of readings) {
    const { node, coverage } = reading;
    const ended = node.facts.filter((fact) => {
      const isAsked = computeCoverage(terms, `${fact.concept} ${fact.value}`) >= coverage * ENDED_SHARE;
      return isClosed(fact) && isAsked && coverage > 0;
    });
    const heirs = new Set(ended.map(({ superseded_by: by }) => by));
    for (const other of readings) if (heirs.has(other.node.node_id)) ordered.add(other);
    ordered.add(reading);
  }
  return [...ordered];
}

function getHit(
  { candidate, node, turn }: Omit<Reading, 'turns'> & { readonly turn: ReadTurn | undefined },
  { search, terms, past, freshness }: SearchContext,
): RecallHit {
  const { query } = search;
  const isGone = toldBy(past ? [] : node.facts.filter(isClosed));
  const rules = { maxChars: PASSAGE_CHARS, callsAnswer: namesCall(query), isPast: isGone };
  const passage = turn === undefined ? null : bestPassage(getSpoken(turn.words), terms, rules);
  const changed = freshness?.get(node.node_id)?.changes ?? [];
  const line = memoryLine(node, passage, { note: staleNote(changed), past });
  const { score, lanes } = candidate;
  const raw = passage === null || turn === undefined ? null : { text: passage.text, turn: turn.id };
  return {
    ...{ node, score, line, lanes, raw },
    ...(asksExact(query) ? { isExact: true } : {}),
    ...(changed.length === 0 ? {} : { changed }),
  };
}

/** The line itself, or a line of the same memory that has nearly all words of the passage. */
function isShown({ node, line, raw }: RecallHit, shown: ReadonlySet<string>): boolean {
  if (shown.has(line.text)) return true;
  if (raw === null) return false;
  const passageText = saidIn(line.text);
  const ofNode = [...shown].filter((text) => text.includes(`[${node.node_id}]`));
  return ofNode.some((text) => containedShare(passageText, text) >= SAME_WORDS);
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

/** Null for what is gone, and for what a link leads to outside of where was asked. */
function nodeFacts(node: MemoryNode | null, { project, sessionId }: IndexFilter, recalled: number): NodeFacts | null {
  if (node === null) return null;
  if (project !== undefined && node.project !== project) return null;
  if (sessionId !== undefined && node.session_id !== sessionId) return null;
  const { links, origin } = node;
  return { links, origin, project: node.project, atMs: Date.parse(node.valid_from), recalled };
}

function isWanted(
  node: MemoryNode | null,
  { past, skips }: { readonly past: boolean; readonly skips: (node: MemoryNode) => boolean },
): boolean {
  return node !== null && isSearched(node) && (!isPast(node) || past) && !skips(node) && !isQuarantined(node);
}

/** Without a project, only the session itself is searched. */
export function getScope(scope: Config['recall']['scope'], sessionId: string, project: string): IndexFilter {
  if (scope === 'all') return {};
  return scope === 'session' || project === '' ? { sessionId } : { project };
}
