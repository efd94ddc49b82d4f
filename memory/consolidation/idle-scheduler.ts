import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import type { LanguageModel } from '../models/language-model.ts';
import type { ModelQuota } from '../models/quota.ts';
import type { Consolidator } from './consolidator.ts';

/** Dreams when nobody works. */
export interface IdleScheduler {
  /** Somebody works: whatever sleeps is woken, and the wait begins anew. */
  reset(): void;
  close(): Promise<void>;
}

type Parts = {
  readonly config: Pick<Config, 'llm' | 'dream'>;
  readonly model: LanguageModel | null;
  readonly quota?: ModelQuota;
  readonly dreams: Consolidator;
  /** Resolves once there is something to dream of. */
  readonly ready: Promise<void>;
  readonly log: Log;
};

export function createIdleScheduler({ config, model, quota, dreams, ready, log }: Parts): IdleScheduler {
  const idleMs = config.llm === 'off' ? 0 : config.dream.idleMinutes * 60_000;
  let timer: NodeJS.Timeout | null = null;
  let waking = new AbortController();
  let dreaming: Promise<void> = Promise.resolve();
  let closed = false;

  function wait(): void {
    if (timer !== null) clearTimeout(timer);
    timer = closed || idleMs === 0 ? null : setTimeout(start, idleMs).unref();
  }

  /** What the model would be asked waits with all else until it may be asked. */
  function start(): void {
    timer = null;
    if (model !== null && quota?.decide().kind === 'defer') wait();
    else dreaming = sleep(waking.signal);
  }

  async function sleep(signal: AbortSignal): Promise<void> {
    try {
      await ready;
      signal.throwIfAborted();
      const { left } = await dreams.run({ dryRun: false }, signal);
      if (left > 0) wait();
    } catch (error) {
      if (!signal.aborted) log.error('memory was not tidied', { error });
    }
  }

  wait();
  return {
    reset() {
      waking.abort(new Error('a request came'));
      waking = new AbortController();
      wait();
    },
    async close() {
      closed = true;
      waking.abort(new Error('memory is closing'));
      wait();
      await dreaming;
    },
  };
}
