import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { bundleFile, userCaFile } from '../certs/index.ts';
import { systemClock } from '../common/async.ts';
import type { Config } from '../common/config.ts';
import { ensureDir } from '../common/files.ts';
import type { Log } from '../common/log.ts';
import type { HomePaths } from '../common/paths.ts';
import type { Corpus, Embedder } from '../memory/embeddings/embedder.ts';
import type { Memory } from '../memory/index.ts';
import type { Budget, UsageCounter } from '../memory/models/budget.ts';
import type { LanguageModel } from '../memory/models/language-model.ts';
import type { Reranker } from '../memory/recall/reranking.ts';
import type { Redactor } from '../redact/index.ts';
import { PROXY_NAMES } from './lifecycle/client-env.ts';
import { createTroubles, type Troubles } from './lifecycle/health.ts';
import { withTempDir } from './lifecycle/temp-dir.ts';
import { embedderOf, openEmbedder } from './open-embedder.ts';

const SNAPSHOTS = 20;
/** A model that loads for longer goes on loading; questions go without vectors meanwhile. */
const WARM_MS = 1_000;
const NO_CORPUS: Corpus = { pieceWeights: () => new Map(), mean: async () => null };

export interface MemoryParts {
  readonly env: NodeJS.ProcessEnv;
  readonly config: Config;
  readonly paths: HomePaths;
  readonly redactor: Redactor;
  readonly governor: Budget;
  /** Where the use of the models is counted. */
  readonly spending: UsageCounter;
  readonly log: Log;
}

/**
 * Journal, files, index, models and recall, joined. All is loaded here and not before: a native part that does not
 * load on this machine must cost memory, never the proxy.
 */
export async function openMemory(parts: MemoryParts): Promise<Memory> {
  const { env, config, paths, redactor, log } = parts;
  const { createMemory } = await import('../memory/index.ts');
  const { openJournal } = await import('../memory/storage/fs/turn-log.ts');
  const { openNodeFiles } = await import('../memory/storage/fs/node-files.ts');
  const { openIndexHome } = await import('../memory/search/lancedb/open-index.ts');
  const { createEmbedderWithTimeout: createPatientEmbedder } = await import(
    '../memory/embeddings/embedder-with-timeout.ts'
  );
  const { createLocalModel } = await import('../memory/compaction/rules-model.ts');
  const { createProjectOf } = await import('../memory/storage/fs/git-project.ts');
  const { createSourceFiles } = await import('../memory/storage/fs/project-files.ts');
  const { createNodeWatch } = await import('../memory/storage/fs/node-watch.ts');
  const { openSnapshotFiles } = await import('../memory/storage/fs/snapshot-files.ts');
  const { openDreamFiles } = await import('../memory/storage/fs/change-files.ts');
  const { createClosedSessionsFile } = await import('../memory/storage/fs/closed-sessions-file.ts');
  const { createIdSetFile } = await import('../memory/storage/fs/id-set-file.ts');

  const troubles = createTroubles((problem) => log.warn('the store has a problem', { ...problem }));
  const { report, watched } = troubles;
  const working = watched(await openEmbedder(parts), 'embedder', ['embed', 'embedQuery']);
  const patiently = (one: Embedder): Embedder =>
    createPatientEmbedder(one, {
      queryMs: config.embedding.queryMs,
      report: (message) => log.warn('a vector was not to be had in time', { message }),
    });
  const embedder = patiently(working);
  const warm = working.embedQuery('first words', NO_CORPUS).catch(() => undefined);
  // LanceDB leaves an empty folder where temporary files go, once for each process.
  const opened = await withTempDir(env, path.join(paths.runDir, 'tmp'), () =>
    openIndexHome({
      dir: paths.indexDir,
      embedder,
      now: systemClock.now,
      report,
      embedderOf: (id) => embedderOf(id, paths, patiently),
      unembedded: (error) => log.warn('texts were indexed by their words only', { error }),
    }),
  );
  if (opened.rebuilt && opened.reason !== 'new') log.warn('the index is rebuilt', { reason: opened.reason });
  const journal = await openJournal({ dir: paths.journalDir, report });
  const nodeFiles = await openNodeFiles(paths);
  const memory = await createMemory({
    config,
    journal: watched(journal, paths.journalDir, ['append', 'read']),
    nodeFiles: watched(nodeFiles, paths.nodesDir, ['save', 'writeBrief']),
    index: watched(opened.index, paths.indexDir, ['upsert', 'removeNodes', 'search']),
    model: await languageModel(parts),
    local: createLocalModel({ embedder }),
    ...(await rerankerOf(parts, watched)),
    quota: parts.governor,
    redactor,
    projectOf: createProjectOf(systemClock.now),
    sources: createSourceFiles({ now: systemClock.now }),
    forgotten: createIdSetFile(path.join(paths.journalDir, 'forgotten')),
    dismissed: createIdSetFile(path.join(paths.journalDir, 'dismissed')),
    closings: createClosedSessionsFile(path.join(paths.journalDir, 'closed')),
    snapshots: await openSnapshotFiles({
      dir: paths.snapshotsDir,
      most: SNAPSHOTS,
      now: systemClock.now,
      randomHex: () => randomBytes(8).toString('hex'),
    }),
    dreams: await openDreamFiles(paths.dreamDir),
    watch: createNodeWatch({ ...paths, report }),
    clock: systemClock,
    log,
    randomHex: () => randomBytes(8).toString('hex'),
  });
  await Promise.race([warm, after(WARM_MS, undefined, { ref: false })]);
  await warmUp(memory, log);
  const { maintenance } = memory;
  return {
    ...memory,
    maintenance: {
      ...maintenance,
      status: () => {
        const status = maintenance.status();
        return { ...status, problems: [...troubles.list(), ...status.problems] };
      },
      close: async () => {
        await maintenance.close();
        await embedder.close();
      },
    },
  };
}

/** The first search starts the embedding thread and reads the index: no prompt shall wait for that. */
async function warmUp(memory: Memory, log: Log): Promise<void> {
  try {
    await memory.recall.search('first words', { top: 1 });
  } catch (error) {
    log.warn('the first search failed', { error });
  }
}

async function rerankerOf(
  { env, config, paths, redactor }: MemoryParts,
  watched: Troubles['watched'],
): Promise<{ readonly reranker?: Reranker }> {
  if (config.rerank.mode === 'off') return {};
  const { createEndpointReranker } = await import('../memory/recall/endpoint-reranker.ts');
  const reranker = createEndpointReranker({ ...config.rerank, env, cwd: paths.home, redact: redactor.text });
  return { reranker: watched(reranker, 'reranker', ['score']) };
}

async function languageModel(parts: MemoryParts): Promise<LanguageModel | null> {
  const { env, config, paths, redactor, spending, log } = parts;
  if (config.llm !== 'claude' && config.llm !== 'openai') return null;
  const cwd = path.join(paths.runDir, 'model');
  await ensureDir(cwd);
  const shared = { cwd, redact: redactor.text, now: systemClock.now, ledger: spending, log };
  if (config.llm === 'openai') {
    const { createOpenAiEndpoint } = await import('../memory/models/openai.ts');
    const { model, sensorModel, ...endpoint } = config.openai;
    const models = { ...config.models, summarizer: model, sensor: sensorModel || model, detail: sensorModel || model };
    return createOpenAiEndpoint({ ...shared, ...endpoint, env, models });
  }
  const { createClaudeCli } = await import('../memory/models/claude-cli.ts');
  return createClaudeCli({
    ...shared,
    bin: config.claudeBin,
    models: config.models,
    environment: {
      env,
      bundleFile: bundleFile(paths.certsDir),
      userCa: (await userCaFile(paths)) ?? '',
      // Ours were taken out when the daemon was started: what is left is the user's own.
      userProxy: Object.fromEntries(PROXY_NAMES.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
    },
  });
}
