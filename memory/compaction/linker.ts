import { createSerialQueue } from '../../common/async.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { isBundled, isFromText, type MemoryNode } from '../model/node.ts';
import type { IndexFilter, Lane, SearchIndex } from '../search/search-index.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { contentTokens } from '../text/keywords.ts';
import { isPairedScript } from '../text/tokenizer.ts';
import { isPast } from '../text/validity.ts';

export type LinkerParts = Pick<ServiceParts, 'index' | 'catalogue' | 'indexer' | 'store' | 'taskQueue' | 'log'>;

export interface SimilarNode {
  readonly node: MemoryNode;
  readonly similarity: NodeSimilarity;
}

const ASKED_CHARS = 2_000;
const CANDIDATES = 40;
const LANES: readonly Lane[] = ['fts', 'summary'];

/** Links similar nodes of a project, in the background. */
export type Linker = ReturnType<typeof createLinker>;

export function createLinker({ index, catalogue, indexer, store, taskQueue, log }: LinkerParts) {
  const serial = createSerialQueue((error) =>
    log.warn('could not link memories; recall works without links', { error }),
  );

  /** Batched: each run reads edited files and writes nodes. */
  const waiting = new Set<string>();

  async function work(): Promise<void> {
    await indexer.settled();
    const ids = [...waiting];
    waiting.clear();
    const chosen = new Map<string, readonly string[]>();
    const getKin = createSimilarNodeFinder(index, (id) => catalogue.get(id));
    for (const id of ids) {
      const node = catalogue.get(id);
      if (node === undefined || !isLinked(node)) continue;
      const fit = linkThresholds(index.embedderId(), isPairedScript(node.summary));
      chosen.set(id, strongest(await getKin(node), fit));
    }
    if (![...chosen.values()].some((links) => links.length > 0)) return;
    await store.exclusive(async (store) => {
      await store.refresh();
      await store.save(withLinks(chosen, catalogue));
    });
  }

  function strongest(kin: readonly SimilarNode[], fit: LinkThresholds): string[] {
    const candidates = kin
      .filter((each) => isLinkable(each.node))
      .map((each) => ({ nodeId: each.node.node_id, strength: linkStrength(each.similarity, fit) }));
    return chooseLinks(candidates, fit.least);
  }

  return {
    /** Runs after the index is written; keeps the user's links. */
    link(nodes: readonly MemoryNode[]): void {
      const ids = nodes.filter(isLinked).map((node) => node.node_id);
      const isScheduled = waiting.size > 0;
      for (const id of ids) waiting.add(id);
      if (waiting.size > 0 && !isScheduled) void taskQueue.run('indexer', () => serial(work));
    },
  };
}

/** Caches tokens between calls, since nodes of one session have the same neighbors: create one finder per batch. */
export function createSimilarNodeFinder(
  index: SearchIndex,
  getNode: (id: string) => MemoryNode | undefined,
): (node: MemoryNode) => Promise<SimilarNode[]> {
  const met = new Map<MemoryNode, readonly string[]>();

  function getWords(node: MemoryNode): readonly string[] {
    const words = met.get(node) ?? contentTokens(node.summary);
    met.set(node, words);
    return words;
  }

  return async (node) => {
    const filter: IndexFilter = { project: node.project };
    const hits = await index.search(node.summary.slice(0, ASKED_CHARS), filter, CANDIDATES, LANES);
    const cosines = new Map(hits.map(({ nodeId, lanes }) => [nodeId, lanes.summary?.score ?? 0]));
    const others = [...cosines.keys()].filter((id) => id !== node.node_id).flatMap((id) => getNode(id) ?? []);
    const own = new Set(getWords(node));
    const weights = await index.termWeights([...new Set([...own, ...others.flatMap(getWords)])], filter);
    return others.map((other) => ({
      node: other,
      similarity: {
        cosine: cosines.get(other.node_id) ?? 0,
        words: sharedWords(own, getWords(other), weights),
        tags: sharedTags(node.topic_tags, other.topic_tags),
      },
    }));
  };
}

/** Links both ways; the back link only if there is room, and never from a document. */
function withLinks(chosen: ReadonlyMap<string, readonly string[]>, catalogue: NodeRegistry): MemoryNode[] {
  const links = new Map<string, readonly string[]>();
  for (const [from, wanted] of chosen) {
    for (const to of wanted) {
      const [one, other] = [catalogue.get(from), catalogue.get(to)];
      // Either may have been removed or replaced in the meantime.
      if (one === undefined || other === undefined || !isLinked(one) || !isLinkable(other)) continue;
      add(from, to);
      if (isLinked(other)) add(to, from);
    }
  }
  function add(from: string, to: string): void {
    const fromLinks = links.get(from) ?? catalogue.get(from)?.links ?? [];
    if (!fromLinks.includes(to) && fromLinks.length < MOST_LINKS) links.set(from, [...fromLinks, to]);
  }
  return [...links].flatMap(([id, own]) => {
    const node = catalogue.get(id);
    return node === undefined ? [] : [{ ...node, links: [...own] }];
  });
}

/** Tool nodes are reached through their turn; superseded nodes are not linked. */
const isLinkable = (node: MemoryNode): boolean => node.project !== '' && !isBundled(node) && !isPast(node);

const isLinked = (node: MemoryNode): boolean => isLinkable(node) && !isFromText(node);

export interface NodeSimilarity {
  /** Cosine of one summary encoded as a query and the other summary. */
  readonly cosine: number;
  /** Share of common words, weighted by idf. */
  readonly words: number;
  /** Share of common content tags. */
  readonly tags: number;
}

/** Fitted per embedder; see `bench/results/links.md`. */
interface LinkThresholds {
  readonly similarity: number;
  readonly words: number;
  readonly tags: number;
  /** Minimum strength of a link. */
  readonly least: number;
}

/** Per node, including the user's links. */
export const MOST_LINKS = 10;

/** Without fitted weights only words and tags count. */
const UNFITTED: LinkThresholds = { similarity: 0, words: 1, tags: 0.1, least: 0.3 };
const FITS: Readonly<Record<string, LinkThresholds>> = {
  'static-minilm-256-v2': { similarity: 1, words: 1, tags: 0.1, least: 0.8 },
  'hash-ngram-256-v1': { similarity: 1, words: 1, tags: 0.1, least: 0.875 },
};

/** @param isScript  written in Hangul, kana or Han, whose vectors have another scale */
export function linkThresholds(embedderId: string, isScript: boolean): LinkThresholds {
  return isScript ? UNFITTED : (FITS[embedderId] ?? UNFITTED);
}

export function linkStrength(similarity: NodeSimilarity, fit: LinkThresholds): number {
  return fit.similarity * similarity.cosine + fit.words * similarity.words + fit.tags * similarity.tags;
}

/** Strongest first, ties by id. */
export function chooseLinks(
  candidates: readonly { readonly nodeId: string; readonly strength: number }[],
  least: number,
): string[] {
  return candidates
    .filter(({ strength }) => strength >= least)
    .toSorted((one, other) => other.strength - one.strength || (one.nodeId < other.nodeId ? -1 : 1))
    .slice(0, MOST_LINKS)
    .map(({ nodeId }) => nodeId);
}

/** Weighted Jaccard index of distinct content tokens; tokens without a weight are ignored. */
export function sharedWords(
  one: ReadonlySet<string>,
  other: readonly string[],
  weights: ReadonlyMap<string, number>,
): number {
  let both = 0;
  let all = 0;
  for (const token of one) all += weights.get(token) ?? 0;
  for (const token of other) {
    const weight = weights.get(token) ?? 0;
    if (one.has(token)) both += weight;
    else all += weight;
  }
  return all === 0 ? 0 : both / all;
}

/** Jaccard index without system tags (`FLAG:…`). */
export function sharedTags(one: readonly string[], other: readonly string[]): number {
  const [mine, theirs] = [new Set(one.filter(isContentTag)), new Set(other.filter(isContentTag))];
  const both = [...mine].filter((tag) => theirs.has(tag)).length;
  return both === 0 ? 0 : both / (mine.size + theirs.size - both);
}

const isContentTag = (tag: string): boolean => !/^[A-Z]+:/.test(tag);
