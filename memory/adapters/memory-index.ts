import { CometError } from '../../common/errors.ts';
import { createMeanVector } from '../core/mean-vector.ts';
import { createPieceStats } from '../core/piece-stats.ts';
import { queryTerms } from '../core/query-terms.ts';
import { createTermStats } from '../core/term-stats.ts';
import { tokenize } from '../core/tokens.ts';
import type { Embedder, Embedding, IndexFilter, IndexRow, LaneHit, NodeIndex } from '../ports.ts';

const K1 = 1.2;
const B = 0.75;

interface Entry {
  readonly row: IndexRow;
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
  readonly summary: Embedding;
  readonly trigger: Embedding | null;
}

/** An index that lasts as long as the process: exact, without files, for tests and small histories. */
export function createMemoryIndex(embedder: Embedder): NodeIndex {
  const entries = new Map<string, Entry>();
  const stats = createTermStats();
  const pieces = createPieceStats();
  const mean = createMeanVector(async (most) =>
    [...entries.values()].slice(0, most).map((entry) => entry.summary.vector),
  );

  function drop(rowId: string): void {
    const entry = entries.get(rowId);
    if (entry === undefined) return;
    entries.delete(rowId);
    stats.remove(rowId, [...entry.counts.keys()]);
    if (entry.row.turn !== '') pieces.remove(entry.row.project, entry.summary.pieces);
  }

  function fullText(terms: readonly string[], pool: readonly Entry[], limit: number): LaneHit[] {
    const weights = stats.weights(terms, {});
    const meanLength = [...entries.values()].reduce((sum, { length }) => sum + length, 0) / Math.max(1, entries.size);
    const score = ({ counts, length }: Entry): number =>
      terms.reduce((sum, term) => {
        const count = counts.get(term) ?? 0;
        const damped = (count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / meanLength));
        return count === 0 ? sum : sum + (weights.get(term) ?? 0) * damped;
      }, 0);
    return best(pool, score, limit);
  }

  return {
    async upsert(rows) {
      const summaries = await embedder.embed(rows.map(({ summary }) => summary));
      const triggers = await embedder.embed(rows.map(({ trigger }) => trigger));
      for (const [at, row] of rows.entries()) {
        const [summary, trigger] = [summaries[at], triggers[at]];
        if (summary?.vector.length !== embedder.dimensions || trigger?.vector.length !== embedder.dimensions) {
          throw new CometError('index_failed', `the embedder must give vectors of ${embedder.dimensions} numbers`);
        }
        const tokens = tokenize(row.text);
        const counts = new Map<string, number>();
        for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
        drop(row.row_id);
        const entry = { row, counts, length: tokens.length, summary, trigger: row.trigger === '' ? null : trigger };
        entries.set(row.row_id, entry);
        stats.add(row, tokens);
        if (row.turn !== '') pieces.add(row.project, summary.pieces);
      }
    },
    async removeNodes(nodeIds) {
      for (const rowId of nodeIds.flatMap((id) => stats.rowsOf(id))) drop(rowId);
    },
    async search(query, { filter, limit }) {
      const terms = queryTerms(query, (tokens) => stats.weights(tokens, filter));
      const { vector, comparedWith } = await embedder.embedQuery(query, {
        pieceWeights: (ids) => pieces.idf(ids, filter),
        mean: () => mean(stats.count()),
      });
      const all = [...entries.values()].filter(({ row }) => fits(row, filter));
      const nodes = all.filter(({ row }) => row.kind === 'node');
      const turns = all.filter(({ row }) => row.kind === 'turn');
      return {
        fts: fullText(terms, nodes, limit),
        raw: fullText(terms, turns, limit),
        summary: best(all, (entry) => dot(vector, entry.summary[comparedWith]), limit),
        trigger: best(
          nodes,
          (entry) => dot(vector, (comparedWith === 'vector' && entry.trigger?.vector) || null),
          limit,
        ),
      };
    },
    termWeights: (tokens, filter) => stats.weights(tokens, filter),
    nodeIds: async () => stats.nodeIds(),
    entries: async () => stats.entries(),
    purge: async () => {},
    count: async () => stats.count(),
    async clear() {
      entries.clear();
      stats.clear();
      pieces.clear();
    },
    close: async () => {},
  };
}

function best(pool: readonly Entry[], score: (entry: Entry) => number, limit: number): LaneHit[] {
  return pool
    .map((entry) => ({ row: entry.row, score: score(entry) }))
    .filter((hit) => hit.score > 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, limit);
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
