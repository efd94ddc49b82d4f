import type { Embedder } from '../../embeddings/embedder.ts';
import type { SearchIndex } from '../search-index.ts';

export interface Succession {
  readonly serving: SearchIndex;
  /** Of `serving`; closed with it. */
  readonly embedder: Embedder;
  readonly next: SearchIndex;
  /** Makes it last that `next` serves; what it gives is done once the old one is closed. */
  readonly taken: () => Promise<() => Promise<void>>;
}

/** One index that serves and one that is filled; both are told what changes, until the other takes over. */
export function createSucceededIndex({ serving, embedder, next, taken }: Succession): SearchIndex {
  let current = serving;
  let pending: SearchIndex | null = next;
  const reading = new Set<Promise<unknown>>();
  const both = (): SearchIndex[] => (pending === null ? [current] : [current, pending]);

  function read<T>(work: Promise<T>): Promise<T> {
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    reading.add(settled);
    void settled.then(() => reading.delete(settled));
    return work;
  }

  async function onBoth(change: (index: SearchIndex) => Promise<void>): Promise<void> {
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
      pending === null ? null : { entries: pending.entries, put: pending.put, remove: pending.remove, takeOver },
    embedderId: () => current.embedderId(),
    put: (rows) => onBoth((index) => index.put(rows)),
    remove: (nodeIds) => onBoth((index) => index.remove(nodeIds)),
    search: (...query) => read(current.search(...query)),
    turnTexts: (...ids) => read(current.turnTexts(...ids)),
    termWeights: (...terms) => read(current.termWeights(...terms)),
    entries: () => current.entries(),
    size: () => current.size(),
    optimize: () => onBoth((index) => index.optimize()),
    clear: () => current.clear(),
    async close() {
      await onBoth((index) => index.close());
      await embedder.close();
    },
  };
}
