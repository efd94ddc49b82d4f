import { setTimeout as after } from 'node:timers/promises';
import { finishesWithin } from '../common/async.ts';
import { getReason, type Problem } from '../common/errors.ts';
import { tally } from '../common/map.ts';
import type { Archives } from './archive.ts';
import type { ConsolidationRequest, Consolidator } from './consolidation/consolidation.ts';
import type { Schedule } from './consolidation/schedule.ts';
import type { ImportProgress } from './import.ts';
import { writtenBy } from './library.ts';
import { isBundled, isDraft, type MemoryNode } from './model/node.ts';
import type { MemoryParts } from './parts.ts';
import { contentTags } from './text/tags.ts';

export type Maintenance = ReturnType<typeof createMaintenance>;
export type MemoryStatus = ReturnType<Maintenance['status']>;
export type MemoryStats = Awaited<ReturnType<Maintenance['stats']>>;

interface Parts extends MemoryParts {
  readonly archives: Archives;
  readonly background: BackgroundTasks;
  readonly consolidator: Consolidator;
  readonly schedule: Pick<Schedule, 'problems' | 'caughtUp'>;
  readonly importing: () => ImportProgress | null;
  readonly closing: AbortSignal;
  readonly close: () => Promise<void>;
}

const TAGS = 20;

export function createMaintenance(parts: Parts) {
  const { config, index, model, archives, background, turnRegistry, catalogue, consolidator, pipeline } = parts;
  const { store, taskQueue, topicDetector, modelUpgrades, importing, closing, snapshots, schedule, facts } = parts;

  async function settleAll(): Promise<void> {
    await background.caughtUp();
    await pipeline.compactTails();
    modelUpgrades.release();
    modelUpgrades.retryDeferred();
    await taskQueue.idle();
  }

  return {
    /** Resolves when what was captured is stored, summarized and searchable as far as is due; compacts no tail. */
    settled: (): Promise<void> => taskQueue.idle(),
    /** Compacts every tail and waits until sensor, compacter and indexer are idle; false on timeout. */
    flush: (timeoutMs: number): Promise<boolean> => finishesWithin(settleAll(), timeoutMs),
    /** Merges repetitions, groups related nodes, normalizes tags and links; see `dream` in docs/DOMAIN.md. */
    dream: (request: ConsolidationRequest) => background.started.then(() => consolidator.run(request, closing)),
    /** File of the newest brief, once. */
    takeBrief: () => schedule.caughtUp().then(consolidator.takeBrief),
    lintPages: () => background.started.then(() => parts.topicPages.lint((id) => catalogue.current(id) !== undefined)),
    refreshIndex: () => refreshIndex(parts),
    /** Frees what only makes searches faster, until the next one. */
    rest: () => index.rest(),
    /** `revision` grows with each change of a node. */
    ...{ listSnapshots: archives.listSnapshots, rollback: archives.rollback, revision: catalogue.revision },
    /** Rebuilds the whole index from the files; returns how many nodes it holds. */
    reindex: background.reindex,
    async stats() {
      const nodes = catalogue.all();
      const sessions = [...turnRegistry.sessions().values()];
      const drafts = nodes.filter(isDraft).length;
      return {
        nodes: nodes.length,
        pinned: nodes.filter((node) => node.pinned_from !== undefined).length,
        /** Nodes written by rules that the model has not rewritten yet. */
        drafts,
        /** The former name of `drafts`. */
        stand_ins: drafts,
        facts: nodes.reduce((sum, node) => sum + node.facts.length, 0),
        facts_dropped: facts.dropped(),
        sessions: sessions.length,
        projects: new Set(nodes.map((node) => node.project)).size,
        turns: sessions.reduce((sum, session) => sum + session.turns, 0),
        oldest: nodes.at(-1)?.created_at ?? null,
        newest: nodes[0]?.created_at ?? null,
        by_importance: countBy(nodes.map((node) => node.importance)),
        by_recall_mode: countBy(nodes.map((node) => node.recall_mode)),
        by_origin: countBy(nodes.map((node) => node.origin)),
        by_writer: countBy(nodes.map(writtenBy)),
        tags: mostUsedTags(nodes),
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
        sensor: topicDetector.counts(),
        llm: {
          backend: config.llm as string,
          calls_today: health?.callsToday ?? 0,
          tokens_today: health?.tokensToday ?? 0,
          running: health?.running ?? 0,
          /** At API prices, as Claude Code computes it. */
          cost_usd_today: Number((health?.costUsdToday ?? 0).toFixed(6)),
          ...modelUpgrades.deferred(),
          /** Why the last model call failed, '' when it did not. */
          last_error: health?.lastError ?? '',
        },
        nodes: catalogue.all().filter((node) => !isBundled(node)).length,
        problems: [
          ...skippedTurns(parts),
          ...background.problems(),
          ...[...schedule.problems(), ...consolidator.problems()],
          ...[...store.problems(), ...facts.problems()],
        ] as readonly Problem[],
        /** What edits of node files by others did since the start. */
        notes: store.notes(),
        /** Set while the index is rebuilt or filled. */
        reindex: background.progress(),
        importing: importing(),
        /** Null before the first dream. */
        dream: consolidator.status(),
      };
    },
    finish: modelUpgrades.finish,
    close: parts.close,
  };
}

/** Makes the index list pages and tasks as they are now. @throws a disk error */
function refreshIndex({ store, catalogue, topicPages }: MemoryParts): Promise<void> {
  return store.exclusive(async () => {
    const unchanged = { changed: new Map(), placed: [] };
    const rewrites = await topicPages.rewrites(await topicPages.shelf(), unchanged, catalogue.every());
    for (const rewrite of rewrites) await topicPages.files.replace(rewrite);
  });
}

function skippedTurns({ crashMarks, removal }: Pick<MemoryParts, 'crashMarks' | 'removal'>): Problem[] {
  const turns = crashMarks.skipped().filter(({ turnId }) => !removal.isForgotten(turnId));
  return turns.map(({ turnId, sessionId, atMs }) => {
    const label = `turn ${turnId.slice(0, 12)} of session ${sessionId}, from ${new Date(atMs).toISOString().slice(0, 10)}`;
    return { file: 'turn', message: `${label}, ended the engine twice and is skipped; the journal keeps it` };
  });
}

/** The first one most often. */
function mostUsedTags(nodes: readonly MemoryNode[]) {
  return Object.entries(countBy(nodes.flatMap((node) => contentTags(node.topic_tags))))
    .sort(([a, left], [b, right]) => right - left || a.localeCompare(b))
    .slice(0, TAGS)
    .map(([tag, count]) => ({ tag, nodes: count }));
}

const countBy = (names: readonly string[]): Readonly<Record<string, number>> => Object.fromEntries(tally(names));

/** Nodes written so far, of those to be written. */
export interface IndexProgress {
  readonly done: number;
  readonly total: number;
}

const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 600_000;

export type BackgroundTasks = ReturnType<typeof startBackgroundTasks>;

/** Reads history, fills the index and follows edits on disk, from the start on. */
export function startBackgroundTasks(parts: MemoryParts & { readonly isClosing: () => boolean }) {
  const { catalogue, indexer, isClosing, journal, log, pipeline, store, taskQueue, watch } = parts;
  const problems: Problem[] = [];
  const getFirst = () => (indexer.hasSuccessor() ? { done: 0, total: catalogue.size() } : null);
  let filling: IndexProgress | null = getFirst();
  const onProgress = (done: number, total: number): void => {
    filling = { done, total };
  };
  const started = taskQueue.run('ingest', start);
  const succeeded = started.then(succeed);
  const watching = taskQueue.run('ingest', startWatching);
  const rebuilds = createRebuilds({ ...parts, ready: () => started.then(() => follow()) });

  /** Reads sessions, newest first, then indexes missing nodes. */
  async function start(): Promise<void> {
    try {
      for (const sessionId of await journal.sessions()) {
        if (isClosing()) return;
        await pipeline.hydrate(sessionId);
      }
      await indexer.reconcile(isClosing, onProgress);
    } catch (error) {
      problems.push({ file: 'journal', message: `could not be read to its end: ${(error as Error).message}` });
      log.error('history could not be read to its end', { error });
    } finally {
      filling = getFirst();
    }
  }

  /** Runs in the background: with a slow embedder it takes hours. */
  async function succeed(): Promise<void> {
    try {
      await indexer.succeed(isClosing, onProgress);
    } catch (error) {
      const message = `the index of the new embedder is not complete, so the old one serves until a restart: ${getReason(error)}`;
      problems.push({ file: 'embedder', message });
    } finally {
      filling = null;
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
    reindex: rebuilds.reindex,
    repair: rebuilds.repair,
    problems: (): readonly Problem[] => [...rebuilds.problems(), ...problems],
    progress: (): IndexProgress | null => rebuilds.progress() ?? filling,
  };
}

type RebuildParts = Pick<MemoryParts, 'catalogue' | 'indexer' | 'log'> & {
  readonly isClosing: () => boolean;
  /** Resolves when everything is known that the index is made of. */
  readonly ready: () => Promise<void>;
};

function createRebuilds({ catalogue, indexer, log, isClosing, ready }: RebuildParts) {
  let progress: IndexProgress | null = null;
  let rebuilding: Promise<number> | null = null;
  let repairing: Promise<void> = Promise.resolve();
  /** Why the index cannot be read, '' while it can. */
  let unreadable = '';

  async function rebuild(): Promise<number> {
    await ready();
    try {
      await indexer.rebuild((done, total) => {
        progress = { done, total };
      });
      unreadable = '';
    } finally {
      progress = null;
    }
    return catalogue.size();
  }

  /** Rebuilds the index; returns the number of nodes. */
  function reindex(): Promise<number> {
    rebuilding ??= rebuild().finally(() => {
      rebuilding = null;
    });
    return rebuilding;
  }

  async function rebuildUntilDone(): Promise<void> {
    for (let ms = FIRST_PAUSE_MS; unreadable !== '' && !isClosing(); ms = Math.min(LAST_PAUSE_MS, ms * 2)) {
      try {
        await reindex();
      } catch (error) {
        log.error('the index could not be rebuilt', { pauseMs: ms, error });
        await after(ms, undefined, { ref: false });
      }
    }
  }

  return {
    reindex,
    /** Rebuilds an index that cannot be read, again and again until that works. */
    async repair(why: Error): Promise<void> {
      if (unreadable !== '') return repairing;
      unreadable = why.message;
      log.warn('the index is rebuilt, as it cannot be read', { error: why });
      repairing = rebuildUntilDone();
      await repairing;
    },
    problems: () => (unreadable === '' ? [] : [{ file: 'index', message: `recall is off: ${unreadable}` }]),
    progress: (): IndexProgress | null => progress,
  };
}
