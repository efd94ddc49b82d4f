import { silentLog } from '../../common/log.ts';
import { openCostLedger, openReceipts } from '../../proxy/ledger/index.ts';
import { createRewriter, type RewriterDeps, type RunningRewriter } from '../../proxy/rewrite/index.ts';
import type { EpochPlan, PlanRecord } from '../../proxy/rewrite/plan.ts';
import type { PlanStore } from '../../proxy/rewrite/plan-store.ts';
import { createMemoryRecords } from './memory-records.ts';

type Optional = 'policy' | 'ledger' | 'receipts' | 'log';

const RULE = { tolerance: 0.05, credit: 10_000, longestHorizon: 60 };

/** A rewriter that may do everything and persists only plans, unless told otherwise. */
export async function openRewriter(
  deps: Omit<RewriterDeps, Optional> & Partial<Pick<RewriterDeps, Optional>>,
): Promise<RunningRewriter> {
  const { clock, log = silentLog } = deps;
  return createRewriter({
    policy: { of: () => ({ captures: true, adds: true }), withhold: () => undefined, hasWithheld: () => false },
    ledger: await openCostLedger({ store: createMemoryRecords(), rule: RULE, clock, log }),
    receipts: await openReceipts({ store: createMemoryRecords(), redact: (text) => text, most: 200, log }),
    log,
    ...deps,
  });
}

/** Plans in memory. */
export function createMemoryPlanStore(records: PlanRecord[] = []): PlanStore {
  return {
    async *load() {
      yield [...records];
    },
    async read(sessionId) {
      const own = records.filter((record) => record.kind === 'plan' && record.plan.sessionId === sessionId);
      const ids = new Set(own.map((record) => (record as { plan: EpochPlan }).plan.id));
      return records.filter((record) => ids.has(record.kind === 'plan' ? record.plan.id : record.planId));
    },
    append: async (_sessionId, record) => void records.push(record),
    problems: () => [],
    close: async () => {},
  };
}
