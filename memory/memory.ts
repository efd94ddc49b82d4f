import type { Clock } from '../common/async.ts';
import type { Config } from '../common/config.ts';
import type { Log } from '../common/log.ts';
import type { Redactor } from '../redact/index.ts';
import { createArchives } from './archive.ts';
import { type Capture, createCapture } from './capture.ts';
import { createCompactor } from './compaction/compactor.ts';
import { createDetails } from './compaction/details.ts';
import { createLinker } from './compaction/linker.ts';
import { createModelUpgrades } from './compaction/model-upgrades.ts';
import { createPipeline } from './compaction/pipeline.ts';
import { createRevisions } from './compaction/supersede.ts';
import { createToolRounds } from './compaction/tool-rounds.ts';
import { createTopicDetector } from './compaction/topic-detector.ts';
import { createIdleScheduler, openConsolidator, recoverChange } from './consolidation/consolidation.ts';
import { createNodeLimit } from './consolidation/node-limit.ts';
import { createEditing } from './edit.ts';
import { createForgetting, openRemoval } from './forget.ts';
import { createImports, type Import } from './import.ts';
import { createFileReferences } from './ingest/file-references.ts';
import { createTaskQueue } from './ingest/task-queue.ts';
import { createTurnReader } from './ingest/turn-reader.ts';
import { createTurnRegistry } from './ingest/turn-registry.ts';
import { createLibrary, type Library, resolveNode } from './library.ts';
import { createMaintenance, type Maintenance, startBackgroundTasks } from './maintenance.ts';
import type { MemoryNode } from './model/node.ts';
import type { LanguageModel } from './models/model.ts';
import type { ModelQuota } from './models/quota.ts';
import { createFileSearch } from './recall/file-search.ts';
import { createProjectOverview } from './recall/project-overview.ts';
import { createRecaller } from './recall/recall.ts';
import { createRecall, type Recall } from './recall/recall-service.ts';
import { createReranking, type Reranker } from './recall/reranking.ts';
import { createSessionContext } from './recall/session-context.ts';
import type { SearchIndex } from './search/search-index.ts';
import { openSessions } from './sessions.ts';
import type { ClosedSessionsFile, IdSetFile } from './storage/fs/set-files.ts';
import { createIndexer } from './storage/index-writer.ts';
import type { NodeFiles, NodeWatch } from './storage/node-files.ts';
import { createNodeRegistry, type NodeRegistry } from './storage/node-registry.ts';
import { createStore } from './storage/node-store.ts';
import type { SourceFiles } from './storage/project-files.ts';
import { createSnapshotService, type DreamFiles, type Snapshots } from './storage/snapshot-files.ts';
import type { Journal } from './storage/turn-log.ts';

export interface Memory {
  readonly capture: Capture;
  readonly recall: Recall;
  readonly library: Library;
  readonly imports: Import;
  readonly maintenance: Maintenance;
}

/** Memory closes journal, index, watch and both models; the caller closes the embedder. */
export interface MemoryOptions {
  readonly config: Pick<Config, 'llm' | 'compaction' | 'recall' | 'rerank' | 'inject' | 'dream'>;
  readonly journal: Journal;
  readonly nodeFiles: NodeFiles;
  readonly index: SearchIndex;
  /** Null when `config.llm` is `local` or `off`. */
  readonly model: LanguageModel | null;
  readonly local: LanguageModel;
  /** Absent where results keep the order of ranking. */
  readonly reranker?: Reranker;
  /** Absent where the model may always be asked. */
  readonly quota?: ModelQuota;
  readonly redactor: Redactor;
  /** Project key of a directory, see `createProjectOf`. */
  readonly projectOf: (directory: string | null) => string;
  /** Turns that the user removed: they are not captured again. */
  readonly forgotten: IdSetFile;
  /** Turns whose nodes the user took out of the files: they stay in the journal, without a node. */
  readonly dismissed: IdSetFile;
  readonly closings: ClosedSessionsFile;
  readonly snapshots: Snapshots;
  readonly dreams: DreamFiles;
  /** Null where project files are not read. */
  readonly sources: SourceFiles | null;
  /** Factor on the time limit for reading them. */
  readonly sourcePatience?: number;
  /** Null where files are not edited by hand. */
  readonly watch: NodeWatch | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Fresh lower-case hex, at least six digits. */
  readonly randomHex: () => string;
}

/**
 * Composes the services. Resolves once the nodes on disk are known; sessions and index follow in the background, and
 * `flush` waits for them.
 *
 * With `llm: off` no model is used and nothing is compacted unasked: turns are kept, and nodes are made locally only
 * where `prepareNodes` or `flush` asks for them (or when 200 turns wait).
 */
export async function createMemory(options: MemoryOptions): Promise<Memory> {
  const ingest = await createIngest(options);
  const { store, log, dreamFiles, compactor, pipeline, modelUpgrades, catalogue, removal, topicDetector } = ingest;
  const sessions = await openSessions(ingest);
  if (await recoverChange(options.nodeFiles, dreamFiles)) log.warn('an interrupted dream was undone');
  await store.open(await dreamFiles.written());

  const closing = new AbortController();
  const isClosing = (): boolean => closing.signal.aborted;
  const background = startBackgroundTasks({ ...ingest, isClosing });
  const { started, follow } = background;
  const resolve = (prefix: string): MemoryNode => resolveNode(prefix, catalogue);
  const dreams = await openConsolidator({ ...ingest, dreams: dreamFiles, newId: compactor.newId });
  const idle = createIdleScheduler({ ...options, dreams, ready: started });
  const shared = { ...ingest, sessions, started, follow, resolve, isClosing, onActivity: idle.reset };
  const details = createDetails(shared);
  const archives = createArchives(shared);
  const { imports, progress } = createImports({ ...shared, ...removal, archives, newId: compactor.newId });

  async function close(): Promise<void> {
    closing.abort(new Error('memory is closing'));
    await idle.close();
    await background.stopWatching();
    topicDetector.close();
    details.close();
    const upgradesEnded = modelUpgrades.close();
    await pipeline.close();
    await Promise.all([upgradesEnded, options.model?.close(), options.local.close()]);
    await background.succeeded;
    await store.exclusive(async () => {});
    await ingest.taskQueue.idle();
    await Promise.all([options.journal.close(), options.index.close()]);
  }

  let closed: Promise<void> | null = null;
  return {
    capture: createCapture(shared),
    recall: createRecall({ ...shared, ...searchOf(shared), named: sessions.named, isGone: removal.isGone }),
    library: createLibrary({
      ...shared,
      archives,
      details,
      editing: createEditing(shared),
      projectOverview: createProjectOverview(shared),
      remove: removal.remove,
      forget: createForgetting({ ...shared, compactTails: pipeline.compactTails, remove: removal.remove }),
    }),
    imports,
    maintenance: createMaintenance({
      ...shared,
      archives,
      background,
      dreams,
      backend: options.config.llm,
      importing: progress,
      closing: closing.signal,
      close: () => (closed ??= close()),
    }),
  };
}

/** Everything from a captured turn to a durable node. */
async function createIngest(options: MemoryOptions) {
  const { index, journal, log, dreams: dreamFiles } = options;
  const catalogue = createNodeRegistry();
  const turnRegistry = createTurnRegistry();
  const base = {
    ...options,
    dreamFiles,
    catalogue,
    turnRegistry,
    taskQueue: createTaskQueue(),
    turnReader: createTurnReader(journal, turnRegistry),
  };
  const indexer = createIndexer({ ...base, textsOf: base.turnReader.ofSession, sessionOf: turnRegistry.sessionOf });
  const store = createStore({ ...base, indexer });
  const stored = { ...base, indexer, store, snapshooter: createSnapshotService(base) };
  const linker = createLinker({ ...stored, index, log });
  const revisions = createRevisions(catalogue);
  const nodeLimit = createNodeLimit(stored);
  const compactor = createCompactor({ ...stored, linker, nodeLimit, revisions });
  const modelUpgrades = createModelUpgrades({ ...stored, compactor, revisions, linker, nodeLimit });
  const topicDetector = createTopicDetector(options);
  const files = createFileReferences(base);
  const removal = await openRemoval(stored);
  const toolRounds = createToolRounds({ ...stored, compactor, isForgotten: removal.isForgotten });
  const compacted = { ...stored, compactor, modelUpgrades, topicDetector, files, removal, toolRounds };
  return { ...compacted, pipeline: createPipeline(compacted) };
}

function searchOf(parts: Awaited<ReturnType<typeof createIngest>>) {
  const { catalogue, clock, config, files, index, log, projectOf, reranker, turnReader } = parts;
  const { recall, rerank: rules } = config;
  const reranking =
    reranker === undefined
      ? {}
      : { reranking: createReranking({ reranker, rules, deadlineMs: recall.deadlineMs, now: clock.now, log }) };
  const recaller = createRecaller({
    index,
    nodeOf: (id) => displayNode(catalogue.current(id), catalogue),
    turnText: turnReader.words,
    projectOf,
    files,
    config: recall,
    now: clock.now,
    ...reranking,
  });
  const search = createFileSearch({ recaller, files });
  return { recaller, search, openContext: createSessionContext(parts) };
}

/** A node of tool rounds is shown as the node of its turn, where there is one. */
function displayNode(node: MemoryNode | undefined, catalogue: NodeRegistry): MemoryNode | null {
  const isChild = node?.kind === 'tool' && node.parent_node_id !== null;
  return (isChild ? catalogue.current(node.parent_node_id ?? '') : undefined) ?? node ?? null;
}
