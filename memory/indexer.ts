import type { Log } from '../common/log.ts';
import type { Catalogue } from './catalogue.ts';
import { rowsOf } from './core/assemble.ts';
import type { MemoryNode } from './core/node.ts';
import type { NodeIndex, TurnText } from './ports.ts';
import { createSerial, type Tracker } from './tracker.ts';

/** The index's one writer. Nobody waits for it, and what it cannot write the next start writes. */
export interface Indexer {
  upsert(nodes: readonly MemoryNode[], texts: readonly TurnText[]): void;
  remove(ids: readonly string[]): Promise<void>;
  /** Brings the index in step with the catalogue: the disk wins. */
  reconcile(textsOf: (sessionId: string) => Promise<readonly TurnText[]>, isStopping: () => boolean): Promise<void>;
}

export interface IndexerDeps {
  readonly index: NodeIndex;
  readonly catalogue: Catalogue;
  readonly tracker: Tracker;
  readonly log: Log;
}

export function createIndexer({ index, catalogue, tracker, log }: IndexerDeps): Indexer {
  const serial = createSerial((error) => log.error('index not written; the next start rebuilds it', { error }));

  const write = (nodes: readonly MemoryNode[], texts: readonly TurnText[]): Promise<void> =>
    tracker.run('indexer', () =>
      serial(async () => {
        const byEnd = new Map(texts.map((turn) => [turn.end, turn]));
        // A node may have been removed or replaced while it waited here.
        const live = nodes.filter((node) => catalogue.get(node.node_id) === node);
        const rows = live.flatMap((node) => rowsOf(node, byEnd));
        if (rows.length > 0) await index.upsert(rows);
      }),
    );

  const remove = (ids: readonly string[]): Promise<void> =>
    tracker.run('indexer', () => serial(() => index.removeNodes(ids)));

  return {
    upsert: (nodes, texts) => void write(nodes, texts),
    remove,
    async reconcile(textsOf, isStopping) {
      const known = await index.nodeIds();
      const stale = [...known].filter((id) => catalogue.current(id)?.node_id !== id);
      if (stale.length > 0) await remove(stale);
      const missing = catalogue.all().filter((node) => !known.has(node.node_id));
      for (const sessionId of new Set(missing.map((node) => node.session_id))) {
        if (isStopping()) return;
        const nodes = missing.filter((node) => node.session_id === sessionId);
        await write(nodes, await textsOf(sessionId));
      }
    },
  };
}
