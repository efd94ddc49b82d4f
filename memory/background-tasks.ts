import type { Problem } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import type { Pipeline } from './compaction/pipeline.ts';
import type { TaskQueue } from './ingest/task-queue.ts';
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

export interface BackgroundTasks {
  /** Settles when history is read and missing rows are indexed; never rejects. */
  readonly started: Promise<void>;
  /** Settles when the index of a new embedder is filled too, or that was left to the next start. */
  readonly succeeded: Promise<void>;
  /** Settles when history and edits made before the start are read. */
  caughtUp(): Promise<void>;
  stopWatching(): Promise<void>;
  /** Reads changes that others made on disk. */
  follow(files?: readonly string[]): Promise<void>;
  /** Rebuilds the index; returns the number of nodes. */
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
  readonly taskQueue: TaskQueue;
  readonly isClosing: () => boolean;
}

/** Reads history, fills the index and follows edits on disk, from the start on. */
export function startBackgroundTasks(parts: Parts): BackgroundTasks {
  const { catalogue, indexer, isClosing, journal, log, pipeline, store, taskQueue, watch } = parts;
  const problems: Problem[] = [];
  let reindexing: IndexProgress | null = null;
  let succeeding: IndexProgress | null = null;
  const started = taskQueue.run('ingest', start);
  const succeeded = started.then(succeed);
  const watching = taskQueue.run('ingest', startWatching);

  /** Reads sessions, newest first, then indexes missing nodes. */
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
      problems.push({ file: 'journal', message: `could not be read to its turnId: ${(error as Error).message}` });
      log.error('history could not be read to its end', { error });
    } finally {
      reindexing = null;
    }
  }

  /** Runs in the background: with a slow embedder it takes hours. */
  async function succeed(): Promise<void> {
    try {
      await indexer.succeed(isClosing, (done, total) => {
        succeeding = { done, total };
      });
    } catch (error) {
      log.error('filling the index of the new embedder failed; the next start continues', { error });
    } finally {
      succeeding = null;
    }
  }

  async function startWatching(): Promise<void> {
    await watch?.start((files) => void taskQueue.run('ingest', () => follow(files)));
    // An edit made before the watch began causes no event.
    if (watch !== null) await follow();
  }

  async function follow(files?: readonly string[]): Promise<void> {
    try {
      await store.refresh(files);
    } catch (error) {
      log.error('an edit on disk could not be read', { files, error });
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
