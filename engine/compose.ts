import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { leafSource } from '../certs/index.ts';
import { systemClock } from '../common/async.ts';
import { type Config, loadConfig } from '../common/config.ts';
import type { Problem } from '../common/errors.ts';
import { ensureDir } from '../common/files.ts';
import { createLog, fileSink, type Log } from '../common/log.ts';
import { type HomePaths, homePaths, VERSION } from '../common/paths.ts';
import { type Budget, openBudget, type UsageCounter } from '../memory/models/budget.ts';
import { createProjectOf } from '../memory/storage/fs/git-project.ts';
import { createIdSetFile } from '../memory/storage/fs/id-set-file.ts';
import { createRoute } from '../proxy/guard/upstream-proxy.ts';
import { createProxy } from '../proxy/index.ts';
import { type CostLedger, openCostLedger } from '../proxy/ledger/index.ts';
import { openReceipts } from '../proxy/ledger/receipts.ts';
import { createRewriter, type RewriterConfig } from '../proxy/rewrite/rewriter.ts';
import { createRedactor, markKey } from '../redact/index.ts';
import { createSecretlint } from '../redact/secretlint.ts';
import { type Costs, conversationCosts, costsOf } from './api/costs.ts';
import { createHandlers } from './api/handlers.ts';
import { createHookHandlers } from './api/hooks.ts';
import { createClaudeImport } from './api/import-claude.ts';
import { type ApiServer, openApiServer } from './api/server.ts';
import { lateMemory } from './deferred-memory.ts';
import { faultAt, readFaults, withFaults } from './lifecycle/fault-injection.ts';
import { openMemory } from './open-memory.ts';
import { openStores } from './open-stores.ts';
import { consentingMemory, openConsent } from './policy/index.ts';
import { cutRule } from './trim-config.ts';

const TARGET_HOST = 'api.anthropic.com';
/** A restarted engine takes requests again after this, even when its store needs longer to open. */
const STORE_MS = 300;
const OWNERSHIP_MS = 1_000;

export interface RunningEngine {
  /** Loopback port for the guard. */
  readonly port: number;
  readonly log: Log;
  /** Takes the connection of a client that the guard hands over; null when that has ended on the way. */
  take(name: string, client: Socket | null): void;
  /** Takes nothing new; resolves when every exchange is over. */
  drain(): Promise<void>;
  /** Cuts what still runs and leaves everything durable; idempotent. */
  close(): Promise<void>;
}

export interface EngineOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly secret: string;
  /** Called once when another engine took over the home. */
  readonly onLost: () => void;
}

/** Joins the engine's parts. Whoever opens something here closes it in `close`, in the opposite order. */
export async function composeEngine({ env, secret, onLost }: EngineOptions): Promise<RunningEngine> {
  const { config, home } = loadConfig(env);
  const paths = homePaths(home);
  const faults = readFaults(env['COMET_FAULT'], config.upstream);
  await faultAt(faults, 'start')?.();
  for (const dir of [paths.home, paths.logsDir, paths.runDir]) await ensureDir(dir);
  const scanner = createSecretlint((rule, error) => log.warn('a rule for secrets broke', { rule, error }));
  const redactor = createRedactor({ markKey: await markKey(paths), scanner });
  const log = createLog({
    level: config.logLevel,
    process: 'engine',
    sink: fileSink(engineLogFile(paths)),
    redact: (line) => redactor.json(line).text,
    now: systemClock.now,
  });
  // First of all: whoever holds this socket is the home's one writer.
  const api = await openApiServer(paths.engineSocket, log);
  const stores = await openStores(paths, redactor, log);
  const governor = await openBudget({
    // The limits of the user's login are no limits of another endpoint.
    rule: config.llm === 'openai' ? { ...config.models, maxUtilization: Number.POSITIVE_INFINITY } : config.models,
    store: stores.usage,
    clock: systemClock,
    log,
  });
  const ledger = await openCostLedger({
    store: stores.costs,
    rule: config.ledger,
    clock: systemClock,
    log,
  });
  const receipts = await openReceipts({
    store: stores.receipts,
    redact: redactor.text,
    most: config.ledger.receipts,
    log,
  });
  const memoryParts = { env, config, paths, redactor, spending: spendingOf(governor, ledger), governor, log };
  const opening = Promise.resolve(faultAt(faults, 'store')?.()).then(() => {
    if (stores.locked !== null) throw stores.locked;
    return openMemory(memoryParts);
  });
  const late = lateMemory(opening, config.llm);
  const consent = await openConsent({
    paths,
    scope: config.recall.scope,
    now: systemClock.now,
    report: (message, error) => log.error(message, { error }),
  });
  const memory = consentingMemory(late, consent);
  const { plans } = stores;
  const rewriter = await createRewriter({
    memory,
    plans,
    consent,
    ledger,
    receipts,
    config: rewriterConfig(config),
    clock: systemClock,
    randomHex: (bytes) => randomBytes(bytes).toString('hex'),
    log,
  });
  const proxy = createProxy({
    rewriter: withFaults(rewriter, faults),
    quota: governor,
    certs: leafSource({
      paths,
      now: systemClock.now,
      onRefused: (doubt) => log.error('the leaf is not served', { ...doubt }),
    }),
    upstream: {
      origin: config.upstream,
      ...(config.upstreamCa === '' ? {} : { caFile: config.upstreamCa }),
      route: createRoute(config.upstreamProxy === 'off' ? '' : config.upstreamProxy, noProxy(env)),
    },
    targetHost: TARGET_HOST,
    rewriteDeadlineMs: config.trim.deadlineMs,
    secret,
    log,
    clock: systemClock,
  });
  const opened = (): Promise<unknown> => opening.catch(() => undefined);
  const costs = (): Costs => costsOf(ledger, systemClock.now());
  const claudeImport = createClaudeImport({
    memory,
    done: createIdSetFile(path.join(paths.journalDir, 'imported')),
    hasModel: config.llm === 'claude' || config.llm === 'openai',
    takesIn: (projectDir) => consent.of(projectDir).captures,
    now: systemClock.now,
  });
  const conversation = (id: string): ReturnType<typeof conversationCosts> => conversationCosts(ledger, id);
  const parts = {
    memory,
    opened,
    requests: proxy.stats,
    costs,
    receipts,
    pauses: consent.pauses,
    claudeImport,
    conversation,
  };
  const hooks = createHookHandlers({
    memory,
    consent,
    inject: config.inject,
    recallMs: config.recall.deadlineMs,
    log,
    now: systemClock.now,
  });
  const problems = (): Problem[] => [...plans.problems(), ...consent.problems()];
  api.serve(
    createHandlers({
      ...parts,
      consent,
      projectOf: createProjectOf(systemClock.now),
      hooks,
      problems,
      version: VERSION,
    }),
  );
  const port = await proxy.listen();
  opening.catch((error: unknown) => log.error('the memory store did not open; requests go on without', { error }));
  await Promise.race([opened(), after(STORE_MS, undefined, { ref: false })]);
  log.info('the engine is ready', { port, version: VERSION, upstream: config.upstream, llm: config.llm });
  const watch = watchOwnership(api, onLost);
  let closing: Promise<void> | null = null;
  const closeAll = async (): Promise<void> => {
    clearInterval(watch);
    for (const part of [proxy, rewriter, memory, governor, plans, api]) {
      await part.close().catch((error: unknown) => log.error('a part did not close cleanly', { error }));
    }
    log.info('the engine has ended');
  };
  return {
    port,
    log,
    take: (name, client) => proxy.acceptClient(name, client),
    drain: () => proxy.drain(),
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

export function engineLogFile(paths: HomePaths): string {
  return path.join(paths.logsDir, 'engine.log');
}

function noProxy(env: NodeJS.ProcessEnv): string {
  return env['no_proxy'] ?? env['NO_PROXY'] ?? '';
}

/** The calls of memory count twice: against the day's tokens, and in what all of this costs. */
function spendingOf(governor: Budget, ledger: CostLedger): UsageCounter {
  return {
    today: governor.today,
    record(spent) {
      governor.record(spent);
      const { calls, tokens, costUsd: usd, sessionId: conversation = '' } = spent;
      ledger.recordOwnCall({ conversation, calls, tokens, usd });
    },
  };
}

function rewriterConfig({ trim, inject, recall }: Config): RewriterConfig {
  return { ...inject, memoryDeadlineMs: recall.deadlineMs, cut: cutRule(trim) };
}

function watchOwnership(api: ApiServer, onLost: () => void): NodeJS.Timeout {
  const watch = setInterval(() => {
    api.ownsPath().then(
      (owned) => {
        if (owned) return;
        clearInterval(watch);
        onLost();
      },
      // A directory that cannot be looked at says nothing about who owns the socket in it.
      () => undefined,
    );
  }, OWNERSHIP_MS);
  return watch;
}
