import { createSerialQueue } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import { isBundled } from '../consolidation/merge-nodes.ts';
import { DOCUMENT } from '../ingest/chunk-document.ts';
import type { TaskQueue } from '../ingest/task-queue.ts';
import type { MemoryNode } from '../model/node.ts';
import { isPast } from '../model/validity.ts';
import type { IndexFilter, Lane, SearchIndex } from '../search/search-index.ts';
import type { Indexer } from '../storage/indexer.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import type { Store } from '../storage/node-store.ts';
import { isPairedScript } from '../text/cjk.ts';
import { contentTokens } from '../text/keywords.ts';

/** Links nodes to those of their project that are about the same; nobody waits for it. */
export interface Linker {
  /** After their rows are written; links made by hand stay. */
  link(nodes: readonly MemoryNode[]): void;
}

export interface LinkerParts {
  readonly index: SearchIndex;
  readonly catalogue: NodeRegistry;
  readonly indexer: Pick<Indexer, 'settled'>;
  readonly store: Pick<Store, 'exclusive'>;
  readonly taskQueue: TaskQueue;
  readonly log: Log;
}

export interface SimilarNode {
  readonly node: MemoryNode;
  readonly similarity: NodeSimilarity;
}

const ASKED_CHARS = 2_000;
const CANDIDATES = 40;
const LANES: readonly Lane[] = ['fts', 'summary'];

export function createLinker({ index, catalogue, indexer, store, taskQueue, log }: LinkerParts): Linker {
  const serial = createSerialQueue((error) =>
    log.warn('memories were not linked; they are found all the same', { error }),
  );

  /** Whatever came meanwhile is linked at one go: each go reads what was edited and writes files. */
  const waiting = new Set<string>();

  async function work(): Promise<void> {
    await indexer.settled();
    const ids = [...waiting];
    waiting.clear();
    const chosen = new Map<string, readonly string[]>();
    const kinOf = createSimilarNodeFinder(index, (id) => catalogue.get(id));
    for (const id of ids) {
      const node = catalogue.get(id);
      if (node === undefined || !isLinked(node)) continue;
      const fit = linkThresholds(index.embedderId(), isPairedScript(node.summary));
      chosen.set(id, strongest(await kinOf(node), fit));
    }
    if (![...chosen.values()].some((links) => links.length > 0)) return;
    await store.exclusive(async (held) => {
      await held.refresh();
      await held.save(withLinks(chosen, catalogue));
    });
  }

  function strongest(kin: readonly SimilarNode[], fit: LinkThresholds): string[] {
    const candidates = kin
      .filter((each) => isLinkable(each.node))
      .map((each) => ({ nodeId: each.node.node_id, strength: linkStrength(each.similarity, fit) }));
    return chooseLinks(candidates, fit.least);
  }

  return {
    link(nodes) {
      const ids = nodes.filter(isLinked).map((node) => node.node_id);
      const isScheduled = waiting.size > 0;
      for (const id of ids) waiting.add(id);
      if (waiting.size > 0 && !isScheduled) void taskQueue.run('indexer', () => serial(work));
    },
  };
}

/**
 * Nodes of its project that the index finds near it, and how near. Made for some nodes at a time: it keeps the words of
 * those that it met, as nodes of one session meet the same ones.
 */
export function createSimilarNodeFinder(
  index: SearchIndex,
  nodeOf: (id: string) => MemoryNode | undefined,
): (node: MemoryNode) => Promise<SimilarNode[]> {
  const met = new Map<MemoryNode, readonly string[]>();

  function wordsOf(node: MemoryNode): readonly string[] {
    const words = met.get(node) ?? contentTokens(node.summary);
    met.set(node, words);
    return words;
  }

  return async (node) => {
    const asked = node.summary.slice(0, ASKED_CHARS);
    const filter: IndexFilter = { project: node.project };
    const hits = await index.search(asked, filter, CANDIDATES, LANES);
    const cosines = new Map(hits.map(({ nodeId, lanes }) => [nodeId, lanes.summary?.score ?? 0]));
    const others = [...cosines.keys()].filter((id) => id !== node.node_id).flatMap((id) => nodeOf(id) ?? []);
    const own = new Set(wordsOf(node));
    const weights = await index.termWeights([...new Set([...own, ...others.flatMap(wordsOf)])], filter);
    return others.map((other) => ({
      node: other,
      similarity: {
        cosine: cosines.get(other.node_id) ?? 0,
        words: sharedWords(own, wordsOf(other), weights),
        tags: sharedTags(node.topic_tags, other.topic_tags),
      },
    }));
  };
}

/** Both ways; the other way only where there is room, and never out of a document, which says what its file says. */
function withLinks(chosen: ReadonlyMap<string, readonly string[]>, catalogue: NodeRegistry): MemoryNode[] {
  const links = new Map<string, readonly string[]>();
  const linksOf = (id: string): readonly string[] => links.get(id) ?? catalogue.get(id)?.links ?? [];
  for (const [from, wanted] of chosen) {
    for (const to of wanted) {
      const [one, other] = [catalogue.get(from), catalogue.get(to)];
      // Either may have been removed or replaced since it was found.
      if (one === undefined || other === undefined || !isLinked(one) || !isLinkable(other)) continue;
      add(from, to);
      if (isLinked(other)) add(to, from);
    }
  }
  function add(from: string, to: string): void {
    const known = linksOf(from);
    if (!known.includes(to) && known.length < MOST_LINKS) links.set(from, [...known, to]);
  }
  return [...links].flatMap(([id, own]) => {
    const node = catalogue.get(id);
    return node === undefined ? [] : [{ ...node, links: [...own] }];
  });
}

/** Parts of a turn are reached through it; what was replaced leads nowhere. */
function isLinkable(node: MemoryNode): boolean {
  return node.project !== '' && !isBundled(node) && !isPast(node);
}

function isLinked(node: MemoryNode): boolean {
  return isLinkable(node) && node.written_by !== DOCUMENT;
}

/** What speaks for a link between two nodes of a project. */
export interface NodeSimilarity {
  /** Cosine of one's summary, asked as a question, and the other's. */
  readonly cosine: number;
  /** Share of their words that both have, each at its idf. */
  readonly words: number;
  /** Share of their content tags that both have. */
  readonly tags: number;
}

/** Fitted per embedder; see `bench/results/links.md`. */
interface LinkThresholds {
  readonly similarity: number;
  readonly words: number;
  readonly tags: number;
  /** Strength from which two nodes are linked. */
  readonly least: number;
}

interface Linkable {
  readonly nodeId: string;
  readonly strength: number;
}

/** Links of one node, made ones and made by hand. */
export const MOST_LINKS = 10;

/** One for what nobody fitted: words and tags alone. */
const UNFITTED: LinkThresholds = { similarity: 0, words: 1, tags: 0.1, least: 0.3 };
const FITS: Readonly<Record<string, LinkThresholds>> = {
  'static-minilm-128-v1': { similarity: 1, words: 1, tags: 0.1, least: 1.1 },
  'hash-ngram-256-v1': { similarity: 1, words: 1, tags: 0.1, least: 0.875 },
};

/** @param isScript  written in Hangul, kana or Han, which vectors of another scale are made of */
export function linkThresholds(embedderId: string, isScript: boolean): LinkThresholds {
  return isScript ? UNFITTED : (FITS[embedderId] ?? UNFITTED);
}

export function linkStrength(similarity: NodeSimilarity, fit: LinkThresholds): number {
  return fit.similarity * similarity.cosine + fit.words * similarity.words + fit.tags * similarity.tags;
}

/** The strongest that are strong enough, at most ten; ties by id. */
export function chooseLinks(candidates: readonly Linkable[], least: number, most = MOST_LINKS): string[] {
  return candidates
    .filter(({ strength }) => strength >= least)
    .toSorted((one, other) => other.strength - one.strength || (one.nodeId < other.nodeId ? -1 : 1))
    .slice(0, Math.max(0, most))
    .map(({ nodeId }) => nodeId);
}

/** Of distinct content tokens: 0 to 1, the same both ways; words without a weight count for nothing. */
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

/** Jaccard; tags that only say what kind of memory it is (`FLAG:…`) do not count. */
export function sharedTags(one: readonly string[], other: readonly string[]): number {
  const [mine, theirs] = [new Set(one.filter(isContentTag)), new Set(other.filter(isContentTag))];
  const both = [...mine].filter((tag) => theirs.has(tag)).length;
  return both === 0 ? 0 : both / (mine.size + theirs.size - both);
}

function isContentTag(tag: string): boolean {
  return !/^[A-Z]+:/.test(tag);
}
