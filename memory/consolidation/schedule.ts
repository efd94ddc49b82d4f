import { DAY_MS, finishesWithin } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { getReason } from '../../common/errors.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { dueTime, readTrigger } from '../tasks/trigger.ts';
import type { Consolidator } from './consolidation.ts';

interface Parts extends Pick<ServiceParts, 'clock' | 'model' | 'quota' | 'log'> {
  readonly config: Pick<Config, 'llm' | 'dream'>;
  readonly dreams: Pick<Consolidator, 'run' | 'lastFullMs'>;
  /** No night before this counts as missed, ms. */
  readonly sinceMs: number;
  /** Resolves once the nodes are loaded. */
  readonly ready: Promise<void>;
}

/** How often a due pass is looked for. A single timer would miss one that came due while the machine slept. */
const EVERY_MS = 60_000;
/** A pass begins at least this long after the newest request. */
const QUIET_MS = 120_000;
const AFTER_FAILURE_MS = 3_600_000;
const CATCH_UP_MS = 1_500;

export type Schedule = ReturnType<typeof createSchedule>;

/** Consolidates after a time without requests, and each night, also a missed one. Requests go first. */
export function createSchedule(parts: Parts) {
  const { config, clock, model, quota, dreams, ready, log } = parts;
  const idleMs = config.llm === 'off' ? 0 : config.dream.idleMinutes * 60_000;
  const nights = createNights(parts);
  let timer: NodeJS.Timeout | null = null;
  let cancel = new AbortController();
  let running: Promise<void> | null = null;
  let closed = false;

  function begin(work: (signal: AbortSignal) => Promise<void>): void {
    const { signal } = cancel;
    const mine = (running ?? Promise.resolve())
      .then(() => (closed ? undefined : work(signal)))
      .finally(() => {
        if (running === mine) running = null;
      });
    running = mine;
  }

  function schedule(): void {
    if (timer !== null) clearTimeout(timer);
    timer = closed || idleMs === 0 ? null : setTimeout(startIdle, idleMs).unref();
  }

  /** Waits for the quota, so that one run can do everything. */
  function startIdle(): void {
    timer = null;
    if (model !== null && quota.decide().kind === 'defer') schedule();
    else begin(consolidate);
  }

  async function consolidate(signal: AbortSignal): Promise<void> {
    try {
      await ready;
      signal.throwIfAborted();
      if ((await dreams.run({ dryRun: false, noBrief: true }, signal)).left > 0) schedule();
    } catch (error) {
      if (!signal.aborted) log.error('consolidation failed', { error });
    }
  }

  function look(): void {
    if (nights.mayBegin() && running === null) begin(nights.run);
  }

  schedule();
  look();
  const looking = setInterval(look, EVERY_MS).unref();
  return {
    problems: nights.problems,
    /** Waits for a running pass that makes up for missed nights, `CATCH_UP_MS` at most. */
    async caughtUp(): Promise<void> {
      const lastMs = dreams.lastFullMs();
      if (running === null || lastMs === null || clock.now() - lastMs < DAY_MS) return;
      await finishesWithin(running, CATCH_UP_MS);
    },
    /** Cancels a running consolidation and restarts the timers. */
    reset(): void {
      cancel.abort(new Error('a request arrived'));
      cancel = new AbortController();
      nights.wait(QUIET_MS);
      schedule();
    },
    async close(): Promise<void> {
      closed = true;
      cancel.abort(new Error('memory is closing'));
      clearInterval(looking);
      schedule();
      await running;
    },
  };
}

function createNights({ config, clock, dreams, sinceMs, ready, log }: Parts) {
  const isOn = config.llm !== 'off' && config.dream.at !== '';
  let notBeforeMs = Number.NEGATIVE_INFINITY;
  /** Why the last one did not end well, '' otherwise. */
  let problem = '';

  function wait(ms: number): void {
    notBeforeMs = clock.now() + ms;
  }

  async function run(signal: AbortSignal): Promise<void> {
    try {
      await ready;
      if (signal.aborted || !(await isDue())) return;
      await dreams.run({ dryRun: false }, signal);
      problem = '';
    } catch (error) {
      if (signal.aborted) return;
      wait(AFTER_FAILURE_MS);
      problem = getReason(error);
      log.error('the nightly consolidation failed; it is tried again in an hour', { error });
    }
  }

  async function isDue(): Promise<boolean> {
    const nowMs = clock.now();
    const trigger = await readTrigger(config.dream.at, nowMs);
    if (typeof trigger === 'string') throw new Error(`dream.at: ${trigger}`);
    return (await dueTime(trigger, { sinceMs, firedMs: dreams.lastFullMs(), nowMs })) !== null;
  }

  return {
    run,
    wait,
    /** A clock that was set back lengthens no wait. */
    mayBegin(): boolean {
      const waitMs = notBeforeMs - clock.now();
      return isOn && (waitMs <= 0 || waitMs > AFTER_FAILURE_MS);
    },
    problems: () => (problem === '' ? [] : [{ file: 'dream', message: `the nightly pass failed: ${problem}` }]),
  };
}
