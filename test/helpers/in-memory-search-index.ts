import { CometError } from '../../common/errors.ts';
import type { Embedder, Embedding } from '../../memory/embeddings/embedder.ts';
import { createMeanVector } from '../../memory/embeddings/vectors.ts';
import { createTermCounts } from '../../memory/search/lancedb/term-counts.ts';
import { tellsTime } from '../../memory/search/ranking.ts';
import type { Hit, IndexFilter, IndexRow, Lane, LaneScore, SearchIndex } from '../../memory/search/search-index.ts';
import { getWindows } from '../../memory/search/turn-context.ts';
import { entityTokens, tokenize, uniqueTokens } from '../../memory/text/tokenizer.ts';

const K1 = 1.2;
const B = 0.75;
const NODE_LIMIT = 60;

interface Entry {
  readonly row: IndexRow;
  readonly tokens: string;
  readonly trigger: string;
  readonly embedding: Embedding;
}

/** Exact and without files: the other implementation that the contract of `SearchIndex` is tested with. */
export function createInMemorySearchIndex(embedder: Embedder): SearchIndex {
  let entries: readonly Entry[] = [];
  let counts = createTermCounts();
  const bags = new Map<string, Bag>();
  const getBag = (text: string): Bag => {
    const bag = bags.get(text) ?? countTokens(text);
    bags.set(text, bag);
    return bag;
  };
  /** Bags of the windows of the turns that a filter shows, until rows change. */
  const windows = new Map<string, (entry: Entry) => Bag>();
  function replace(next: readonly Entry[]): void {
    entries = next;
    counts = createTermCounts();
    windows.clear();
  }
  const mean = createMeanVector(async (most) => entries.slice(0, most).map(({ embedding }) => embedding.vector));

  async function frequencies(filter: IndexFilter) {
    return counts.in(filter, async function* () {
      for (const { row, tokens, embedding } of entries) {
        const { kind, project, sessionId } = row;
        if (kind === 'fact' || !fits(row, filter)) continue;
        yield { kind, project, sessionId, tokens, pieces: kind === 'turn' ? embedding.pieces : new Uint16Array(0) };
      }
    });
  }

  return {
    embedderId: () => embedder.id,
    async put(rows) {
      const embeddings = await embedder.embed(rows.map(({ embedded }) => embedded));
      if (embeddings.some(({ vector }) => vector.length !== embedder.dimensions)) {
        throw new CometError('index_failed', `the embedder must give vectors of ${embedder.dimensions} numbers`);
      }
      const replaced = new Set(rows.map(({ nodeId }) => nodeId));
      const fresh = rows.map((row, at) => ({
        row,
        tokens: tokenize(row.text).join(' '),
        trigger: tokenize(row.trigger).join(' '),
        embedding: embeddings[at] as Embedding,
      }));
      replace([...entries.filter(({ row }) => !replaced.has(row.nodeId)), ...fresh]);
    },
    async remove(nodeIds) {
      const removed = new Set(nodeIds);
      replace(entries.filter(({ row }) => !removed.has(row.nodeId)));
    },
    async search(query, filter, limit, lanes) {
      const shown = entries.filter(({ row }) => fits(row, filter));
      const ofKind = (kind: IndexRow['kind']): Entry[] => shown.filter(({ row }) => row.kind === kind);
      const { ofPieces } = await frequencies(filter);
      const asked = await embedder.embedQuery(query, { pieceWeights: ofPieces, mean: () => mean(entries.length) });
      const tokens = uniqueTokens(query);
      const near = (entry: Entry): number => dot(asked.vector, entry.embedding[asked.comparedWith]);
      const bagsOfWindows = (turns: Entry[]) => {
        const key = JSON.stringify(filter);
        const getWindow = windows.get(key) ?? windowIn(turns, getBag);
        windows.set(key, getWindow);
        return getWindow;
      };
      const scorers: Readonly<Record<Lane, () => readonly [Entry[], (entry: Entry) => number]>> = {
        raw: () => [ofKind('turn'), bm25(ofKind('turn'), tokens, (entry) => getBag(entry.tokens))],
        window: () => [ofKind('turn'), bm25(ofKind('turn'), tokens, bagsOfWindows(ofKind('turn')))],
        entity: () => [ofKind('turn'), bm25(ofKind('turn'), entityTokens(query), (entry) => getBag(entry.tokens))],
        meaning: () => [ofKind('turn'), near],
        fact: () => [ofKind('fact'), bm25(ofKind('fact'), tokens, (entry) => getBag(entry.tokens))],
        factMeaning: () => [ofKind('fact'), near],
        fts: () => [ofKind('node'), bm25(ofKind('node'), tokens, (entry) => getBag(entry.tokens))],
        trigger: () => [ofKind('node'), bm25(ofKind('node'), tokens, (entry) => getBag(entry.trigger))],
        summary: () => [ofKind('node'), near],
      };
      const found = lanes.map((lane) => {
        const [rows, getScore] = scorers[lane]();
        const most = rows[0]?.row.kind === 'node' ? Math.min(limit, NODE_LIMIT) : limit;
        return [lane, best(rows, getScore, most)] as const;
      });
      return getHits(found);
    },
    async turnTexts(_, turnIds) {
      const turns = entries.filter(({ row }) => row.kind === 'turn' && turnIds.includes(row.turnId));
      return new Map(turns.map(({ row: { turnId, text, origin } }) => [turnId, { text, origin }]));
    },
    termWeights: async (tokens, filter) => (await frequencies(filter)).ofTerms(tokens),
    async entries() {
      const nodes = new Map<string, { digest: string; sessionId: string; turns: string[] }>();
      for (const { row } of entries) {
        const node = nodes.get(row.nodeId) ?? { digest: '', sessionId: row.sessionId, turns: [] };
        nodes.set(row.nodeId, node);
        if (row.kind === 'node') node.digest = row.digest;
        if (row.kind === 'turn') node.turns.push(row.turnId);
      }
      return nodes;
    },
    size: async () => ({ nodes: new Set(entries.map(({ row }) => row.nodeId)).size, rows: entries.length }),
    optimize: async () => {},
    rest: async () => {},
    async clear() {
      replace([]);
    },
    close: async () => {},
  };
}

type Scored = readonly (readonly [Entry, number])[];

function best(rows: readonly Entry[], getScore: (entry: Entry) => number, limit: number): Scored {
  return rows
    .map((entry) => [entry, getScore(entry)] as const)
    .filter(([, score]) => score > 0)
    .sort(([, one], [, other]) => other - one)
    .slice(0, limit);
}

function bm25(rows: readonly Entry[], terms: readonly string[], getBag: (entry: Entry) => Bag) {
  const bags = rows.map(getBag);
  const meanLength = bags.reduce((sum, { length }) => sum + length, 0) / Math.max(1, bags.length);
  const weights = [...new Set(terms)].map((term) => {
    let df = 0;
    for (const { counts } of bags) if (counts.has(term)) df += 1;
    return [term, Math.log(1 + (bags.length - df + 0.5) / (df + 0.5))] as const;
  });
  return (entry: Entry): number => {
    const { counts, length } = getBag(entry);
    let sum = 0;
    for (const [term, weight] of weights) {
      const count = counts.get(term);
      if (count === undefined) continue;
      sum += (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / meanLength) || 1);
    }
    return sum;
  };
}

interface Bag {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

function countTokens(text: string): Bag {
  const tokens = text === '' ? [] : text.split(' ');
  const counts = new Map<string, number>();
  for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
  return { counts, length: tokens.length };
}

function windowIn(turns: readonly Entry[], getBag: (text: string) => Bag): (entry: Entry) => Bag {
  const windows = getWindows(turns.map(({ row, tokens }) => ({ ...row, place: row.place ?? -1, tokens })));
  const byRow = new Map([...windows].map(([{ nodeId, turnId }, window]) => [`${nodeId} ${turnId}`, getBag(window)]));
  return ({ row }) => byRow.get(`${row.nodeId} ${row.turnId}`) ?? getBag('');
}

function getHits(found: readonly (readonly [Lane, Scored])[]): Hit[] {
  const hits = new Map<string, Hit & { readonly lanes: Partial<Record<Lane, LaneScore>> }>();
  const getHit = ({ nodeId, atMs, kind, place, text }: IndexRow, turnId: string | null) => {
    const key = `${nodeId} ${turnId ?? ''}`;
    const tells = kind === 'turn' && tellsTime(text);
    const hit = hits.get(key) ?? { nodeId, turnId, atMs, place, tellsTime: tells, lanes: {} };
    hits.set(key, hit);
    return hit;
  };
  const ofFacts = ([lane]: readonly [Lane, Scored]): number => Number(lane === 'fact' || lane === 'factMeaning');
  for (const [lane, scored] of found.toSorted((one, other) => ofFacts(one) - ofFacts(other))) {
    for (const [at, [{ row }, score]] of scored.entries()) {
      const place = { rank: at + 1, score };
      if (row.kind !== 'fact') getHit(row, row.kind === 'turn' ? row.turnId : null).lanes[lane] = place;
      for (const turnId of row.sources) {
        const known = [...hits.values()].filter((hit) => hit.turnId === turnId);
        for (const hit of known.length > 0 ? known : [getHit(row, turnId)]) hit.lanes[lane] ??= place;
      }
    }
  }
  return [...hits.values()];
}

function dot(left: Float32Array, right: Float32Array | null): number {
  if (right === null) return 0;
  let sum = 0;
  for (let at = 0; at < left.length; at += 1) sum += (left[at] as number) * (right[at] ?? 0);
  return sum;
}

function fits(row: IndexRow, { project, sessionId }: IndexFilter): boolean {
  return (project === undefined || row.project === project) && (sessionId === undefined || row.sessionId === sessionId);
}
