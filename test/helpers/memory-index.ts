import { CometError } from '../../common/errors.ts';
import type { Embedder, Embedding } from '../../memory/embeddings/embedder.ts';
import { createMeanVector } from '../../memory/embeddings/mean-vector.ts';
import { loadStaticTable, STATIC } from '../../memory/embeddings/static-encoder.ts';
import { createWordRarity } from '../../memory/embeddings/word-rarity.ts';
import { wordVector } from '../../memory/embeddings/word-vectors.ts';
import { type CountedRow, createRowCounts } from '../../memory/search/in-memory-index.ts';
import { HEAD_TOKENS } from '../../memory/search/inverted-index.ts';
import { NODE_LIMIT } from '../../memory/search/lancedb/lance-index.ts';
import { NO_HITS } from '../../memory/search/lancedb/lane-breakers.ts';
import type { Hits, IndexFilter, IndexRow, Lane, NodeIndex } from '../../memory/search/node-index.ts';
import { createThesaurus, type WeightedTerm } from '../../memory/search/query-expansion.ts';
import { searchTerms } from '../../memory/search/search-terms.ts';
import { holdsTime } from '../../memory/search/temporal-query.ts';
import { tokenize } from '../../memory/text/tokenizer.ts';

const K1 = 1.2;
const B = 0.75;

interface Bag {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

interface Entry {
  readonly row: IndexRow;
  readonly slot: number;
  readonly counted: CountedRow;
  readonly own: Bag;
  readonly head: Bag;
  readonly summary: Embedding;
  readonly trigger: Embedding | null;
}

/** An index that lasts as long as the process: exact, without files, for tests and small histories. */
export function createMemoryIndex(embedder: Embedder): NodeIndex {
  const entries = new Map<string, Entry>();
  const counts = createRowCounts(createThesaurus(STATIC.dimensions, (word) => wordVector(loadStaticTable(), word)));
  const { book, stats, pieces, thesaurus } = counts;
  const mean = createMeanVector(async (most) =>
    [...entries.values()].slice(0, most).map((entry) => entry.summary.vector),
  );

  function drop(rowId: string): void {
    const entry = entries.get(rowId);
    if (entry === undefined) return;
    entries.delete(rowId);
    counts.remove(entry.counted);
  }

  function enter(row: IndexRow, summary: Embedding, trigger: Embedding): void {
    const tokens = tokenize(row.text);
    drop(row.row_id);
    const { row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources } = row;
    const shown = { row_id, kind, node_id, session_id, project, turn, origin, created_at_ms, before, sources };
    const found = { ...shown, timed: row.kind === 'turn' && holdsTime(row.text) };
    const inBytes = new Uint8Array(summary.pieces.buffer, summary.pieces.byteOffset, summary.pieces.byteLength);
    const counted = { ...found, digest: row.digest, tokens: tokens.join(' '), pieces: inBytes };
    counts.put(counted);
    entries.set(row.row_id, {
      row,
      slot: book.slotOf(row.row_id) as number,
      counted,
      own: bagOf(tokens),
      head: bagOf(tokens.slice(0, HEAD_TOKENS)),
      summary,
      trigger: row.trigger === '' ? null : trigger,
    });
  }

  return {
    embedderId: () => embedder.id,
    async upsert(rows) {
      const summaries = await embedder.embed(rows.map(({ summary }) => summary));
      const triggers = await embedder.embed(rows.map(({ trigger }) => trigger));
      for (const [at, row] of rows.entries()) {
        const [summary, trigger] = [summaries[at], triggers[at]];
        if (summary?.vector.length !== embedder.dimensions || trigger?.vector.length !== embedder.dimensions) {
          throw new CometError('index_failed', `the embedder must give vectors of ${embedder.dimensions} numbers`);
        }
        enter(row, summary, trigger);
      }
    },
    async removeNodes(nodeIds) {
      for (const rowId of nodeIds.flatMap((id) => book.rowsOf(id))) drop(rowId);
    },
    async search(query, { filter, limit, without = new Set() }) {
      const terms = searchTerms(query, {
        weigh: (tokens) => stats.weights(tokens, filter),
        known: (tokens) => stats.knownWeights(tokens, filter),
        thesaurus,
        without,
      });
      const { vector, comparedWith } = await embedder.embedQuery(query, {
        pieceWeights: (ids) => pieces.idf(ids, filter),
        mean: () => mean(book.count()),
      });
      const ofKind = (kind: IndexRow['kind']): Pool => {
        const all = [...entries.values()].filter(({ row }) => row.kind === kind);
        return { all, shown: all.filter(({ row }) => fits(row, filter)) };
      };
      const [turns, nodes, facts] = [ofKind('turn'), ofKind('node'), ofKind('fact')];
      const few = Math.min(limit, NODE_LIMIT);
      const own = ({ own: bag }: Entry): Bag => bag;
      const likeness = ({ summary }: Entry): number => dot(vector, summary[comparedWith]);
      const lanes: Record<Lane, Hits> = {
        raw: best(turns.shown, fullText(terms.own, turns, own), limit),
        meaning: best(turns.shown, likeness, limit),
        expanded: best(turns.shown, fullText(terms.expanded, turns, own), limit),
        window: best(turns.shown, fullText(terms.own, turns, windowsAmong(turns.all)), limit),
        entity: best(turns.shown, fullText(terms.entities, turns, own), limit),
        fts: best(nodes.shown, fullText(terms.own, nodes, own), few),
        fact: best(facts.shown, fullText(terms.own, facts, own), limit),
        summary: best(nodes.shown, likeness, few),
        factMeaning: best(facts.shown, likeness, limit),
        trigger: best(
          nodes.shown,
          ({ trigger }) => dot(vector, (comparedWith === 'vector' && trigger?.vector) || null),
          few,
        ),
      };
      for (const lane of without) lanes[lane] = NO_HITS;
      return { lanes, rows: book };
    },
    async turnWords(turnIds) {
      const asked = new Set(turnIds);
      const turns = [...entries.values()].filter(({ row }) => row.kind === 'turn' && asked.has(row.turn));
      return new Map(turns.map(({ row }) => [row.turn, { text: row.text, origin: row.origin }]));
    },
    termWeights: (tokens, filter) => stats.weights(tokens, filter),
    lexicon: createWordRarity(loadStaticTable),
    nodeIds: async () => book.nodeIds(),
    entries: async () => book.entries(),
    purge: async () => {},
    count: async () => book.count(),
    async clear() {
      entries.clear();
      counts.clear();
    },
    close: async () => {},
  };
}

interface Pool {
  /** What statistics are made of. */
  readonly all: readonly Entry[];
  readonly shown: readonly Entry[];
}

/** BM25 of a row over its pool. */
function fullText(
  terms: readonly WeightedTerm[],
  { all }: Pool,
  bagOfEntry: (entry: Entry) => Bag,
): (entry: Entry) => number {
  const bags = all.map(bagOfEntry);
  const meanLength = bags.reduce((sum, { length }) => sum + length, 0) / Math.max(1, bags.length);
  const weighted = terms.map(([term, weight]) => {
    const df = bags.filter(({ counts }) => counts.has(term)).length;
    return [term, weight * Math.log(1 + (bags.length - df + 0.5) / (df + 0.5))] as const;
  });
  return (entry) => {
    const { counts, length } = bagOfEntry(entry);
    return weighted.reduce((sum, [term, weight]) => {
      const count = counts.get(term) ?? 0;
      const damped = (count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / meanLength));
      return count === 0 ? sum : sum + weight * damped;
    }, 0);
  };
}

/** A turn's head and those of the turns before it. */
function windowsAmong(turns: readonly Entry[]): (entry: Entry) => Bag {
  const heads = new Map(turns.toReversed().map(({ row, head }) => [row.turn, head]));
  return ({ row, head }) => joined([head, ...row.before.flatMap((turnId) => heads.get(turnId) ?? [])]);
}

function joined(bags: readonly Bag[]): Bag {
  const counts = new Map<string, number>();
  for (const bag of bags) for (const [token, count] of bag.counts) counts.set(token, (counts.get(token) ?? 0) + count);
  return { counts, length: bags.reduce((sum, bag) => sum + bag.length, 0) };
}

function bagOf(tokens: readonly string[]): Bag {
  const counts = new Map<string, number>();
  for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
  return { counts, length: tokens.length };
}

function best(pool: readonly Entry[], score: (entry: Entry) => number, limit: number): Hits {
  const hits = pool
    .map((entry) => ({ slot: entry.slot, score: score(entry) }))
    .filter((hit) => hit.score > 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, limit);
  return { slots: hits.map(({ slot }) => slot), scores: hits.map(({ score }) => score) };
}

function dot(left: Float32Array, right: Float32Array | null): number {
  if (right === null) return 0;
  return left.reduce((sum, value, at) => sum + value * (right[at] ?? 0), 0);
}

function fits(row: IndexRow, { project, sessionId }: IndexFilter): boolean {
  return (
    (project === undefined || row.project === project) && (sessionId === undefined || row.session_id === sessionId)
  );
}
