import { beforeAbort, createSerialQueue, finishesWithin, type SerialQueue } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { isImported, isImportLink } from '../ingest/imported-turn.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { replaceDrafts } from '../model/edit.ts';
import { isDraft, type MemoryNode } from '../model/node.ts';
import type { LanguageModel, SummaryResult } from '../models/model.ts';
import { type Backoff, createBackoff } from '../models/quota.ts';
import { isCall } from '../text/actions.ts';
import type { Batch, Compactor, CompactorParts } from './compactor.ts';
import { isSameWork, withRevisionsOf } from './supersede.ts';

const MOST_DEFERRED = 1_000;
/** Check often: clocks jump, machines sleep, and a quota may reset early. */
const LONGEST_SLEEP_MS = 60_000;
const ATTEMPTS = 3;
/** Of the 30 seconds that a stop may take; most summaries need less. */
const FINISH_MS = 20_000;
/** Of jobs that one call answers: rules and schema are most of a short one. As many as a batch has at most. */
const MOST_TURNS = 10;
/** A call for fewer waits for more of its session, or until that is idle. */
const LEAST_TURNS = 5;

interface Job extends Pick<Batch, 'sessionId' | 'project' | 'reason'> {
  ids: readonly string[];
  /** How many they stand for. */
  turns: number;
  readonly isPast: boolean;
  /** Failures between which the model answered other jobs. */
  attempts: number;
  failures: number;
  /** Value of `answers` at the last failure. */
  failedAt: number;
  /** A rule-made brief was written. */
  briefed: boolean;
  /** Until the call begins. */
  timer: NodeJS.Timeout | null;
}

type Parts = Pick<CompactorParts, 'revisions' | 'linker' | 'nodeLimit' | 'turnRegistry'> &
  Pick<ServiceParts, 'model' | 'quota' | 'clock' | 'catalogue' | 'store' | 'turnReader' | 'taskQueue' | 'log'> & {
    readonly compactor: Compactor;
    readonly config: Pick<Config, 'compaction'>;
    /** Reading what a session said takes time that a running recall needs. */
    readonly priority: { rest(): Promise<void> };
    /** Keeps what a model found in turns that rules have read. Never rejects. */
    readonly facts: { readSummary(batch: Batch, candidates: readonly unknown[]): Promise<void> };
  };

interface State extends Parts {
  readonly serial: SerialQueue;
  readonly gate: Backoff;
  /** No call begins. */
  readonly closing: AbortController;
  /** The running one ends. */
  readonly cut: AbortController;
  deferred: Job[];
  /** The newest that waits for more turns or for its own, by session and project. */
  readonly waiting: Map<string, Job>;
  answers: number;
  timer: NodeJS.Timeout | null;
}

/** Replaces rule-made drafts by the model's nodes. */
export type ModelUpgrades = ReturnType<typeof createModelUpgrades>;

export function createModelUpgrades(parts: Parts) {
  const { model, quota, clock, taskQueue, log } = parts;
  const serial = createSerialQueue((error) =>
    log.error('drafts stay: the model’s nodes could not be stored', { error }),
  );
  const gate = createBackoff(clock, quota);
  const [closing, cut] = [new AbortController(), new AbortController()];
  const own = { serial, gate, closing, cut, answers: 0, timer: null };
  const state: State = { ...parts, ...own, deferred: [], waiting: new Map() };
  return {
    /** Queues the drafts of one batch; false when no call follows at once and the caller has to write the brief. */
    add(drafts: readonly MemoryNode[]): boolean {
      const first = drafts[0];
      if (model === null || first === undefined || closing.signal.aborted) return false;
      return queue(state, getJob(first, drafts)) && gate.isOpen(first.session_id);
    },
    /** Upgrades now, without retries; false when the model fails or may not be called. */
    async upgrade(drafts: readonly MemoryNode[]): Promise<boolean> {
      const [first] = drafts;
      if (first === undefined) return false;
      let isDone = false;
      await taskQueue.run('compacter', () =>
        serial(async () => {
          isDone = await upgradeOnce(state, getJob(first, drafts));
        }),
      );
      return isDone;
    },
    /** Batches of drafts that wait for the model, why, and the earliest time of the next call; as in the status. */
    deferred() {
      const { length: deferred } = state.deferred;
      if (deferred === 0) return { deferred, deferred_because: '', deferred_until: null };
      const until = new Date(clock.now() + gate.waitMs()).toISOString();
      return { deferred, deferred_because: gate.because(), deferred_until: until };
    },
    /** Begins the calls that wait for more turns of the session, or of any. */
    release(sessionId?: string): void {
      for (const job of state.waiting.values()) if (job.sessionId === (sessionId ?? job.sessionId)) begin(state, job);
    },
    /** Retries deferred batches if the model may be called. */
    retryDeferred(): void {
      if (state.deferred.length > 0 && gate.isOpen()) retry(state);
    },
    /** Begins no other call, and waits for the running one: the next start would pay for it again. */
    async finish(): Promise<void> {
      closing.abort();
      const idle = serial(async () => {});
      await finishesWithin(idle, FINISH_MS);
    },
    async close(): Promise<void> {
      closing.abort();
      cut.abort(new Error('memory is closing'));
      for (const { timer } of [state, ...state.waiting.values()]) if (timer !== null) clearTimeout(timer);
      await serial(async () => {});
    },
  };
}

const getKey = ({ sessionId, project, isPast }: Job): string => [sessionId, project, isPast].join('\n');

/** Whether the call begins, else it waits for more turns. */
function queue(state: State, job: Job, leastTurns = LEAST_TURNS): boolean {
  const { idleMs } = state.config.compaction;
  let all = state.waiting.get(getKey(job));
  if (all !== undefined && all.failures + job.failures === 0 && all.turns + job.turns <= MOST_TURNS) {
    all.ids = [...all.ids, ...job.ids];
    all.turns += job.turns;
    all.briefed &&= job.briefed;
  } else {
    if (all !== undefined) begin(state, all);
    all = job;
    job.timer = setTimeout(() => begin(state, job), idleMs).unref();
    state.waiting.set(getKey(job), job);
  }
  if (idleMs === 0 || all.isPast || all.turns >= leastTurns) begin(state, all);
  return all.timer === null;
}

function begin(state: State, job: Job): void {
  if (job.timer === null) return;
  clearTimeout(job.timer);
  job.timer = null;
  void state.taskQueue.run('compacter', () =>
    state.serial(async () => {
      await state.priority.rest();
      if (state.waiting.get(getKey(job)) === job) state.waiting.delete(getKey(job));
      await upgrade(state, job);
    }),
  );
}

function defer(state: State, job: Job): void {
  if (state.closing.signal.aborted) return;
  state.deferred = [...state.deferred, job].slice(-MOST_DEFERRED);
  sleep(state);
}

function sleep(state: State): void {
  const waitMs = Math.min(LONGEST_SLEEP_MS, Math.max(1_000, state.gate.waitMs()));
  state.timer ??= setTimeout(() => wake(state), waitMs).unref();
}

function wake(state: State): void {
  state.timer = null;
  if (state.gate.isOpen()) retry(state);
  else if (!state.closing.signal.aborted) sleep(state);
}

function retry(state: State): void {
  if (state.timer !== null) clearTimeout(state.timer);
  state.timer = null;
  // Fewest failures first, so that a job that always fails does not block the rest.
  const jobs = state.deferred.toSorted((a, b) => a.failures - b.failures);
  state.deferred = [];
  for (const job of jobs) queue(state, job, 0);
}

async function getBatch(
  { catalogue, turnReader, turnRegistry }: State,
  job: Job,
): Promise<{ readonly batch: Batch; readonly drafts: MemoryNode[] }> {
  const isWanted = (node: MemoryNode): boolean => isDraft(node) && !turnRegistry.areAbandoned(node.turns);
  const drafts = job.ids.flatMap((id) => catalogue.get(id) ?? []).filter(isWanted);
  const turnIds = new Set(drafts.flatMap((node) => node.turns));
  const turns = (await turnReader.ofSession(job.sessionId)).filter((turn) => turnIds.has(turn.turnId));
  const past = getPast(drafts);
  return { batch: { ...job, turns, ...(past === null ? {} : { past }) }, drafts };
}

/** Without retry: the caller reports the failure to the user. */
async function upgradeOnce(state: State, job: Job): Promise<boolean> {
  const { model, closing, gate } = state;
  const { batch, drafts } = await getBatch(state, job);
  const isOpen = !closing.signal.aborted && gate.isOpen(job.sessionId);
  if (model === null || !isOpen || batch.turns.length === 0) return false;
  try {
    await summarize(state, model, batch, drafts);
    return true;
  } catch (error) {
    state.gate.failed();
    state.log.warn('model failed to summarize imported turns; drafts remain', { sessionId: job.sessionId, error });
    return false;
  }
}

async function upgrade(state: State, job: Job): Promise<void> {
  const { model, closing, gate, compactor, log } = state;
  if (model === null || closing.signal.aborted) return;
  const isOpen = gate.isOpen(job.sessionId);
  const wait = (): void => (gate.isSpent(job.sessionId) ? undefined : defer(state, job));
  if (!isOpen && job.briefed) return wait();
  const { batch, drafts } = await getBatch(state, job);
  if (batch.turns.length === 0) return;
  if (!isOpen) {
    await compactor.writeLocalBrief(batch);
    job.briefed = true;
    return wait();
  }
  try {
    await summarize(state, model, batch, drafts);
    if (state.deferred.length > 0 && gate.isOpen()) retry(state);
  } catch (error) {
    if (closing.signal.aborted) return;
    gate.failed();
    // An outage is not the job's fault: count an attempt only if the model answered another job since.
    if (job.failedAt !== state.answers) job.attempts += 1;
    job.failedAt = state.answers;
    job.failures += 1;
    log.warn('model failed to summarize; drafts remain', { sessionId: job.sessionId, attempts: job.attempts, error });
    if (isKnown(state, batch)) await compactor.writeLocalBrief(batch);
    if (job.attempts < ATTEMPTS) defer(state, job);
  }
}

async function summarize(
  state: State,
  model: LanguageModel,
  batch: Batch,
  drafts: readonly MemoryNode[],
): Promise<void> {
  const { compactor, gate, cut } = state;
  const result = await beforeAbort(compactor.summarize(model, batch, cut.signal), cut.signal);
  gate.succeeded();
  state.answers += 1;
  await compactor.takeTasks(await replace(state, drafts, result, batch), batch);
  if (!isKnown(state, batch)) return;
  await compactor.writeBrief(result, batch);
  await state.facts.readSummary(batch, result.facts ?? []);
}

/** False when a turn was removed during the model call. */
const isKnown = ({ store }: State, { turns }: Batch): boolean => turns.every(({ turnId }) => store.isSettled(turnId));

async function replace(
  { compactor, model, store, catalogue, clock, revisions, linker, nodeLimit }: State,
  drafts: readonly MemoryNode[],
  result: SummaryResult,
  batch: Batch,
): Promise<readonly MemoryNode[]> {
  const fresh = compactor.buildNodes(result, batch, model?.name ?? '');
  return store.exclusive(async (store) => {
    await store.refresh();
    // Discard the result if a draft was removed or edited during the model call.
    const now = drafts.flatMap((node) => catalogue.get(node.node_id) ?? []);
    if (now.length < drafts.length || drafts.some((node, at) => !isSameWork(node, now[at] as MemoryNode))) return [];
    const skipped = new Set(result.skipped);
    const idle = now.filter(
      ({ turns, pinned_from }) => pinned_from === undefined && turns.every((id) => skipped.has(id)),
    );
    const left = now.filter((node) => !idle.includes(node));
    const all = replaceDrafts(left, fresh, new Date(clock.now()).toISOString());
    const saved = await revisions.apply(
      all.slice(0, fresh.length).map((heir) => withRevisionsOf(heir, now)),
      result.nodes.map(({ revises = [] }) => revises.flatMap(({ ref }) => ref ?? [])),
      batch.turns,
    );
    await store.save([...saved, ...all.slice(fresh.length)], batch.turns);
    const calls = idle.flatMap((node) => catalogue.getChildren(node.node_id)).filter(isCall);
    await store.remove([...idle, ...calls].map(({ node_id }) => node_id));
    await store.dismiss([...skipped]);
    linker.link(saved.slice(0, fresh.length));
    nodeLimit.enforce(batch.sessionId);
    return saved.slice(0, fresh.length);
  });
}

function getJob(first: MemoryNode, drafts: readonly MemoryNode[]): Job {
  const { session_id: sessionId, project, compaction_reason: reason } = first;
  const ids = drafts.map((node) => node.node_id);
  const turns = new Set(drafts.flatMap((node) => node.turns)).size;
  const own = { ids, turns, sessionId, project, reason, isPast: isImported(first) };
  return { ...own, attempts: 0, failures: 0, failedAt: -1, briefed: false, timer: null };
}

function getPast([first]: readonly MemoryNode[]): Batch['past'] | null {
  if (first === undefined || !isImported(first)) return null;
  return { atMs: Date.parse(first.created_at), links: first.source_links.filter(isImportLink) };
}
