import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import type { LanguageModel } from '../models/language-model.ts';
import type { ModelQuota } from '../models/quota.ts';
import type { Consolidator } from './consolidator.ts';

/** Consolidates after a period without requests. */
export interface IdleScheduler {
  /** Cancels a running consolidation and restarts the timer. */
  reset(): void;
  close(): Promise<void>;
}

type Parts = {
  readonly config: Pick<Config, 'llm' | 'dream'>;
  readonly model: LanguageModel | null;
  readonly quota?: ModelQuota;
  readonly dreams: Consolidator;
  /** Resolves once the nodes are loaded. */
  readonly ready: Promise<void>;
  readonly log: Log;
};

export function createIdleScheduler({ config, model, quota, dreams, ready, log }: Parts): IdleScheduler {
  const idleMs = config.llm === 'off' ? 0 : config.dream.idleMinutes * 60_000;
  let timer: NodeJS.Timeout | null = null;
  let cancel = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let closed = false;

  function schedule(): void {
    if (timer !== null) clearTimeout(timer);
    timer = closed || idleMs === 0 ? null : setTimeout(start, idleMs).unref();
  }

  /** Waits for the quota, so that one run can do everything. */
  function start(): void {
    timer = null;
    if (model !== null && quota?.decide().kind === 'defer') schedule();
    else running = consolidate(cancel.signal);
  }

  async function consolidate(signal: AbortSignal): Promise<void> {
    try {
      await ready;
      signal.throwIfAborted();
      const { left } = await dreams.run({ dryRun: false }, signal);
      if (left > 0) schedule();
    } catch (error) {
      if (!signal.aborted) log.error('consolidation failed', { error });
    }
  }

  schedule();
  return {
    reset() {
      cancel.abort(new Error('a request arrived'));
      cancel = new AbortController();
      schedule();
    },
    async close() {
      closed = true;
      cancel.abort(new Error('memory is closing'));
      schedule();
      await running;
    },
  };
}
