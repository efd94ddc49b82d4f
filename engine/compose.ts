import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { loadLeaf, systemRoots } from '../certs/index.ts';
import { DAY_MS, finishesWithin, systemClock } from '../common/async.ts';
import { type Config, loadConfig, readSettings, writeSetting } from '../common/config.ts';
import { CometError } from '../common/errors.ts';
import { ensureDir, readOrCreateSecret } from '../common/files.ts';
import { createLog, fileSink, type Log } from '../common/log.ts';
import { type HomePaths, homePaths, VERSION } from '../common/paths.ts';
import { claudeDirectory } from '../install/index.ts';
import {
  type Activity,
  type Budget,
  createIdSetFile,
  createProjectOf,
  createUsageFile,
  type Memory,
  openBudget,
  openJoinedFolders,
  openMemory,
  type ShareSettings,
  type Sharing,
  type UsageCounter,
  type UsageStore,
} from '../memory/index.ts';
import { createRoute } from '../proxy/guard/index.ts';
import { createProxy } from '../proxy/index.ts';
import {
  type CostLedger,
  type LedgerStore,
  openCostLedger,
  openLedgerFile,
  openReceiptFile,
  openReceipts,
  type ReceiptStore,
} from '../proxy/ledger/index.ts';
import { createRewriter, openPlanStore, type PlanStore, type RunningRewriter } from '../proxy/rewrite/index.ts';
import { createRedactor, type Redactor } from '../redact/index.ts';
import { getCosts, sumSaved } from './api/cost.ts';
import { createHookHandlers } from './api/hooks.ts';
import { createClaudeImport } from './api/import-claude.ts';
import { openApiServer } from './api/server.ts';
import type { EngineServices, ModelBudget } from './api/service.ts';
import { createHealth } from './api/ui/doctor.ts';
import { removeAll } from './api/ui/edit.ts';
import { createRemovals } from './api/ui/forget.ts';
import { createUi } from './api/ui/index.ts';
import { createUndo } from './api/ui/snapshot.ts';
import { libraryFolders } from './api/ui/watch-files.ts';
import { cutRule } from './cut-config.ts';
import { deferred, deferredMemory } from './deferred.ts';
import { faultAt, readFaults, turnFaults, withFaults } from './lifecycle/fault.ts';
import { openHostMark } from './lifecycle/host.ts';
import { createIdleSteps } from './lifecycle/memory.ts';
import { openSchema } from './lifecycle/schema.ts';
import { useTempDir } from './lifecycle/temp-dir.ts';
import { getClaudeEnvironment } from './lifecycle/user-proxy.ts';
import { createLinkedBlock, type LinkedBlock } from './linked-block.ts';
import { createAccess, guardMemory } from './policy/guard.ts';
import { openPolicy, type Policy } from './policy/index.ts';
import { createPauseSwitch } from './policy/pause.ts';
import { createSeals } from './policy/seal.ts';
import { createSubagentSource, createSubagents } from './policy/subagents.ts';
import { openTranscripts } from './transcript/files.ts';
import { createSessionTitles } from './transcript/session-titles.ts';

const TARGET_HOST = 'api.anthropic.com';
/** A restarted engine accepts requests after this, even when its store needs longer to open. */
const STORE_MS = 300;
const COLLECTOR_MS = 15_000;
/** After such a pause the next prompt seldom comes within the tenth of a second that a collection takes. */
const COLLECT_AFTER_MS = 60_000;
/** The first recall after a rest opens the index's files again. */
const REST_AFTER_MS = 15 * 60_000;
const IDLE_CHECK_MS = 30_000;
/** What memory's own calls may cost is reckoned over the sessions of this time. */
const RECENT_MS = 30 * DAY_MS;

export type RunningEngine = Awaited<ReturnType<typeof composeEngine>>;

export interface EngineOptions {
  /** Of children too. */
  readonly env: NodeJS.ProcessEnv;
  /** This process's own, which gets a folder of its own for temporary files. */
  readonly ownEnv: NodeJS.ProcessEnv;
  readonly secret: string;
  /** Called once when another engine takes over the home. */
  readonly onLost: () => void;
}

/** The one composition root. Everything that is opened here is closed by `close`, in the opposite order. */
export async function composeEngine({ env, ownEnv, secret, onLost }: EngineOptions) {
  const { config, home } = loadConfig(env);
  const paths = homePaths(home);
  const faults = readFaults(env['COMET_FAULT'], config.upstream);
  await faultAt(faults, 'start')?.();
  for (const dir of [paths.home, paths.logsDir, paths.runDir]) await ensureDir(dir);
  const { log, redactor } = await openLog(config, paths);
  // First of all: the engine that holds this socket is the home's one writer.
  const api = await openApiServer(paths.engineSocket, log, onLost);
  const hostMark = await openHostMark(path.join(paths.runDir, 'host.json'), os.hostname(), systemClock);
  const stores = await openStores(paths, redactor, log);
  const { budget, ledger, receipts } = await openLedgers(config, stores, redactor, log);
  const report = (message: string, error: unknown): void => log.error(message, { error });
  const policy = await openPolicy({ paths, scope: config.recall.scope, now: systemClock.now, report });
  const seals = createSeals();
  let activity = (): Activity => ({ answering: 0, lastRequestMs: 0 });
  const opening = Promise.resolve(faultAt(faults, 'store')?.()).then(async () => {
    if (stores.locked !== null) throw stores.locked;
    await useTempDir(ownEnv, path.join(paths.runDir, 'tmp'));
    const claudeEnvironment = await getClaudeEnvironment(env, paths);
    const own = { redactor, sealedOrigin: seals.getOrigin, usage: getUsage(budget, ledger), claudeEnvironment };
    const share = { ...shareOptions(env, paths, policy), ownEnv };
    const hooks = { onMark: turnFaults(faults), activity: () => activity(), savings: sumSaved.bind(null, ledger) };
    return openMemory({ env, config, paths, budget, log, ...own, ...hooks, share });
  });
  const guarded = guardMemory(deferredMemory(opening, config.llm), policy, () => removals.hidden());
  const memory = withUnfinishedTurns(guarded, () => rewriter);
  const subagents = getSubagents({ config, paths, env }, memory, policy);
  const rewriter = await createRewriter({
    memory: { ...memory.capture, ...memory.recall },
    plans: stores.plans,
    ...{ policy, ledger, receipts, subagents },
    transcripts: openTranscripts(claudeDirectory(env)),
    config: { ...config.inject, memoryDeadlineMs: config.recall.deadlineMs, cut: cutRule(config.trim) },
    clock: systemClock,
    ...{ randomHex: (bytes: number) => randomBytes(bytes).toString('hex'), log },
  });
  const proxy = createProxy({
    ...proxyConfig(config, env, paths, log),
    rewriter: withFaults(rewriter, faults),
    ...{ quota: budget, secret, log, clock: systemClock },
  });
  activity = proxy.activity;
  // The services learn that the store is open a few turns of the queue after `opening` settles.
  const opened = (): Promise<unknown> => opening.catch(() => undefined).then(() => nextTick());
  const linked = createLinkedBlock({ ...memory, paths, log });
  const ui = getUi(config, paths, () => services, log);
  const removals = getRemovals({ memory, receipts, linked, opened }, paths.uiRemovalsFile, log);
  const services: EngineServices = {
    ...getServices({ config, paths, log, env, redactor, memory, policy, ledger, budget, linked, subagents }),
    ...{ ledger, activity: proxy.activity, quota: budget.limits },
    ...{ seals, receipts, removals },
    tasks: deferred(opening, ({ tasks }) => tasks, { due: () => [] }),
    // Always there: `openMemory` gets the settings of `share`.
    sharing: deferred(opening, ({ sharing }) => sharing as Sharing, { status: async () => null, wake() {} }),
    opened,
    requests: proxy.stats,
    recalls: rewriter.recalls,
    problems: () => [stores.plans, hostMark, linked, rewriter, proxy].flatMap((part) => part.problems()),
    ui,
  };
  api.serve(services);
  void ui.begin();
  const port = await proxy.listen();
  const isStoreless = watchOpening(opening, stores, log);
  await finishesWithin(opened(), STORE_MS);
  log.info('the engine is ready', { port, version: VERSION, upstream: config.upstream, llm: config.llm });
  const timers = [startCollecting(proxy.activity, memory.maintenance.rest, log), watchIdle(rewriter, config)];
  let closing: Promise<void> | null = null;
  const closeAll = async (): Promise<void> => {
    for (const timer of timers) clearInterval(timer);
    await api.rest();
    const parts = [ui, removals, linked, proxy, rewriter, memory.maintenance, budget, stores.plans, hostMark, api];
    return closeParts(parts, log);
  };
  return {
    port,
    log,
    /** Accepts a client connection from the guard; null when it ended on the way. */
    take: (name: string, client: Socket | null): void => proxy.acceptClient(name, client),
    /** No request is answered, no command runs, and no model is asked. */
    isIdle: () => !api.isBusy() && proxy.activity().answering + memory.maintenance.status().llm.running === 0,
    isStoreless,
    /** Accepts nothing new; resolves when every exchange is over. `off`: no other engine follows, and a summary may end. */
    drain: (off: boolean) => Promise.all([proxy.drain(), off && memory.maintenance.finish(), off && ui.sayStopped()]),
    /** Cuts running exchanges and makes everything durable; idempotent. */
    close: (): Promise<void> => (closing ??= closeAll()),
  };
}

/** @returns whether the store did not open although nothing forbids it, so that another engine might open it */
function watchOpening(opening: Promise<unknown>, { locked }: Stores, log: Log): () => boolean {
  let failed = false;
  opening.catch((error: unknown) => {
    log.error('the memory store did not open; requests continue without', { error });
    failed = locked === null;
  });
  return () => failed;
}

function withUnfinishedTurns(memory: Memory, rewriter: () => RunningRewriter): Memory {
  const { capture } = memory;
  const closeSession: Memory['capture']['closeSession'] = async (id) => {
    rewriter().captureUnfinished(({ context }) => context.sessionId === id);
    await capture.awaitCaptures(id);
    return capture.closeSession(id);
  };
  return { ...memory, capture: { ...capture, closeSession } };
}

/** A client that is killed reports no end of its session. */
function watchIdle(rewriter: RunningRewriter, { compaction: { idleMs } }: Config): NodeJS.Timeout {
  const look = () => rewriter.captureUnfinished(({ sinceMs }) => idleMs > 0 && systemClock.now() - sinceMs >= idleMs);
  return setInterval(look, IDLE_CHECK_MS).unref();
}

async function closeParts(parts: readonly { close(): Promise<void> }[], log: Log): Promise<void> {
  for (const part of parts)
    await part.close().catch((error: unknown) => log.error('a part did not close cleanly', { error }));
  log.info('the engine has ended');
}

async function openLog(config: Config, paths: HomePaths): Promise<{ readonly log: Log; readonly redactor: Redactor }> {
  const redactor = createRedactor({
    // The install's own, created on first use.
    markKey: Buffer.from(await readOrCreateSecret(paths.markKeyFile, () => randomBytes(32).toString('hex')), 'hex'),
  });
  const log = createLog({
    level: config.logLevel,
    process: 'engine',
    sink: fileSink(path.join(paths.logsDir, 'engine.log')),
    redact: (line) => redactor.json(line),
    now: systemClock.now,
  });
  return { log, redactor };
}

async function openLedgers(config: Config, stores: Stores, redactor: Redactor, log: Log) {
  const ledger = await openCostLedger({ store: stores.costs, rule: config.ledger, clock: systemClock, log });
  return {
    budget: await openBudget({
      // The limits of the user's login do not apply to another endpoint.
      rule: config.llm === 'openai' ? { ...config.models, maxUtilization: Number.POSITIVE_INFINITY } : config.models,
      store: stores.usage,
      getRecentCost: () => ledger.recentTotals(systemClock.now() - RECENT_MS),
      clock: systemClock,
      log,
    }),
    ledger,
    receipts: await openReceipts({ store: stores.receipts, redact: redactor.text, most: config.ledger.receipts, log }),
  };
}

/** Set by every start from the whole configuration, so that they say nothing of the shell. */
const PASSED_ON = ['port', 'holdMs', 'upstream', 'upstreamCa', 'upstreamProxy'];

function getUi(config: Config, paths: HomePaths, services: () => EngineServices, log: Log) {
  const folders = libraryFolders(config.library.dir, paths);
  return createUi({ config: config.ui, paths, services, log, now: systemClock.now, folders });
}

function getRemovals(
  parts: Pick<EngineServices, 'memory' | 'receipts' | 'opened'> & { linked: LinkedBlock },
  file: string,
  log: Log,
) {
  const removals = createRemovals({
    file,
    async remove(ids) {
      await removeAll(parts, ids);
      parts.linked.refreshSoon();
    },
    log,
  });
  void parts.opened().then(removals.begin);
  return removals;
}

interface ServiceParts extends Pick<EngineServices, 'memory' | 'policy'>, Pick<EngineOptions, 'env'> {
  readonly config: Config;
  readonly paths: HomePaths;
  readonly log: Log;
  readonly redactor: Redactor;
  readonly ledger: CostLedger;
  readonly budget: Budget;
  readonly linked: LinkedBlock;
  readonly subagents: ReturnType<typeof getSubagents>;
}

/** The part of the API's services that needs nothing of the proxy. */
function getServices(parts: ServiceParts) {
  const { config, paths, log, env, redactor, memory, policy, ledger, budget, linked, subagents } = parts;
  const { now } = systemClock;
  const set = readSettings(env).filter(({ key, source }) => source === 'environment' && !PASSED_ON.includes(key));
  const getProject = createProjectOf(now, openJoinedFolders(paths.projectsFile));
  return {
    memory,
    policy,
    pagesChanged: linked.refreshSoon,
    access: createAccess(policy, memory.library, getProject),
    hooks: createHookHandlers({ memory, policy, subagents, config, linkedText: linked.text, log, now }),
    claudeImport: createClaudeImport({
      imports: memory.imports,
      tokensToday: () => memory.maintenance.status().llm.tokens_today,
      done: createIdSetFile(path.join(paths.journalDir, 'imported')),
      hasModel: config.llm === 'claude' || config.llm === 'openai',
      captures: (projectDir) => policy.of(projectDir).captures,
      getProject,
      now,
    }),
    costs: () => getCosts(ledger, now()),
    budget: () => getBudget(config, budget),
    version: VERSION,
    environment: set.filter(({ value, fallback }) => value !== fallback).map(({ variable }) => variable),
    health: createHealth({ paths, env, now }),
    pausing: createPauseSwitch(paths.pausesFile, now),
    undo: createUndo(now),
    titles: createSessionTitles(claudeDirectory(env), redactor.text),
  };
}

function getSubagents(
  { config, paths, env }: Pick<EngineOptions, 'env'> & { readonly config: Config; readonly paths: HomePaths },
  { library }: Memory,
  policy: Policy,
) {
  const subagents = createSubagents({ paths, claudeDir: claudeDirectory(env), configured: config.facts.subscriptions });
  return { ...subagents, ...createSubagentSource(subagents, library, policy) };
}

function getBudget({ llm, models }: Config, budget: Budget): ModelBudget {
  const asks = llm === 'claude' || llm === 'openai';
  return {
    daily_tokens: asks ? models.dailyTokens : 0,
    session_tokens: asks ? models.sessionTokens : 0,
    sessions: budget
      .recentSessions()
      .map(({ sessionId, tokens, isSpent }) => ({ session_id: sessionId, tokens, spent: isSpent })),
  };
}

function proxyConfig(config: Config, env: NodeJS.ProcessEnv, paths: HomePaths, log: Log) {
  const noProxy = env['no_proxy'] ?? env['NO_PROXY'] ?? '';
  return {
    upstream: {
      origin: config.upstream,
      ...(config.upstreamCa === '' ? {} : { caFile: config.upstreamCa }),
      systemRoots: () => systemRoots(env),
      route: createRoute(config.upstreamProxy === 'off' ? '' : config.upstreamProxy, noProxy),
    },
    certs: {
      leaf() {
        const state = loadLeaf(paths, systemClock.now());
        if (state.kind === 'usable') return state.leaf;
        log.error('the leaf is not served', { ...state });
        return null;
      },
    },
    targetHost: TARGET_HOST,
    rewriteDeadlineMs: config.trim.deadlineMs,
  };
}

/** Calls of memory count twice: against the day's tokens, and in the cost ledger. */
function getUsage(budget: Budget, ledger: CostLedger): UsageCounter {
  return {
    today: budget.today,
    record(spent) {
      budget.record(spent);
      const { calls, tokens, costUsd: usd, sessionId: conversation = '' } = spent;
      ledger.recordOwnCall({ conversation, calls, tokens, usd });
    },
  };
}

/** V8 collects garbage only while a program allocates, and keeps what a busy hour took. */
function startCollecting(activity: () => Activity, rest: () => Promise<void>, log: Log): NodeJS.Timeout {
  const collect = (): void => {
    const startMs = performance.now();
    globalThis.gc?.();
    log.debug('garbage was collected', { ms: Math.round(performance.now() - startMs) });
  };
  const restAll = (): void =>
    void rest().then(collect, (error: unknown) => log.warn('the index keeps its caches', { error }));
  const steps = [
    { afterMs: COLLECT_AFTER_MS, run: collect },
    { afterMs: REST_AFTER_MS, run: restAll },
  ];
  return setInterval(createIdleSteps(activity, systemClock.now, steps), COLLECTOR_MS).unref();
}

export interface Stores {
  readonly usage: UsageStore;
  readonly costs: LedgerStore;
  readonly receipts: ReceiptStore;
  readonly plans: PlanStore;
  /** Why nothing in the home may be written, memory included; null when it may. */
  readonly locked: Error | null;
}

const NO_RECORDS = { load: async () => [], append: async () => {}, replace: async () => {}, close: async () => {} };

/** Opens the proxy's stores where the home has our schema; otherwise plans are only replayed and nothing is written. */
async function openStores(paths: HomePaths, redactor: Redactor, log: Log): Promise<Stores> {
  const plans = openPlanStore(paths.plansDir);
  const locked = await openSchema(paths).then(
    (upgrade) => {
      if (upgrade !== null) log.info('the home was upgraded; the files as they were are in the backup', { ...upgrade });
      return null;
    },
    (error: unknown) => error as Error,
  );
  if (locked !== null) {
    const newer = 'plans of another comet-cc are sent as they are, never changed';
    return {
      usage: { load: async () => null, save: async () => {} },
      costs: NO_RECORDS,
      receipts: NO_RECORDS,
      plans: { ...plans, append: () => Promise.reject(new CometError('schema_newer', newer)) },
      locked,
    };
  }
  return {
    usage: createUsageFile(path.join(paths.ledgerDir, 'model-use.json'), log),
    costs: openLedgerFile(path.join(paths.ledgerDir, 'costs.jsonl'), (message) => log.warn('the ledger', { message })),
    receipts: openReceiptFile(path.join(paths.ledgerDir, 'receipts.jsonl'), redactor.text),
    plans,
    locked,
  };
}

/** Settings of `share` hold as soon as they are in the file, so that `comet-cc share` needs no restart. */
function shareOptions(env: NodeJS.ProcessEnv, { configFile }: HomePaths, { keepsHere }: Policy) {
  let latest: { readonly stamp: string; readonly settings: ShareSettings } | null = null;
  return {
    settings(): ShareSettings {
      const stats = statSync(configFile, { throwIfNoEntry: false });
      const stamp = `${stats?.ino} ${stats?.mtimeMs} ${stats?.size}`;
      if (latest?.stamp !== stamp) latest = { stamp, settings: readShareSettings(env) };
      return latest.settings;
    },
    isForbidden: keepsHere,
    async keepSettings({ url, scope, projects, trusted, name }: Partial<ShareSettings>): Promise<void> {
      const changed = { url, scope, name, projects: projects?.join(','), trust: trusted?.join(',') };
      for (const [key, value] of Object.entries(changed))
        if (value !== undefined) await writeSetting(env, `share.${key}`, value, true);
    },
  };
}

function readShareSettings(env: NodeJS.ProcessEnv): ShareSettings {
  const { projects, trust, raw, ...others } = loadConfig(env).config.share;
  return { ...others, raw: raw === 'on', projects: listed(projects), trusted: listed(trust) };
}

const listed = (text: string): string[] => text.split(/[\s,]+/).filter((each) => each !== '');
