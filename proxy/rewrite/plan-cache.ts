import type { ProxyLog } from '../ports.ts';
import type { PlanRecord } from './plan.ts';
import { PlanIndex } from './plan-index.ts';
import type { PlanStore } from './plan-store.ts';

/** Plans in use, in memory; all plans are on disk. */
export interface PlanCache {
  readonly index: PlanIndex;
  /** Loads the evicted plans that this conversation may match. Never rejects. */
  load(lineage: readonly string[], sessionId: string): Promise<void>;
  /** Resolves once the record is durable; the record is applied only then. */
  save(sessionId: string, record: PlanRecord): Promise<void>;
  /** Applies the record now and writes it in the background. */
  saveLater(sessionId: string, record: PlanRecord): void;
}

/** More sessions than are in use at one time. */
const MAX_SESSIONS = 64;

/** @throws what the plan store throws while loading */
export async function openPlanCache(plans: PlanStore, log: ProxyLog, maxSessions = MAX_SESSIONS): Promise<PlanCache> {
  const index = new PlanIndex();
  /** Sessions with a record that failed to be written: evicting them would lose it. */
  const unwritten = new Set<string>();
  const loading = new Map<string, Promise<void>>();

  function apply(records: readonly PlanRecord[]): void {
    for (const record of records) index.apply(record);
    index.evict(maxSessions, (sessionId) => !unwritten.has(sessionId));
  }

  /** A read never evicts; eviction happens on the next write, so a lookup can hold everything it loads. */
  async function restore(sessionId: string): Promise<void> {
    const records = await plans.read(sessionId);
    index.restore(sessionId);
    for (const record of records) index.apply(record);
    loading.delete(sessionId);
  }

  for await (const records of plans.load()) apply(records);

  return {
    index,
    async load(lineage, sessionId) {
      for (const id of index.evictedSessions(lineage, sessionId)) {
        const underway = loading.get(id) ?? restore(id);
        loading.set(id, underway);
        await underway;
      }
    },
    async save(sessionId, record) {
      await plans.append(sessionId, record, true, () => index.recordsOf(sessionId));
      apply([record]);
    },
    saveLater(sessionId, record) {
      apply([record]);
      plans
        .append(sessionId, record, false, () => index.recordsOf(sessionId))
        .catch((error: unknown) => {
          unwritten.add(sessionId);
          log.warn('plan record not written', { sessionId, error });
        });
    },
  };
}
