import type { ProxyLog } from '../ports.ts';
import type { PlanRecord } from './plan.ts';
import { PlanIndex } from './plan-index.ts';
import type { PlanStore } from './plan-store.ts';

/** Plans in use in memory, all of them on disk. */
export interface PlanCache {
  readonly index: PlanIndex;
  /** Gets what this conversation may need and is on disk only. Never rejects. */
  load(lineage: readonly string[], sessionId: string): Promise<void>;
  /** Resolves once the record is durable, and only then applies it. */
  save(sessionId: string, record: PlanRecord): Promise<void>;
  /** Kept for matching only: losing it costs nothing but a match by a shorter prefix. */
  saveLater(sessionId: string, record: PlanRecord): void;
}

/** More sessions than are in use at one time. */
const MOST_SESSIONS = 64;

/** @throws what the plan store throws while loading */
export async function openPlanCache(plans: PlanStore, log: ProxyLog, most = MOST_SESSIONS): Promise<PlanCache> {
  const book = new PlanIndex();
  /** Of these the disk does not hold all. */
  const unwritten = new Set<string>();
  const fetching = new Map<string, Promise<void>>();

  function apply(records: readonly PlanRecord[]): void {
    for (const record of records) book.apply(record);
    book.evict(most, (sessionId) => !unwritten.has(sessionId));
  }

  /** What it puts away is left to the next that is written: this one may need all that it fetches. */
  async function bringBack(sessionId: string): Promise<void> {
    const records = await plans.read(sessionId);
    book.restore(sessionId);
    for (const record of records) book.apply(record);
    fetching.delete(sessionId);
  }

  for await (const records of plans.load()) apply(records);

  return {
    index: book,
    async load(lineage, sessionId) {
      for (const id of book.evictedSessions(lineage, sessionId)) {
        const underway = fetching.get(id) ?? bringBack(id);
        fetching.set(id, underway);
        await underway;
      }
    },
    async save(sessionId, record) {
      await plans.append(sessionId, record, true, () => book.recordsOf(sessionId));
      apply([record]);
    },
    saveLater(sessionId, record) {
      apply([record]);
      plans
        .append(sessionId, record, false, () => book.recordsOf(sessionId))
        .catch((error: unknown) => {
          unwritten.add(sessionId);
          log.warn('a plan record was not written', { sessionId, error });
        });
    },
  };
}
