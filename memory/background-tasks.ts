import type { Problem } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import type { Pipeline } from './compaction/pipeline.ts';
import type { Tracker } from './ingest/task-queue.ts';
import type { Indexer } from './storage/indexer.ts';
import type { NodeWatch } from './storage/node-files.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import type { Store } from './storage/node-store.ts';
import type { Journal } from './storage/turn-log.ts';

/** Nodes written so far, of those to be written. */
export interface IndexProgress {
  readonly done: number;
  readonly total: number;
}

export interface Upkeep {
  /** Settles when history is read and the index holds what it lacked; never rejects. */
  readonly started: Promise<void>;
  /** Settles when the change of an embedder is done too, or was left to the next start. */
  readonly succeeded: Promise<void>;
  /** Settles when history is read and what was edited before the start is known. */
  caughtUp(): Promise<void>;
  stopWatching(): Promise<void>;
  /** What others changed on disk. */
  follow(files?: readonly string[]): Promise<void>;
  /** How many nodes the index was made of anew. */
  reindex(): Promise<number>;
  problems(): readonly Problem[];
  progress(): IndexProgress | null;
}

interface Parts {
  readonly journal: Journal;
  readonly log: Log;
  readonly watch: NodeWatch | null;
  readonly catalogue: NodeRegistry;
  readonly indexer: Indexer;
  readonly pipeline: Pipeline;
  readonly store: Store;
  readonly tracker: Tracker;
  readonly isClosing: () => boolean;
}

/** What memory does by itself from its start on: reads its history, fills its index, follows what is edited on disk. */
export function startUpkeep(parts: Parts): Upkeep {
  const { catalogue, indexer, isClosing, journal, log, pipeline, store, tracker, watch } = parts;
  const problems: Problem[] = [];
  let reindexing: IndexProgress | null = null;
  let succeeding: IndexProgress | null = null;
  const started = tracker.run('ingest', start);
  const succeeded = started.then(succeed);
  const watching = tracker.run('ingest', startWatching);

  /** Sessions newest first; then whatever the index lacks. */
  async function start(): Promise<void> {
    try {
      for (const { sessionId } of await journal.sessions()) {
        if (isClosing()) return;
        await pipeline.hydrate(sessionId);
      }
      await indexer.reconcile(isClosing, (done, total) => {
        reindexing = { done, total };
      });
    } catch (error) {
      problems.push({ file: 'journal', message: `could not be read to its end: ${(error as Error).message}` });
      log.error('memory started without all of its history', { error });
    } finally {
      reindexing = null;
    }
  }

  /** Nobody waits for it: with a slow embedder it takes hours. */
  async function succeed(): Promise<void> {
    try {
      await indexer.succeed(isClosing, (done, total) => {
        succeeding = { done, total };
      });
    } catch (error) {
      log.error('the index for the new embedder could not be filled; the next start goes on with it', { error });
    } finally {
      succeeding = null;
    }
  }

  async function startWatching(): Promise<void> {
    await watch?.start((files) => void tracker.run('ingest', () => follow(files)));
    // What was edited before the first file was watched.
    if (watch !== null) await follow();
  }

  async function follow(files?: readonly string[]): Promise<void> {
    try {
      await store.refresh(files);
    } catch (error) {
      log.error('a hand edit could not be read', { files, error });
    }
  }

  return {
    started,
    succeeded,
    follow,
    async caughtUp() {
      await started;
      await watching;
      await follow();
    },
    async stopWatching() {
      await watching;
      await watch?.close();
    },
    async reindex() {
      await started;
      await follow();
      try {
        await indexer.rebuild((done, total) => {
          reindexing = { done, total };
        });
      } finally {
        reindexing = null;
      }
      return catalogue.size();
    },
    problems: () => problems,
    progress: () => reindexing ?? succeeding,
  };
}
