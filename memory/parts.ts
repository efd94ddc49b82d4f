import path from 'node:path';
import { createPriority } from '../common/async.ts';
import type { Config } from '../common/config.ts';
import type { Origin } from '../common/turn.ts';
import { createCompactor } from './compaction/compactor.ts';
import { createLinker } from './compaction/linker.ts';
import { createModelUpgrades } from './compaction/model-upgrades.ts';
import { createPipeline } from './compaction/pipeline.ts';
import { createRevisions } from './compaction/supersede.ts';
import { createToolRounds } from './compaction/tool-rounds.ts';
import { createTopicDetector } from './compaction/topic-detector.ts';
import type { Savings } from './consolidation/brief.ts';
import { createNodeLimit } from './consolidation/node-limit.ts';
import type { Embedder } from './embeddings/embedder.ts';
import type { Fact } from './facts/fact.ts';
import { openFacts } from './facts.ts';
import { openRemoval } from './forget.ts';
import { createAgentReports } from './ingest/agent-reports.ts';
import { createFileReferences } from './ingest/file-references.ts';
import type { OpenParts } from './ingest/parts.ts';
import { createReports } from './ingest/reports.ts';
import { createTaskQueue } from './ingest/task-queue.ts';
import { createTurnReader } from './ingest/turn-reader.ts';
import { createTurnRegistry } from './ingest/turn-registry.ts';
import type { MemoryNode } from './model/node.ts';
import { createLibraryPages } from './pages/library-pages.ts';
import { createBlockKeys, factsRef } from './pages/page-blocks.ts';
import { readProjectState, withoutAbandoned } from './recall/project-state.ts';
import type { FilterRules } from './recall/relevance-filter.ts';
import type { Reranker } from './recall/reranking.ts';
import type { ShareOptions } from './share/parts.ts';
import type { FactFiles } from './storage/fact-files.ts';
import type { DreamFiles } from './storage/fs/dream-files.ts';
import type { NodeWatch } from './storage/fs/node-watch.ts';
import type { PageFiles } from './storage/fs/page-files.ts';
import type { SourceFiles } from './storage/fs/project-files.ts';
import type { ClosedSessionsFile, IdSetFile } from './storage/fs/set-files.ts';
import type { Snapshots } from './storage/fs/snapshot-files.ts';
import { createIndexer } from './storage/index-writer.ts';
import { createNodeRegistry } from './storage/node-registry.ts';
import { createStore } from './storage/node-store.ts';
import { createSnapshotService } from './storage/snapshot.ts';
import type { Activity } from './tasks/judge.ts';
import type { Tasks } from './tasks/tasks.ts';

/** Memory closes journal, index, watch and both models; the caller closes the embedder. */
export interface MemoryOptions extends OpenParts {
  readonly config: Pick<Config, 'llm' | 'compaction' | 'recall' | 'rerank' | 'inject' | 'dream' | 'facts'>;
  /** Absent where results keep the order of ranking. */
  readonly reranker?: Reranker;
  /** Read for each question. Absent outside of benchmarks. */
  readonly filter?: FilterRules;
  readonly tasks: Tasks;
  /** What requests saved from the one time to the other, ms. Absent where it is not counted. */
  readonly savings?: (fromMs: number, toMs: number) => Savings;
  /** Origin of a text that our own program printed; null for any other. Absent where none prints. */
  readonly sealedOrigin?: (text: string) => Origin | null;
  /** Digests of what subagents reported. */
  readonly agentReports: IdSetFile;
  /** Turns that the user removed: they are not captured again. */
  readonly forgotten: IdSetFile;
  /** Turns whose nodes the user took out of the files: they stay in the journal, without a node. */
  readonly dismissed: IdSetFile;
  readonly closings: ClosedSessionsFile;
  readonly snapshots: Snapshots;
  readonly dreams: DreamFiles;
  readonly pageFiles: PageFiles;
  readonly factFiles: FactFiles;
  /** Compares values of facts; the caller closes it. */
  readonly embedder?: Pick<Embedder, 'embed'>;
  /** Absent where memory is not shared. */
  readonly share?: ShareOptions;
  /** What the user's sessions do now; absent where there are none. */
  readonly activity?: () => Activity;
  /** Null where project files are not read. */
  readonly sources: SourceFiles | null;
  /** Factor on the time limit for reading them. */
  readonly sourcePatience?: number;
  /** Null where files are not edited by hand. */
  readonly watch: NodeWatch | null;
}

/** Everything from a captured turn to a durable node. */
export async function createParts(options: MemoryOptions) {
  const { index, journal, log, dreams: dreamFiles, crashMarks } = options;
  const catalogue = createNodeRegistry();
  const turnRegistry = createTurnRegistry();
  const base = {
    ...options,
    dreamFiles,
    catalogue,
    turnRegistry,
    taskQueue: createTaskQueue(),
    priority: createPriority(),
    turnReader: createTurnReader(journal, turnRegistry, crashMarks.isSkipped),
  };
  const indexer = createIndexer({ ...base, getTexts: base.turnReader.ofSession, getSession: turnRegistry.getSession });
  const snapshooter = createSnapshotService(base);
  const store = createStore({ ...base, indexer, snapshot: () => snapshooter.take('edit') });
  const facts = await openFacts({ ...base, onFade: createFadeNote(options) });
  const stored = { ...base, indexer, store, snapshooter, facts };
  const linker = createLinker({ ...stored, index, log });
  const revisions = createRevisions(catalogue, turnRegistry);
  const nodeLimit = createNodeLimit(stored);
  const readState = (nodes: readonly MemoryNode[]) => readProjectState(withoutAbandoned(nodes, turnRegistry));
  const compactor = createCompactor({ ...stored, linker, nodeLimit, revisions, readState });
  const modelUpgrades = createModelUpgrades({ ...stored, compactor, revisions, linker, nodeLimit });
  const topicDetector = createTopicDetector(options);
  const files = createFileReferences(base);
  const topicPages = createLibraryPages(base);
  const removedNodes = options.share?.removed;
  const removal = await openRemoval({ ...stored, topicPages, ...(removedNodes && { removedNodes }) });
  const toolRounds = createToolRounds({ ...stored, compactor, removal });
  const compacted = { ...stored, compactor, modelUpgrades, topicDetector, files, topicPages, removal, toolRounds };
  return { ...compacted, pipeline: createPipeline({ ...compacted, reports: await openReports(options) }) };
}

/** A subagent may report to a turn that ends in another process. */
async function openReports({ sealedOrigin, agentReports: file, log }: MemoryOptions) {
  const keep = (digest: string): void =>
    void file.add([digest]).catch((error) => log.warn('the report of a subagent is not kept', { error }));
  return createReports(sealedOrigin, createAgentReports(await file.load(), keep));
}

/** Other machines keep what fades on this one. */
function createFadeNote({ redactor, getProject, share }: MemoryOptions) {
  return async (project: string, facts: readonly Fact[]): Promise<void> => {
    const page = factsRef(path.isAbsolute(project) ? getProject(project) : project);
    const keys = facts.map(({ concept, value }) => createBlockKeys()(page, '', redactor.text(`${concept}: ${value}`)));
    await share?.faded.add(keys);
  };
}

export type MemoryParts = Awaited<ReturnType<typeof createParts>>;
