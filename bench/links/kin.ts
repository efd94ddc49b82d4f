import { buildNodes } from '../../memory/compaction/build-nodes.ts';
import { createSimilarNodeFinder, type NodeSimilarity } from '../../memory/compaction/linker.ts';
import type { Embedder } from '../../memory/embeddings/embedder.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import { getRows } from '../../memory/storage/index-writer.ts';
import { createInMemorySearchIndex } from '../../test/helpers/in-memory-search-index.ts';
import type { Corpus } from './corpora.ts';

export interface Pair extends NodeSimilarity {
  readonly from: number;
  readonly to: number;
}

/** A corpus as nodes of an index of its own, and whom each of them finds near it. */
export interface Kin {
  readonly name: string;
  readonly nodes: readonly MemoryNode[];
  readonly topics: readonly string[];
  readonly pairs: readonly Pair[];
}

/** Asked as saving a node asks. */
export async function kinIn(corpus: Corpus, embedder: Embedder): Promise<Kin> {
  const index = createInMemorySearchIndex(embedder);
  const nodes: MemoryNode[] = [];
  for (const [at, { draft, turns }] of corpus.nodes.entries()) {
    const [node] = buildNodes([draft], {
      sessionId: 's',
      project: 'p',
      reason: 'forced',
      kind: 'turn',
      author: { by: 'rules' },
      status: 'draft',
      nowMs: nodes.length * 1_000,
      shown: turns,
      newId: () => `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`,
    });
    if (node === undefined) throw new Error('a draft gave no node');
    nodes.push(node);
    await index.put(getRows(node, { turns: new Map(turns.map((turn) => [turn.turnId, turn])), positions: new Map() }));
  }
  const places = new Map(nodes.map(({ node_id }, at) => [node_id, at]));
  const getKin = createSimilarNodeFinder(index, (id) => nodes[places.get(id) as number]);
  const pairs: Pair[] = [];
  for (const [from, node] of nodes.entries()) {
    for (const { node: other, similarity } of await getKin(node)) {
      pairs.push({ from, to: places.get(other.node_id) as number, ...similarity });
    }
  }
  return { name: corpus.name, nodes, topics: corpus.nodes.map(({ topic }) => topic), pairs };
}
