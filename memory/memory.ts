import type { Clock } from '../common/async.ts';
import { finishesWithin } from '../common/async.ts';
import type { Config } from '../common/config.ts';
import { CometError } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import type { Scope } from '../common/policy.ts';
import type { CapturedTurn } from '../common/turn.ts';
import { isCleanOrigin } from '../common/turn.ts';
import type { Redactor } from '../redact/index.ts';
import { startUpkeep } from './background-tasks.ts';
import { createCompactor } from './compaction/compactor.ts';
import { createDetails } from './compaction/details.ts';
import { createLinker } from './compaction/linker.ts';
import { createUpgrades } from './compaction/model-upgrades.ts';
import { createPipeline } from './compaction/pipeline.ts';
import { createRevisions } from './compaction/revisions.ts';
import { createRounds } from './compaction/tool-rounds.ts';
import { createSensor } from './compaction/topic-detector.ts';
import type { DreamReport } from './consolidation/change-set.ts';
import type { DreamRequest } from './consolidation/consolidator.ts';
import { openDreams } from './consolidation/consolidator.ts';
import { createSleep } from './consolidation/idle-scheduler.ts';
import { createNodeLimit } from './consolidation/node-limit.ts';
import { recoverChange } from './consolidation/transaction.ts';
import type { ImportReport, NodeChange, RollbackReport } from './edit.ts';
import { createEditing } from './edit.ts';
import type { ForgetReport, ForgetRequest } from './forget.ts';
import { createForgetting } from './forget.ts';
import type { DocumentReport, DocumentRequest } from './import-document.ts';
import { createDocuments } from './import-document.ts';
import type { PastReport, PastRequest } from './import-turns.ts';
import { createHistory } from './import-turns.ts';
import { createFileMemory } from './ingest/file-references.ts';
import { createTracker } from './ingest/task-queue.ts';
import { createTexts } from './ingest/turn-reader.ts';
import { createTurnBook } from './ingest/turn-registry.ts';
import type { NodeFilter, NodeView, RawMessage } from './library.ts';
import { createQueries } from './library.ts';
import type { ArchiveFormat } from './model/archive.ts';
import type { MemoryNode } from './model/node.ts';
import type { LanguageModel } from './models/language-model.ts';
import type { ModelQuota } from './models/quota.ts';
import { createFileSearch } from './recall/file-search.ts';
import type { ProjectView } from './recall/project-overview.ts';
import { createAbout } from './recall/project-overview.ts';
import { createRecaller } from './recall/recall.ts';
import { createReranking, type Reranker, type Reranking } from './recall/reranking.ts';
import { createStanding } from './recall/session-context.ts';
import type { MemoryLine, RecallHit, RecallRequest, StandingMemory } from './recall/types.ts';
import type { NoteRequest } from './remember.ts';
import { createNotes } from './remember.ts';
import { removeNodes } from './remove.ts';
import type { NodeIndex } from './search/node-index.ts';
import type { SessionDetail, SessionView } from './sessions.ts';
import { openSessions } from './sessions.ts';
import type { MemoryStats, MemoryStatus, NodeReason } from './stats.ts';
import { createInsight } from './stats.ts';
import type { ClosedSessionsFile } from './storage/fs/closed-sessions-file.ts';
import type { IdSetFile } from './storage/fs/id-set-file.ts';
import { createIndexer } from './storage/indexer.ts';
import type { NodeFiles, NodeWatch } from './storage/node-files.ts';
import { createNodeRegistry } from './storage/node-registry.ts';
import { createStore } from './storage/node-store.ts';
import type { SourceFiles } from './storage/project-files.ts';
import type { DreamFiles, SnapshotInfo, Snapshots } from './storage/snapshot-files.ts';
import { createSnapshotService } from './storage/snapshots.ts';
import type { Journal } from './storage/turn-log.ts';
import { BUNDLE } from './text/tool-call-nodes.ts';

/** The public face of memory. Nothing here is awaited on the path of a request but `recall`, under a deadline. */
export interface Memory {
  /** Takes finished turns; returns at once, never throws. A turn whose `end` is known is skipped. */
  capture(turns: readonly CapturedTurn[]): void;
  /**
   * For those of `turnIds` that durable nodes stand for: the nodes' ids; none for what the user had removed. Synchronous,
   * from memory.
   */
  nodesCovering(turnIds: readonly string[]): ReadonlyMap<string, readonly string[]>;
  /** Asks for durable nodes for these turns soon (forced compaction); returns at once. */
  prepare(sessionId: string, turnIds: readonly string[]): void;
  /** Tier-1 lines in the order given; unknown ids are left out. */
  lines(nodeIds: readonly string[]): readonly MemoryLine[];
  /** Brief of the session (or the last one of its project), and the passive and pinned lines; its own with `session`. */
  standing(sessionId: string, projectDir: string | null, scope?: Scope): Promise<StandingMemory>;
  /** Best first; empty when nothing fits. */
  recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]>;

  /** A session may be named by any unambiguous start of its id. @throws CometError `ambiguous_id` */
  list(filter: NodeFilter): readonly MemoryNode[];
  /**
   * `id` may be any unambiguous prefix. Depth 1 makes the detailed summary where there is none yet, which may take as
   * long as a model does; depth 2 adds the verbatim messages.
   * @throws CometError `not_found` or `ambiguous_id`
   */
  show(id: string, depth: 0 | 1 | 2): Promise<NodeView>;
  /**
   * Best first. With `file`, an absolute path, what is about that file or folder comes first, newest first where `query`
   * is empty, then what fits the query or names the file.
   *
   * @throws as `list`
   */
  search(
    query: string,
    options: { top: number; sessionId?: string; projectDir?: string; file?: string },
  ): Promise<readonly RecallHit[]>;
  /** Removes file section, index rows and raw turns; returns the full ids. @throws as `show` */
  remove(ids: readonly string[]): Promise<readonly string[]>;
  /** Removes by where it came from, whose it is, or when it was said. @throws CometError `ambiguous_id`, `usage` */
  forget(request: ForgetRequest): Promise<ForgetReport>;
  /** Newest first; of one project where it is named. */
  sessions(filter?: { readonly projectDir?: string }): Promise<readonly SessionView[]>;
  /** @throws CometError `not_found` */
  session(sessionId: string): Promise<SessionDetail>;
  /** Makes memory of what waits of the session. @throws CometError `not_found` */
  settle(sessionId: string): Promise<void>;
  /** Does the same, and marks the session closed until its next turn. @throws CometError `not_found` */
  closeSession(sessionId: string): Promise<SessionView>;
  about(projectDir: string): Promise<ProjectView>;
  /** The brief as markdown, '' when there is none. @throws CometError `not_found` */
  brief(sessionId: string): Promise<string>;
  /** Every message of the session in order, for a fork with what it was forked from before them. @throws CometError `not_found` */
  restore(sessionId: string): Promise<readonly RawMessage[]>;
  /** Compacts every tail and waits until sensor, compacter and indexer are idle; false on timeout. */
  flush(timeoutMs: number): Promise<boolean>;
  status(): MemoryStatus;

  /** The node's section as its file has it. @throws as `show` */
  section(id: string): Promise<{ readonly id: string; readonly text: string }>;
  /** @throws as `show`; CometError `node_invalid` naming the key and what was expected, and nothing is changed */
  edit(id: string, change: NodeChange): Promise<MemoryNode>;
  /** Pinned nodes are always shown in their project, or in the one of `projectDir`. @throws as `edit` */
  pin(ids: readonly string[], isPinned: boolean, projectDir?: string): Promise<readonly MemoryNode[]>;
  /** Nodes and briefs, without raw turns. */
  exportAll(format: ArchiveFormat): Promise<string>;
  /** Takes an export back, all of it or nothing. @throws CometError `node_invalid`, naming line and key */
  importAll(text: string): Promise<ImportReport>;
  /** Takes a text in by pieces of at most 2,000 characters; what is here already stays as it is. */
  importDocument(request: DocumentRequest): Promise<DocumentReport>;
  /** Takes turns in that were said before, with the time at which they were; what is here already stays as it is. */
  importTurns(request: PastRequest): Promise<PastReport>;
  /**
   * Takes a note in; one that is here already stays as it is.
   * @throws CometError `node_invalid` where nothing is left of it, or the user had the same removed
   */
  remember(request: NoteRequest): Promise<{ readonly node: MemoryNode; readonly isNew: boolean }>;
  /** Newest first. */
  snapshots(): Promise<readonly SnapshotInfo[]>;
  /** @throws CometError `not_found` or `ambiguous_id` */
  rollback(snapshot: string): Promise<RollbackReport>;
  /** Merges what says the same, groups what belongs together, tidies tags and links; see `dream` in docs/DOMAIN.md. */
  dream(request: DreamRequest): Promise<DreamReport>;
  /** Writes the whole index again from the files; returns how many nodes. */
  reindex(): Promise<number>;
  stats(): Promise<MemoryStats>;
  /** @throws as `show` */
  why(id: string): Promise<NodeReason>;
  close(): Promise<void>;
}

/** All that memory is built from. It closes journal, index, watch and both models; the embedder is its owner's. */
export interface MemoryOptions {
  readonly config: Pick<Config, 'llm' | 'compaction' | 'recall' | 'rerank' | 'inject' | 'dream'>;
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
  readonly index: NodeIndex;
  /** Null when `config.llm` is `local` or `off`. */
  readonly model: LanguageModel | null;
  readonly local: LanguageModel;
  /** Absent where nobody puts what was found in order. */
  readonly reranker?: Reranker;
  /** Whether the model may be asked now; always, where it is not given. */
  readonly quota?: ModelQuota;
  readonly redactor: Redactor;
  /** Project key of a directory, see `createProjectOf`. */
  readonly projectOf: (directory: string | null) => string;
  /** Ends of turns that the user removed: they must not be captured again. */
  readonly forgotten: IdSetFile;
  /** Ends of turns whose nodes the user took out of the files: they stay in the journal, no node is made of them. */
  readonly dismissed: IdSetFile;
  readonly closings: ClosedSessionsFile;
  readonly snapshots: Snapshots;
  readonly dreams: DreamFiles;
  /** Null where no project's files are to be looked at. */
  readonly sources: SourceFiles | null;
  /** How many times as long as usual a look at them may take. */
  readonly sourcePatience?: number;
  /** Null where nobody edits by hand. */
  readonly watch: NodeWatch | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Fresh lower-case hex, at least six digits. */
  readonly randomHex: () => string;
}

/** Of the time that a first prompt waits for memory. */
const TAILS_MS = 60;

/**
 * Memory over its ports. Resolves once the nodes on disk are known; sessions and index follow in the background,
 * and `flush` waits for them.
 *
 * With `llm: off` no model reads or writes and nothing is compacted by itself: turns are kept, and nodes are made
 * locally only where `prepare` or `flush` asks for them (or when 200 turns wait).
 */
export async function createMemory(deps: MemoryOptions): Promise<Memory> {
  const { forgotten, index, journal, local, log, model, projectOf, redactor } = deps;
  const tracker = createTracker();
  const catalogue = createNodeRegistry();
  const book = createTurnBook();
  const texts = createTexts(journal, book);
  const { ofSession: textsOf } = texts;
  const indexer = createIndexer({ index, catalogue, textsOf, sessionOf: book.sessionOf, tracker, log });
  const store = createStore({ ...deps, catalogue, indexer });
  const linker = createLinker({ index, catalogue, indexer, store, tracker, log });
  const revisions = createRevisions(catalogue);
  const nodeLimit = createNodeLimit({ ...deps, catalogue, store, tracker });
  const compactor = createCompactor({ ...deps, catalogue, store, linker, nodeLimit, revisions });
  const upgrades = createUpgrades({
    ...deps,
    catalogue,
    compactor,
    revisions,
    store,
    linker,
    nodeLimit,
    texts,
    tracker,
  });
  const sensor = createSensor(deps);
  const files = createFileMemory({ ...deps, catalogue });
  const removed = new Set(await forgotten.load());
  const isForgotten = (turnId: string): boolean => removed.has(turnId);
  const rounds = createRounds({ ...deps, book, catalogue, compactor, store, texts, isForgotten });
  const taking = { ...deps, book, catalogue, compactor, files, rounds, upgrades, sensor, store, texts, tracker };
  const pipeline = createPipeline(taking);
  const queries = createQueries({ ...deps, book, catalogue, texts });
  const standing = createStanding({ ...deps, book, catalogue });
  const { resolve } = queries;
  const details = createDetails({ ...deps, catalogue, store, texts, tracker });
  const sessions = await openSessions({ ...deps, book, catalogue, pipeline, queries });
  const about = createAbout({ ...deps, book, catalogue, files });
  const snapshooter = createSnapshotService({ ...deps, catalogue });
  const editing = createEditing({ ...deps, catalogue, snapshooter, store, resolve });
  const insight = createInsight({ ...deps, book, catalogue, store, texts, resolve });
  const recaller = createRecaller({
    index,
    nodeOf: (id) => surfaced(catalogue.current(id)),
    turnText: (turnId) => texts.said(turnId),
    projectOf,
    files,
    config: deps.config.recall,
    now: deps.clock.now,
    ...(deps.reranker === undefined ? {} : { reranking: rerankingOf(deps, deps.reranker) }),
  });
  const search = createFileSearch({ recaller, files });
  let closing: Promise<void> | null = null;

  for (const turnId of removed) book.take(turnId);
  if (await recoverChange(deps.nodeFiles, deps.dreams)) log.warn('a dream was interrupted; all is as it was before');
  await store.open(await deps.dreams.written());
  const isClosing = (): boolean => closing !== null;
  const upkeep = startUpkeep({ ...deps, catalogue, indexer, pipeline, store, tracker, isClosing });
  const { started, follow } = upkeep;

  /** What is found in rounds of a turn is shown as its turn, where there is a node for that. */
  function surfaced(node: MemoryNode | undefined): MemoryNode | null {
    const isChild = node?.written_by === BUNDLE && node.parent_node_id !== null;
    return (isChild ? catalogue.current(node.parent_node_id ?? '') : undefined) ?? node ?? null;
  }

  /** Taken out of memory by the user: nothing stands for it, and nothing is to be waited for. */
  const isGone = (turnId: string): boolean =>
    book.forms(turnId).some((form) => removed.has(form) || store.isDismissed(form));

  const { newId } = compactor;
  const dreams = await openDreams({ ...deps, catalogue, indexer, snapshooter, store, newId });
  const sleep = createSleep({ ...deps, dreams, ready: started });
  const dreaming = new AbortController();
  const pieces = { ...deps, book, catalogue, indexer, snapshooter, store, texts, tracker, newId, isGone };
  const documents = createDocuments(pieces);
  const remember = createNotes(pieces);

  const forgetting = createForgetting({
    ...deps,
    book,
    catalogue,
    compactor,
    rounds,
    texts,
    upgrades,
    compactTails: pipeline.compactTails,
    remove: removeAll,
  });

  const history = createHistory({
    ...deps,
    book,
    catalogue,
    compactor,
    files,
    pipeline,
    rounds,
    texts,
    tracker,
    upgrades,
    isGone,
  });

  async function remove(ids: readonly string[]): Promise<readonly string[]> {
    await started;
    await follow();
    const nodes = [...new Set(ids.map(resolve))];
    await removeAll(nodes);
    return nodes.map((node) => node.node_id);
  }

  async function removeAll(nodes: readonly MemoryNode[], turnIds?: readonly string[]): Promise<void> {
    await snapshooter.take('rm');
    const add = async (turnIds: readonly string[]): Promise<void> => {
      await forgotten.add(turnIds);
      for (const turnId of turnIds) removed.add(turnId);
    };
    const parts = { ...deps, forgotten: { ...forgotten, add }, book, catalogue, indexer, snapshooter, store, texts };
    await removeNodes(nodes, parts, turnIds);
  }

  async function forget(request: ForgetRequest): Promise<ForgetReport> {
    const { source, sinceMs } = request;
    if ((source ?? request.sessionId ?? sinceMs) === undefined) {
      throw new CometError('usage', 'say what is to be forgotten: a source, a session or a time');
    }
    await started;
    await follow();
    return forgetting(withSession(request));
  }

  async function settleAll(): Promise<void> {
    await upkeep.caughtUp();
    await pipeline.compactTails();
    upgrades.catchUp();
    await tracker.idle();
  }

  async function close(): Promise<void> {
    dreaming.abort(new Error('memory is closing'));
    await sleep.close();
    await upkeep.stopWatching();
    sensor.close();
    details.close();
    const upgradesEnded = upgrades.close();
    await pipeline.close();
    await Promise.all([upgradesEnded, model?.close(), local.close()]);
    await upkeep.succeeded;
    await store.exclusive(async () => {});
    await tracker.idle();
    await Promise.all([journal.close(), index.close()]);
  }

  return {
    ...queries,
    ...editing,
    ...insight,
    capture(turns) {
      sleep.disturb();
      try {
        pipeline.capture(turns);
      } catch (error) {
        log.error('turns were not taken into memory', { error });
      }
    },
    nodesCovering(turnIds) {
      const found = turnIds.map(
        (turnId) => [turnId, [...new Set(book.forms(turnId).flatMap(catalogue.nodesCovering))]] as const,
      );
      return new Map(found.filter(([turnId, ids]) => ids.length > 0 || isGone(turnId)));
    },
    prepare(sessionId, turnIds) {
      sleep.disturb();
      if (closing === null) pipeline.prepare(sessionId, turnIds);
    },
    async standing(sessionId, projectDir, scope) {
      sleep.disturb();
      // What others of the project said last is made into memory first, as far as that takes no time.
      if (closing === null) await finishesWithin(pipeline.notice(sessionId, projectOf(projectDir)), TAILS_MS);
      return standing(sessionId, projectDir, scope);
    },
    async recall(request, signal) {
      sleep.disturb();
      const visibleTurns = new Set([...request.visibleTurns].flatMap((turnId) => [turnId, ...book.forms(turnId)]));
      // What is private is not looked up either.
      const prompt = redactor.text(request.prompt);
      const recent = request.recent.map(redactor.text);
      const hits = await recaller.recall({ ...request, prompt, recent, visibleTurns }, signal);
      const unclean = hits.filter(({ line }) => !isCleanOrigin(line.origin));
      if (unclean.length > 0)
        pipeline.showed(
          request.sessionId,
          unclean.map(({ line }) => line.text),
        );
      return hits;
    },
    async show(id, depth) {
      const shown = await queries.show(id, depth);
      return depth === 1 ? { ...shown, ...(await details.show(resolve(id))) } : shown;
    },
    list: (filter) => queries.list(withSession(filter)),
    search: async (query, options) => search(query, withSession(options)),
    sessions: (filter) => started.then(() => sessions.sessions(filter)),
    session: (id) => started.then(() => sessions.session(id)),
    settle: (id) => started.then(() => sessions.settle(id)),
    closeSession: (id) => started.then(() => sessions.closeSession(id)),
    restore: (id) => started.then(() => queries.restore(id)),
    about: (projectDir) => started.then(() => about(projectDir)),
    importDocument: (request) => started.then(() => documents.import(request)),
    importTurns: (request) => started.then(() => history.import(request)),
    remember: (request) => started.then(() => remember(request)),
    dream: (request) => started.then(() => dreams.run(request, dreaming.signal)),
    remove,
    forget,
    reindex: upkeep.reindex,
    flush: (timeoutMs) => finishesWithin(settleAll(), timeoutMs),
    status: () => statusOf(),
    close: () => (closing ??= close()),
  };

  function withSession<T extends { readonly sessionId?: string }>(filter: T): T {
    return filter.sessionId === undefined ? filter : { ...filter, sessionId: sessions.named(filter.sessionId) };
  }

  function statusOf(): MemoryStatus {
    const health = model?.health?.();
    const queue = {
      sensor: tracker.count('sensor'),
      compacter: tracker.count('compacter'),
      indexer: tracker.count('indexer'),
    };
    const llm = {
      backend: deps.config.llm,
      calls_today: health?.callsToday ?? 0,
      tokens_today: health?.tokensToday ?? 0,
      cost_usd_today: Number((health?.costUsdToday ?? 0).toFixed(6)),
      ...upgrades.deferred(),
      last_error: health?.lastError ?? '',
    };
    return {
      queue,
      llm,
      nodes: catalogue.size(),
      problems: [...upkeep.problems(), ...store.problems()],
      reindex: upkeep.progress(),
      importing: documents.progress(),
      dream: dreams.status(),
    };
  }
}

function rerankingOf({ config, clock, log }: MemoryOptions, reranker: Reranker): Reranking {
  const { rerank: rules, recall } = config;
  return createReranking({ reranker, rules, deadlineMs: recall.deadlineMs, now: clock.now, log });
}
