import type { Clock } from '../../common/async.ts';
import { beforeAbort, createSerialQueue } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import { isImported, isImportLink } from '../ingest/imported-turn.ts';
import type { TaskQueue } from '../ingest/task-queue.ts';
import type { TurnReader } from '../ingest/turn-reader.ts';
import type { MemoryNode } from '../model/node.ts';
import { isDraft } from '../model/node.ts';
import { replaceDrafts } from '../model/replace-drafts.ts';
import { createBackoff } from '../models/backoff.ts';
import type { LanguageModel, SummaryResult } from '../models/language-model.ts';
import type { ModelQuota } from '../models/quota.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import type { Store } from '../storage/node-store.ts';
import type { CompactionReason } from './compaction.ts';
import type { Batch, Compactor, NodeLimit } from './compactor.ts';
import type { Linker } from './linker.ts';
import { isSameWork, type Revisions, withRevisionsOf } from './supersede.ts';

const MOST_DEFERRED = 1_000;
/** Check often: clocks jump, machines sleep, and a quota may reset early. */
const LONGEST_SLEEP_MS = 60_000;
const ATTEMPTS = 3;

/** Fields as in the status. */
export interface DeferredUpgrades {
  /** Batches of drafts that wait for the model. */
  readonly deferred: number;
  /** '' when none waits. */
  readonly deferred_because: string;
  /** Earliest time of the next model call, ISO; null when none waits. */
  readonly deferred_until: string | null;
}

/** Replaces rule-made drafts by the model's nodes. */
export interface ModelUpgrades {
  /** Queues the drafts of one batch; false when no model is available and the caller has to write the brief. */
  add(drafts: readonly MemoryNode[]): boolean;
  /** Upgrades now, without retries; false when the model fails or may not be called. */
  upgrade(drafts: readonly MemoryNode[]): Promise<boolean>;
  deferred(): DeferredUpgrades;
  /** Retries deferred batches if the model may be called. */
  retryDeferred(): void;
  close(): Promise<void>;
}

interface Job {
  readonly ids: readonly string[];
  readonly sessionId: string;
  readonly project: string;
  readonly reason: CompactionReason;
  /** Failures between which the model answered other jobs. */
  attempts: number;
  failures: number;
  /** Value of `answers` at the last failure. */
  failedAt: number;
  /** A rule-made brief was written. */
  briefed: boolean;
}

type Parts = {
  readonly model: LanguageModel | null;
  readonly quota?: ModelQuota;
  readonly clock: Clock;
  readonly catalogue: NodeRegistry;
  readonly compactor: Compactor;
  readonly revisions: Revisions;
  readonly store: Store;
  readonly linker: Linker;
  readonly nodeLimit: NodeLimit;
  readonly turnReader: TurnReader;
  readonly taskQueue: TaskQueue;
  readonly log: Log;
};

export function createModelUpgrades(parts: Parts): ModelUpgrades {
  const { model, quota, clock, catalogue, compactor, revisions, store, linker, nodeLimit, turnReader, taskQueue, log } =
    parts;
  const serial = createSerialQueue((error) =>
    log.error('drafts stay: the model’s nodes could not be stored', { error }),
  );
  const gate = createBackoff(clock, quota);
  const closing = new AbortController();
  let deferred: Job[] = [];
  let answers = 0;
  let timer: NodeJS.Timeout | null = null;

  const queue = (job: Job): void => void taskQueue.run('compacter', () => serial(() => work(job)));

  function defer(job: Job): void {
    if (closing.signal.aborted) return;
    deferred = [...deferred, job].slice(-MOST_DEFERRED);
    sleep();
  }

  function sleep(): void {
    timer ??= setTimeout(wake, Math.min(LONGEST_SLEEP_MS, Math.max(1_000, gate.waitMs()))).unref();
  }

  function wake(): void {
    timer = null;
    if (gate.isOpen()) retry();
    else if (!closing.signal.aborted) sleep();
  }

  function retry(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    // Fewest failures first, so that a job that always fails does not block the rest.
    const jobs = deferred.toSorted((a, b) => a.failures - b.failures);
    deferred = [];
    for (const job of jobs) queue(job);
  }

  async function batchOf(job: Job): Promise<{ batch: Batch; drafts: MemoryNode[] }> {
    const drafts = job.ids.flatMap((id) => catalogue.get(id) ?? []).filter(isDraft);
    const turnIds = new Set(drafts.flatMap((node) => node.turns));
    const turns = (await turnReader.ofSession(job.sessionId)).filter((turn) => turnIds.has(turn.turnId));
    const past = pastOf(drafts);
    return { batch: { ...job, turns, ...(past === null ? {} : { past }) }, drafts };
  }

  /** Without retry: the caller reports the failure to the user. */
  async function workOnce(job: Job): Promise<boolean> {
    const { batch, drafts } = await batchOf(job);
    if (model === null || closing.signal.aborted || !gate.isOpen() || batch.turns.length === 0) return false;
    try {
      const result = await beforeAbort(compactor.summarize(model, batch, closing.signal), closing.signal);
      gate.succeeded();
      answers += 1;
      await replace(drafts, result, batch);
      if (isKnown(batch)) await compactor.writeBrief(result, batch);
      return true;
    } catch (error) {
      gate.failed();
      log.warn('model failed to summarize imported turns; drafts remain', { sessionId: job.sessionId, error });
      return false;
    }
  }

  /** False when a turn was removed during the model call. */
  function isKnown({ turns }: Batch): boolean {
    return turns.every(({ turnId }) => catalogue.nodesCovering(turnId).length > 0);
  }

  async function work(job: Job): Promise<void> {
    if (model === null || closing.signal.aborted) return;
    const { batch, drafts } = await batchOf(job);
    if (batch.turns.length === 0) return;
    if (!gate.isOpen()) {
      if (!job.briefed) await compactor.writeLocalBrief(batch);
      job.briefed = true;
      return defer(job);
    }
    try {
      const result = await beforeAbort(compactor.summarize(model, batch, closing.signal), closing.signal);
      gate.succeeded();
      answers += 1;
      await replace(drafts, result, batch);
      if (isKnown(batch)) await compactor.writeBrief(result, batch);
      if (deferred.length > 0 && gate.isOpen()) retry();
    } catch (error) {
      if (closing.signal.aborted) return;
      gate.failed();
      // An outage is not the job's fault: count an attempt only if the model answered another job since.
      if (job.failedAt !== answers) job.attempts += 1;
      job.failedAt = answers;
      job.failures += 1;
      log.warn('model failed to summarize; drafts remain', {
        sessionId: job.sessionId,
        attempts: job.attempts,
        error,
      });
      if (isKnown(batch)) await compactor.writeLocalBrief(batch);
      if (job.attempts < ATTEMPTS) defer(job);
    }
  }

  async function replace(drafts: readonly MemoryNode[], result: SummaryResult, batch: Batch): Promise<void> {
    const fresh = compactor.buildNodes(result, batch, model?.name ?? '');
    await store.exclusive(async (held) => {
      await held.refresh();
      // Discard the result if a draft was removed or edited during the model call.
      const now = drafts.flatMap((node) => catalogue.get(node.node_id) ?? []);
      if (now.length < drafts.length || drafts.some((node, at) => !isSameWork(node, now[at] as MemoryNode))) return;
      const all = replaceDrafts(now, fresh, new Date(clock.now()).toISOString());
      const heirs = all.slice(0, fresh.length).map((heir) => withRevisionsOf(heir, now));
      const saved = await revisions.apply(
        heirs,
        result.nodes.map(({ revises = [] }) => revises),
      );
      await held.save([...saved, ...all.slice(fresh.length)], batch.turns);
      linker.link(saved.slice(0, fresh.length));
      nodeLimit.enforce(batch.sessionId);
    });
  }

  return {
    add(drafts) {
      const first = drafts[0];
      if (model === null || first === undefined || closing.signal.aborted) return false;
      queue(jobOf(first, drafts));
      return gate.isOpen();
    },
    async upgrade(drafts) {
      const [first] = drafts;
      if (first === undefined) return false;
      let isDone = false;
      await taskQueue.run('compacter', () =>
        serial(async () => {
          isDone = await workOnce(jobOf(first, drafts));
        }),
      );
      return isDone;
    },
    deferred() {
      if (deferred.length === 0) return { deferred: 0, deferred_because: '', deferred_until: null };
      const until = new Date(clock.now() + gate.waitMs()).toISOString();
      return { deferred: deferred.length, deferred_because: gate.because(), deferred_until: until };
    },
    retryDeferred() {
      if (deferred.length > 0 && gate.isOpen()) retry();
    },
    async close() {
      closing.abort(new Error('memory is closing'));
      if (timer !== null) clearTimeout(timer);
      await serial(async () => {});
    },
  };
}

function jobOf(first: MemoryNode, drafts: readonly MemoryNode[]): Job {
  const { session_id: sessionId, project, compaction_reason: reason } = first;
  const ids = drafts.map((node) => node.node_id);
  return { ids, sessionId, project, reason, attempts: 0, failures: 0, failedAt: -1, briefed: false };
}

function pastOf([first]: readonly MemoryNode[]): Batch['past'] | null {
  if (first === undefined || !isImported(first)) return null;
  return { atMs: Date.parse(first.created_at), links: first.source_links.filter(isImportLink) };
}
