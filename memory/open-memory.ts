import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { createMutex, systemClock } from '../common/async.ts';
import type { Config } from '../common/config.ts';
import { getReason, type Problem } from '../common/errors.ts';
import { ensureDir } from '../common/files.ts';
import { VERSION } from '../common/paths.ts';
import type { Corpus, Embedder } from './embeddings/embedder.ts';
import { type EmbedderParts, getEmbedder, openEmbedder } from './embeddings/open-embedder.ts';
import type { Memory } from './memory.ts';
import type { Task } from './model/task.ts';
import type { ClaudeCliOptions } from './models/claude-code.ts';
import type { LanguageModel } from './models/model.ts';
import type { Budget, UsageCounter } from './models/quota.ts';
import type { MemoryOptions } from './parts.ts';
import type { Reranker } from './recall/reranking.ts';
import type { ShareOptions } from './share/parts.ts';
import { SHARED_ID, taskKey } from './share/row.ts';
import type { Sharing } from './share.ts';
import type { IdSetFile, TurnWork } from './storage/fs/set-files.ts';
import { libraryPaths } from './storage/paths.ts';
import type { Journal } from './storage/turn-log.ts';
import type { Tasks } from './tasks/tasks.ts';

const SNAPSHOTS = 20;
const randomHex = (): string => randomBytes(8).toString('hex');
/** A slower model keeps loading in the background while queries run without vectors. */
const WARM_MS = 1_000;
const NO_CORPUS: Corpus = { pieceWeights: () => new Map(), mean: async () => null };

export interface OpenMemoryOptions
  extends Pick<MemoryOptions, 'sealedOrigin' | 'activity' | 'savings' | 'filter'>,
    Pick<EmbedderParts, 'env' | 'paths' | 'redactor' | 'log'> {
  readonly config: Config;
  readonly budget: Budget;
  /** Counts the use of the models. */
  readonly usage: UsageCounter;
  readonly claudeEnvironment: ClaudeCliOptions['environment'];
  /** Called before a turn is worked on. */
  readonly onMark?: ((what: TurnWork, turnId: string) => void) | undefined;
  readonly share?: Pick<ShareOptions, 'settings' | 'keepSettings' | 'isForbidden'> & {
    readonly ownEnv: NodeJS.ProcessEnv;
  };
}

/**
 * Opens journal, files, index and models, and composes memory over them. Modules load here and not before: a native
 * part that fails to load must cost memory, never the proxy.
 */
export async function openMemory(parts: OpenMemoryOptions): Promise<OpenedMemory> {
  const { share: _, ...options } = parts;
  const { config, paths, log } = options;
  const { createMemory } = await import('./memory.ts');
  const { openJournal } = await import('./storage/fs/turn-log.ts');
  const { openNodeFiles } = await import('./storage/fs/node-files.ts');
  const { openIndexHome } = await import('./search/lancedb/open-index.ts');
  const { createEmbedderWithTimeout } = await import('./embeddings/embedder.ts');
  const { createLocalModel } = await import('./compaction/rules-model.ts');
  const { createSourceFiles } = await import('./storage/fs/project-files.ts');
  const { createNodeWatch } = await import('./storage/fs/node-watch.ts');
  const { openTasks } = await import('./tasks/open-tasks.ts');
  const { openFactFiles } = await import('./storage/fs/fact-files.ts');
  const { openPageFiles } = await import('./storage/fs/page-files.ts');
  const { openSnapshotFiles } = await import('./storage/fs/snapshot-files.ts');
  const { openDreamFiles } = await import('./storage/fs/dream-files.ts');
  const { createClosedSessionsFile, createIdSetFile, openCrashMarks } = await import('./storage/fs/set-files.ts');

  const { report, watched, problems } = createHealth((problem) => log.warn('the store has a problem', { ...problem }));
  const working = watched(await openEmbedder({ ...parts, report }), 'embedder', ['embed', 'embedQuery']);
  const { queryMs } = config.embedding;
  const limit = { queryMs, report: (message: string) => log.warn('embedding timed out', { message }) };
  const withTimeout = (one: Embedder): Embedder => createEmbedderWithTimeout(one, limit);
  const embedder = withTimeout(working);
  const warm = working.embedQuery('first words', NO_CORPUS).catch(() => undefined);
  const index = await openIndexHome({
    dir: paths.indexDir,
    embedder,
    now: systemClock.now,
    report,
    getEmbedder: (id) => getEmbedder(id, withTimeout),
    unembedded: (error) => log.warn('texts were indexed by their words only', { error }),
  });
  if (index.rebuilt && index.reason !== 'new') log.warn('the index is rebuilt', { reason: index.reason });
  const journal = await openJournal({ dir: paths.journalDir, report });
  const nodeFiles = await openNodeFiles(paths);
  const model = await openLanguageModel(parts);
  const getProject = await openProjectOf(parts, journal);
  const { root: dir } = libraryPaths(config.library.dir, paths);
  const inbox = createMutex();
  const removed = createIdSetFile(path.join(paths.shareDir, 'removed'), SHARED_ID);
  const shared = await getShare(parts, removed);
  const onRemove = (task: Task) => removed.add([taskKey(task)]);
  let memory: OpenedParts['memory'] | null = null;
  const isTakenBack = (nodeId: string, text: string) => memory?.library.isTakenBack(nodeId, text) ?? false;
  const opening = { ...parts, quota: parts.budget, getProject, model, randomHex, exclusive: inbox, onRemove };
  const { tasks, start } = await openTasks({ ...opening, isTakenBack });
  memory = await createMemory({
    ...options,
    journal: watched(journal, paths.journalDir, ['append', 'read']),
    crashMarks: await openCrashMarks({ dir: paths.journalDir, version: VERSION, onMark: parts.onMark }),
    nodeFiles: watched(nodeFiles, paths.nodesDir, ['save', 'writeBrief']),
    index: watched(index.index, paths.indexDir, ['put', 'remove', 'search']),
    model,
    local: createLocalModel({ embedder }),
    ...(await getReranker(parts, watched)),
    quota: parts.budget,
    tasks,
    ...shared,
    getProject,
    sources: createSourceFiles({ now: systemClock.now }),
    agentReports: createIdSetFile(path.join(paths.journalDir, 'reports')),
    forgotten: createIdSetFile(path.join(paths.journalDir, 'forgotten')),
    dismissed: createIdSetFile(path.join(paths.journalDir, 'dismissed')),
    closings: createClosedSessionsFile(path.join(paths.journalDir, 'closed')),
    snapshots: await openSnapshotFiles({ dir: paths.snapshotsDir, most: SNAPSHOTS, now: systemClock.now, randomHex }),
    dreams: await openDreamFiles(paths.dreamDir),
    pageFiles: await openPageFiles({ dir, nodesDir: paths.nodesDir, exclusive: inbox }),
    factFiles: await openFactFiles(paths, report),
    embedder,
    watch: createNodeWatch({ ...paths, report }),
    clock: systemClock,
    randomHex,
  });
  await Promise.race([warm, after(WARM_MS, undefined, { ref: false })]);
  // The first search starts the embedding thread and reads the index, which no prompt should wait for.
  await memory.recall
    .search('first words', { top: 1 })
    .catch((error: unknown) => log.warn('the first search failed', { error }));
  start(memory.maintenance.refreshIndex);
  return assembleMemory({ memory, tasks, problems, embedder });
}

export type OpenedMemory = Memory & { readonly tasks: Tasks; readonly sharing: Sharing | null };

interface OpenedParts {
  readonly memory: Memory & { readonly sharing: Sharing | null };
  readonly tasks: Tasks;
  readonly problems: () => readonly Problem[];
  readonly embedder: Embedder;
}

function assembleMemory({ memory, tasks, problems, embedder }: OpenedParts): OpenedMemory {
  const { maintenance } = memory;
  return {
    ...memory,
    tasks,
    maintenance: {
      ...maintenance,
      status: () => {
        const status = maintenance.status();
        const shared = memory.sharing?.problems() ?? [];
        return { ...status, problems: [...problems(), ...status.problems, ...tasks.problems(), ...shared] };
      },
      close: async () => {
        await tasks.close();
        await maintenance.close();
        await embedder.close();
      },
    },
  };
}

/** LanceDB connects to the storage when something is shared, not before. */
async function getShare({ share, config, env, paths }: OpenMemoryOptions, removed: IdSetFile) {
  if (share === undefined) return {};
  const { createFadedFile, createStateFile, readPassphrase } = await import('./share/fs.ts');
  const stateFile = createStateFile(paths.shareDir);
  const faded = createFadedFile(path.join(paths.shareDir, 'faded'));
  // A machine that left may come back.
  const whereShared = (add: IdSetFile['add']) => async (ids: readonly string[]) => {
    if (stateFile.isThere()) await add(ids);
  };
  return {
    share: {
      ...share,
      openBus: async (uri, env) => (await import('./share/lancedb/bus.ts')).openLanceBus({ uri, env }, share.ownEnv),
      stateFile,
      removed: { ...removed, add: whereShared(removed.add) },
      faded: { ...faded, add: whereShared(faded.add) },
      passphrase: async (env) =>
        env['COMET_CC_SHARE_PASSPHRASE'] || (await readPassphrase(path.join(paths.shareDir, 'passphrase'))),
      keepsDrafts: config.llm === 'claude' || config.llm === 'openai',
      env,
    } satisfies MemoryOptions['share'],
  };
}

async function getReranker(
  { env, config, redactor }: OpenMemoryOptions,
  watched: ReturnType<typeof createHealth>['watched'],
): Promise<{ readonly reranker?: Reranker }> {
  if (config.rerank.mode === 'off') return {};
  const { createEndpointReranker } = await import('./recall/endpoint-reranker.ts');
  const reranker = createEndpointReranker({ ...config.rerank, env, redact: redactor.text });
  return { reranker: watched(reranker, 'reranker', ['score']) };
}

export async function openLanguageModel(parts: Omit<OpenMemoryOptions, 'budget'>): Promise<LanguageModel | null> {
  const { env, config, paths, redactor, usage, claudeEnvironment, log } = parts;
  if (config.llm !== 'claude' && config.llm !== 'openai') return null;
  const cwd = path.join(paths.runDir, 'model');
  await ensureDir(cwd);
  const shared = { cwd, redact: redactor.text, now: systemClock.now, ledger: usage, log };
  if (config.llm === 'openai') {
    const { createOpenAiEndpoint } = await import('./models/openai.ts');
    const { model, sensorModel, ...endpoint } = config.openai;
    const small = sensorModel || model;
    const models = { ...config.models, summarizer: model, sensor: small, detail: small, bundle: small };
    return createOpenAiEndpoint({ ...shared, ...endpoint, env, models });
  }
  const { createClaudeCli } = await import('./models/claude-code.ts');
  return createClaudeCli({ ...shared, bin: config.claudeBin, models: config.models, environment: claudeEnvironment });
}

/** Problems of the store, each once. */
function createHealth(onReport: (problem: Problem) => void) {
  const lasting = new Map<string, Problem>();
  const passing = new Map<object, Problem>();

  function watchedMethod(port: object, file: string, method: unknown) {
    return async (...args: unknown[]): Promise<unknown> => {
      try {
        const result: unknown = await Reflect.apply(method as () => unknown, port, args);
        passing.delete(port);
        return result;
      } catch (error) {
        passing.set(port, { file, message: getReason(error) });
        throw error;
      }
    };
  }

  return {
    /** Adds a problem that lasts until the process ends. */
    report(problem: Problem): void {
      const key = `${problem.file}\n${problem.message}`;
      if (lasting.has(key)) return;
      lasting.set(key, problem);
      onReport(problem);
    },
    problems: (): readonly Problem[] => [...lasting.values(), ...passing.values()],
    /** Wraps `port`: a failure of these methods is a problem of `file` until one of them succeeds. */
    watched: <T extends object>(port: T, file: string, methods: readonly (keyof T)[]): T => ({
      ...port,
      ...Object.fromEntries(methods.map((name) => [name, watchedMethod(port, file, port[name])])),
    }),
  };
}

/** Before anything else uses the home: folders of earlier versions keep their projects. */
async function openProjectOf({ paths, log }: OpenMemoryOptions, journal: Journal) {
  const { createProjectOf, joinEarlierFolders, openJoinedFolders } = await import('./storage/fs/project-files.ts');
  const joined = openJoinedFolders(paths.projectsFile);
  if (!joined.exists()) {
    await joinEarlierFolders(journal, joined).catch((error: unknown) =>
      log.warn('the folders of each project could not be recorded', { error }),
    );
  }
  return createProjectOf(systemClock.now, joined);
}
