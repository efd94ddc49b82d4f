import type { Clock } from '../../common/async.ts';
import { createSerialQueue } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import type { NodeLimit } from '../compaction/compactor.ts';
import type { Tracker } from '../ingest/task-queue.ts';
import { isPointer } from '../model/replace-drafts.ts';
import type { LanguageModel } from '../models/language-model.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import type { Store } from '../storage/node-store.ts';
import { CONSOLIDATION, mergedNodes } from './merge-nodes.ts';
import { chooseFolds, type Fold, foldedText, MOST } from './merge-old-nodes.ts';

type Parts = {
  readonly clock: Clock;
  readonly log: Log;
  readonly model: LanguageModel | null;
  readonly catalogue: Pick<NodeRegistry, 'every' | 'sizeOf'>;
  readonly store: Pick<Store, 'exclusive'>;
  readonly tracker: Tracker;
};

/** Merges the oldest nodes of a session that has too many; every turn keeps a node and every id keeps resolving. */
export function createNodeLimit({ clock, log, model, catalogue, store, tracker }: Parts): NodeLimit {
  const serial = createSerialQueue((error) => log.warn('could not merge old memories of a long session', { error }));

  function foldsOf(sessionId: string): readonly Fold[] {
    if (catalogue.sizeOf(sessionId) <= MOST) return [];
    const own = catalogue.every().filter((node) => node.session_id === sessionId && !isPointer(node));
    return chooseFolds(own, { sparesDrafts: model !== null });
  }

  async function fold(sessionId: string): Promise<void> {
    if (foldsOf(sessionId).length === 0) return;
    await store.exclusive(async (held) => {
      await held.refresh();
      const at = new Date(clock.now()).toISOString();
      const merged = foldsOf(sessionId).flatMap((each) => {
        const [older, newer] = each;
        return mergedNodes(older, [newer], { text: foldedText(each), writtenBy: CONSOLIDATION, at });
      });
      await held.save(merged);
    });
  }

  return {
    enforce(sessionId) {
      void tracker.run('indexer', () => serial(() => fold(sessionId)));
    },
  };
}
