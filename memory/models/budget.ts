import type { Clock } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import {
  decideQuota,
  mergeQuota,
  type QuotaDecision,
  type QuotaRule,
  type QuotaWindow,
  type RateLimitResponse,
  readQuota,
} from './quota.ts';

/** Decides whether our own model calls may run now and counts their usage across restarts. */
export interface Budget extends UsageCounter {
  /** Reads the rate-limit headers of an API response. Synchronous; never throws. */
  answered(answer: RateLimitResponse): void;
  decide(): QuotaDecision;
  /** Resolves once everything is on disk. */
  close(): Promise<void>;
}

export interface StoredUsage extends Usage {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly windows: readonly QuotaWindow[];
}

export interface UsageStore {
  load(): Promise<StoredUsage | null>;
  save(usage: StoredUsage): Promise<void>;
}

export interface BudgetParts {
  readonly rule: QuotaRule;
  readonly store: UsageStore;
  readonly clock: Clock;
  readonly log: Log;
}

export async function openBudget({ rule, store, clock, log }: BudgetParts): Promise<Budget> {
  const kept = await store.load();
  const ledger = createUsageCounter(clock.now, kept);
  let windows = kept?.windows ?? [];
  let isDirty = false;
  let saving: Promise<void> | null = null;

  function decide(): QuotaDecision {
    return decideQuota(windows, { rule, tokensToday: ledger.today().tokens, nowMs: clock.now() });
  }

  /** One write at a time; changes during a write go into the next one. */
  function save(): void {
    isDirty = true;
    saving ??= write().finally(() => {
      saving = null;
    });
  }

  async function write(): Promise<void> {
    while (isDirty) {
      isDirty = false;
      try {
        await store.save({ ...ledger.today(), windows });
      } catch (error) {
        log.warn("could not write today's model usage; a restart would lose it", { error });
      }
    }
  }

  return {
    answered(answer) {
      const before = decide();
      windows = mergeQuota(windows, readQuota(answer, clock.now()), clock.now());
      const after = decide();
      if (after.kind === before.kind) return;
      log.info(after.kind === 'allow' ? 'model calls resume' : 'model calls wait', { ...after });
      save();
    },
    record(spent) {
      ledger.record(spent);
      save();
    },
    today: ledger.today,
    decide,
    async close() {
      await saving;
    },
  };
}

interface Usage {
  readonly calls: number;
  readonly tokens: number;
  readonly costUsd: number;
}

/** Usage of the current day (UTC). */
export interface UsageCounter {
  record(spent: Usage & { readonly sessionId?: string }): void;
  today(): Usage & { /** `YYYY-MM-DD` */ readonly day: string };
}

const NOTHING: Usage = { calls: 0, tokens: 0, costUsd: 0 };

export function createUsageCounter(
  now: () => number,
  kept: (Usage & { readonly day: string }) | null = null,
): UsageCounter {
  let { day, ...used } = kept ?? { day: '', ...NOTHING };
  const turn = (): void => {
    const today = new Date(now()).toISOString().slice(0, 10);
    if (today !== day) [day, used] = [today, NOTHING];
  };
  return {
    record({ calls, tokens, costUsd }) {
      turn();
      used = { calls: used.calls + calls, tokens: used.tokens + tokens, costUsd: used.costUsd + costUsd };
    },
    today() {
      turn();
      return { day, calls: used.calls, tokens: used.tokens, costUsd: used.costUsd };
    },
  };
}
