import type { Embedder } from '../../embeddings/embedder.ts';
import type { NodeIndex } from '../node-index.ts';

export interface Succession {
  readonly serving: NodeIndex;
  /** Of `serving`; closed with it. */
  readonly embedder: Embedder;
  readonly next: NodeIndex;
  /** Makes it last that `next` serves; what it gives is done once the old one is closed. */
  readonly taken: () => Promise<() => Promise<void>>;
}

/** One index that serves and one that is filled; both are told what changes, until the other takes over. */
export function createSucceededIndex({ serving, embedder, next, taken }: Succession): NodeIndex {
  let current = serving;
  let pending: NodeIndex | null = next;
  const reading = new Set<Promise<unknown>>();
  const both = (): NodeIndex[] => (pending === null ? [current] : [current, pending]);

  function read<T>(work: Promise<T>): Promise<T> {
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    reading.add(settled);
    void settled.then(() => reading.delete(settled));
    return work;
  }

  async function onBoth(change: (index: NodeIndex) => Promise<void>): Promise<void> {
    await Promise.all(both().map(change));
  }

  async function takeOver(): Promise<void> {
    if (pending === null) return;
    const cleanUp = await taken();
    const old = current;
    current = pending;
    pending = null;
    // A search that began on the old one still reads its files.
    await Promise.all(reading);
    await old.close();
    await embedder.close();
    await cleanUp();
  }

  return {
    successor: () =>
      pending === null
        ? null
        : { entries: pending.entries, upsert: pending.upsert, removeNodes: pending.removeNodes, takeOver },
    embedderId: () => current.embedderId(),
    upsert: (rows) => onBoth((index) => index.upsert(rows)),
    removeNodes: (nodeIds) => onBoth((index) => index.removeNodes(nodeIds)),
    search: (query, options) => read(current.search(query, options)),
    turnWords: (turnIds) => read(current.turnWords(turnIds)),
    termWeights: (tokens, filter) => current.termWeights(tokens, filter),
    get lexicon() {
      return current.lexicon;
    },
    nodeIds: () => current.nodeIds(),
    entries: () => current.entries(),
    purge: () => onBoth((index) => index.purge()),
    count: () => current.count(),
    clear: () => onBoth((index) => index.clear()),
    async close() {
      await onBoth((index) => index.close());
      await embedder.close();
    },
  };
}
