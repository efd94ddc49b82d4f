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
  readonly bag: Bag;
  readonly triggerBag: Bag;
  readonly embedding: Embedding;
}

type Score = (entry: Entry) => number;

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
  const [inText, inTrigger] = [createPostings(({ bag }) => bag), createPostings(({ triggerBag }) => triggerBag)];
  function replace(removed: ReadonlySet<string>, added: readonly Entry[]): void {
    for (const postings of [inText, inTrigger]) {
      for (const entry of entries) if (removed.has(entry.row.nodeId)) postings.remove(entry);
      for (const entry of added) postings.add(entry);
    }
    entries = [...entries.filter(({ row }) => !removed.has(row.nodeId)), ...added];
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
      const fresh = rows.map((row, at) => {
        const tokens = tokenize(row.text).join(' ');
        const bags = { bag: getBag(tokens), triggerBag: getBag(tokenize(row.trigger).join(' ')) };
        return { row, tokens, ...bags, embedding: embeddings[at] as Embedding };
      });
      replace(replaced, fresh);
    },
    async remove(nodeIds) {
      replace(new Set(nodeIds), []);
    },
    async search(query, filter, limit, lanes) {
      const shown = entries.filter(({ row }) => fits(row, filter));
      const turns = shown.filter(({ row }) => row.kind === 'turn');
      const facts = shown.filter(({ row }) => row.kind === 'fact');
      const nodes = shown.filter(({ row }) => row.kind === 'node');
      const { ofPieces } = await frequencies(filter);
      const asked = await embedder.embedQuery(query, { pieceWeights: ofPieces, mean: () => mean(entries.length) });
      const tokens = uniqueTokens(query);
      const near = (entry: Entry): number => dot(asked.vector, entry.embedding[asked.comparedWith]);
      const matches = ({ of, holding }: Postings, terms: readonly string[], rows: readonly Entry[]): Score => {
        const kind = rows[0]?.row.kind;
        const isShown = ({ row }: Entry): boolean => row.kind === kind && fits(row, filter);
        return bm25(rows, terms, of, (term) => [...holding(term)].filter(isShown));
      };
      const matchesWindow = (): Score => {
        const key = JSON.stringify(filter);
        const getWindow = windows.get(key) ?? windowIn(turns, getBag);
        windows.set(key, getWindow);
        return bm25(turns, tokens, getWindow, (term) => turns.filter((entry) => getWindow(entry).counts.has(term)));
      };
      const scorers: Readonly<Record<Lane, () => readonly [Entry[], Score]>> = {
        raw: () => [turns, matches(inText, tokens, turns)],
        window: () => [turns, matchesWindow()],
        entity: () => [turns, matches(inText, entityTokens(query), turns)],
        meaning: () => [turns, near],
        fact: () => [facts, matches(inText, tokens, facts)],
        factMeaning: () => [facts, near],
        fts: () => [nodes, matches(inText, tokens, nodes)],
        trigger: () => [nodes, matches(inTrigger, tokens, nodes)],
        summary: () => [nodes, near],
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
      replace(new Set(entries.map(({ row }) => row.nodeId)), []);
    },
    close: async () => {},
  };
}

type Scored = readonly (readonly [Entry, number])[];

function best(rows: readonly Entry[], getScore: Score, limit: number): Scored {
  const scored: (readonly [Entry, number])[] = [];
  for (const entry of rows) {
    const score = getScore(entry);
    if (score > 0) scored.push([entry, score]);
  }
  return scored.sort(([, one], [, other]) => other - one).slice(0, limit);
}

function bm25(
  rows: readonly Entry[],
  terms: readonly string[],
  getBag: (entry: Entry) => Bag,
  holding: (term: string) => readonly Entry[],
): Score {
  const meanLength = rows.reduce((sum, entry) => sum + getBag(entry).length, 0) / Math.max(1, rows.length);
  const scores = new Map<Entry, number>();
  for (const term of new Set(terms)) {
    const held = holding(term);
    const weight = Math.log(1 + (rows.length - held.length + 0.5) / (held.length + 0.5));
    for (const entry of held) {
      const { counts, length } = getBag(entry);
      const count = counts.get(term) ?? 0;
      const share = (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / meanLength) || 1);
      scores.set(entry, (scores.get(entry) ?? 0) + share);
    }
  }
  return (entry) => scores.get(entry) ?? 0;
}

type Postings = ReturnType<typeof createPostings>;

/** Which entries hold a term. */
function createPostings(of: (entry: Entry) => Bag) {
  const entries = new Map<string, Set<Entry>>();
  return {
    of,
    holding: (term: string): Iterable<Entry> => entries.get(term) ?? [],
    add(entry: Entry): void {
      for (const term of of(entry).counts.keys()) entries.set(term, (entries.get(term) ?? new Set()).add(entry));
    },
    remove(entry: Entry): void {
      for (const term of of(entry).counts.keys()) entries.get(term)?.delete(entry);
    },
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
  const views = turns.map(({ row, tokens }) => ({ ...row, place: row.place ?? -1, tokens }));
  const windows = getWindows(views);
  const bags = new Map(
    turns.map((entry, at) => [entry, getBag(windows.get(views[at] as (typeof views)[number]) ?? '')]),
  );
  return (entry) => bags.get(entry) ?? getBag('');
}

function getHits(found: readonly (readonly [Lane, Scored])[]): Hit[] {
  type Found = Hit & { readonly lanes: Partial<Record<Lane, LaneScore>> };
  const hits = new Map<string, Found>();
  const ofTurns = new Map<string, Found[]>();
  const getHit = ({ nodeId, atMs, kind, place, text }: IndexRow, turnId: string | null) => {
    const key = `${nodeId} ${turnId ?? ''}`;
    const known = hits.get(key);
    if (known !== undefined) return known;
    const tells = kind === 'turn' && tellsTime(text);
    const hit: Found = { nodeId, turnId, atMs, place, tellsTime: tells, lanes: {} };
    hits.set(key, hit);
    if (turnId !== null) ofTurns.set(turnId, [...(ofTurns.get(turnId) ?? []), hit]);
    return hit;
  };
  const ofFacts = ([lane]: readonly [Lane, Scored]): number => Number(lane === 'fact' || lane === 'factMeaning');
  for (const [lane, scored] of found.toSorted((one, other) => ofFacts(one) - ofFacts(other))) {
    for (const [at, [{ row }, score]] of scored.entries()) {
      const place = { rank: at + 1, score };
      if (row.kind !== 'fact') getHit(row, row.kind === 'turn' ? row.turnId : null).lanes[lane] = place;
      for (const turnId of row.sources) {
        for (const hit of ofTurns.get(turnId) ?? [getHit(row, turnId)]) hit.lanes[lane] ??= place;
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
