import { finishesWithin } from '../common/async.ts';
import type { Problem } from '../common/errors.ts';
import type { Archives, RollbackReport } from './archive.ts';
import type { DeferredUpgrades } from './compaction/model-upgrades.ts';
import type { ConsolidationReport } from './consolidation/change-set.ts';
import type { ConsolidationRequest, ConsolidationStatus, Consolidator } from './consolidation/consolidation.ts';
import type { ImportProgress } from './import.ts';
import { writtenBy } from './library.ts';
import { isDraft } from './model/node.ts';
import type { MemoryParts } from './parts.ts';
import { contentTags } from './text/tags.ts';

export interface MemoryStatus {
  readonly queue: { readonly sensor: number; readonly compacter: number; readonly indexer: number };
  readonly llm: DeferredUpgrades & {
    readonly backend: string;
    readonly calls_today: number;
    readonly tokens_today: number;
    /** At API prices, as Claude Code computes it. */
    readonly cost_usd_today: number;
    /** Why the last model call failed, '' when it did not. */
    readonly last_error: string;
  };
  readonly nodes: number;
  readonly problems: readonly Problem[];
  /** Set while the index is rebuilt or filled. */
  readonly reindex: IndexProgress | null;
  readonly importing: ImportProgress | null;
  /** Null before the first dream. */
  readonly dream: ConsolidationStatus | null;
}

export interface MemoryStats {
  readonly nodes: number;
  readonly pinned: number;
  /** Nodes written by rules that the model has not rewritten yet. */
  readonly drafts: number;
  /** The former name of `drafts`. */
  readonly stand_ins: number;
  readonly facts: number;
  readonly sessions: number;
  readonly projects: number;
  readonly turns: number;
  readonly oldest: string | null;
  readonly newest: string | null;
  readonly by_importance: Readonly<Record<string, number>>;
  readonly by_recall_mode: Readonly<Record<string, number>>;
  readonly by_origin: Readonly<Record<string, number>>;
  readonly by_writer: Readonly<Record<string, number>>;
  /** Most used first, at most 20. */
  readonly tags: readonly { readonly tag: string; readonly nodes: number }[];
  readonly index: { readonly nodes: number; readonly rows: number };
  readonly snapshots: number;
  readonly problems: number;
}

export interface Maintenance {
  /** Compacts every tail and waits until sensor, compacter and indexer are idle; false on timeout. */
  flush(timeoutMs: number): Promise<boolean>;
  /** Merges repetitions, groups related nodes, normalizes tags and links; see `dream` in docs/DOMAIN.md. */
  dream(request: ConsolidationRequest): Promise<ConsolidationReport>;
  /** Newest first. */
  listSnapshots: Archives['listSnapshots'];
  /** @throws CometError `not_found` or `ambiguous_id` */
  rollback(snapshot: string): Promise<RollbackReport>;
  /** Rebuilds the whole index from the files; returns how many nodes it holds. */
  reindex(): Promise<number>;
  stats(): Promise<MemoryStats>;
  status(): MemoryStatus;
  close(): Promise<void>;
}

interface Parts extends MemoryParts {
  readonly archives: Archives;
  readonly background: BackgroundTasks;
  readonly consolidator: Consolidator;
  readonly importing: () => ImportProgress | null;
  /** Aborted when memory closes. */
  readonly closing: AbortSignal;
  readonly close: () => Promise<void>;
}

const TAGS = 20;

export function createMaintenance(parts: Parts): Maintenance {
  const { config, index, model, archives, background, turnRegistry, catalogue, consolidator, pipeline } = parts;
  const { store, taskQueue, modelUpgrades, importing, closing, snapshots } = parts;

  async function settleAll(): Promise<void> {
    await background.caughtUp();
    await pipeline.compactTails();
    modelUpgrades.retryDeferred();
    await taskQueue.idle();
  }

  return {
    flush: (timeoutMs) => finishesWithin(settleAll(), timeoutMs),
    dream: (request) => background.started.then(() => consolidator.run(request, closing)),
    listSnapshots: archives.listSnapshots,
    rollback: archives.rollback,
    reindex: background.reindex,
    async stats() {
      const nodes = catalogue.all();
      const sessions = [...turnRegistry.sessions().values()];
      const tags = Object.entries(countBy(nodes.flatMap((node) => contentTags(node.topic_tags))));
      const drafts = nodes.filter(isDraft).length;
      return {
        nodes: nodes.length,
        pinned: nodes.filter((node) => node.pinned_from !== undefined).length,
        drafts,
        stand_ins: drafts,
        facts: nodes.reduce((sum, node) => sum + node.facts.length, 0),
        sessions: sessions.length,
        projects: new Set(nodes.map((node) => node.project)).size,
        turns: sessions.reduce((sum, session) => sum + session.turns, 0),
        oldest: nodes.at(-1)?.created_at ?? null,
        newest: nodes[0]?.created_at ?? null,
        by_importance: countBy(nodes.map((node) => node.importance)),
        by_recall_mode: countBy(nodes.map((node) => node.recall_mode)),
        by_origin: countBy(nodes.map((node) => node.origin)),
        by_writer: countBy(nodes.map(writtenBy)),
        tags: tags
          .sort(([a, left], [b, right]) => right - left || a.localeCompare(b))
          .slice(0, TAGS)
          .map(([tag, count]) => ({ tag, nodes: count })),
        index: await index.size(),
        snapshots: (await snapshots.list()).length,
        problems: store.problems().length,
      };
    },
    status() {
      const health = model?.health?.();
      return {
        queue: {
          sensor: taskQueue.count('sensor'),
          compacter: taskQueue.count('compacter'),
          indexer: taskQueue.count('indexer'),
        },
        llm: {
          backend: config.llm,
          calls_today: health?.callsToday ?? 0,
          tokens_today: health?.tokensToday ?? 0,
          cost_usd_today: Number((health?.costUsdToday ?? 0).toFixed(6)),
          ...modelUpgrades.deferred(),
          last_error: health?.lastError ?? '',
        },
        nodes: catalogue.size(),
        problems: [...background.problems(), ...store.problems()],
        reindex: background.progress(),
        importing: importing(),
        dream: consolidator.status(),
      };
    },
    close: parts.close,
  };
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = Object.create(null) as Record<string, number>;
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Nodes written so far, of those to be written. */
export interface IndexProgress {
  readonly done: number;
  readonly total: number;
}

export type BackgroundTasks = ReturnType<typeof startBackgroundTasks>;

/** Reads history, fills the index and follows edits on disk, from the start on. */
export function startBackgroundTasks(parts: MemoryParts & { readonly isClosing: () => boolean }) {
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
    /** Settles when history is read and missing rows are indexed; never rejects. */
    started,
    /** Settles when the index of a new embedder is filled too, or that was left to the next start. */
    succeeded,
    /** Reads changes that others made on disk. */
    follow,
    /** Settles when history and edits made before the start are read. */
    async caughtUp(): Promise<void> {
      await started;
      await watching;
      await follow();
    },
    async stopWatching(): Promise<void> {
      await watching;
      await watch?.close();
    },
    /** Rebuilds the index; returns the number of nodes. */
    async reindex(): Promise<number> {
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
    problems: (): readonly Problem[] => problems,
    progress: (): IndexProgress | null => reindexing ?? succeeding,
  };
}
