import type { ConversationView } from '../wire/conversation.ts';
import { type EpochPlan, isEmptyPlan, type PlanRecord, type PlanUse } from './plan.ts';

/** What a plan is found by again. */
export interface ServedBy {
  readonly served: string;
  readonly use: PlanUse;
}

export function describeUse(view: ConversationView, atMs: number): ServedBy {
  return { served: view.lineage.at(-1) as string, use: { atMs, model: view.model, effort: view.effort } };
}

/** What has to be written for `plan` to be used: a new plan whole, a plan that only grew by what it grew. */
export function createPlanRecord(extended: EpochPlan | null, plan: EpochPlan, served: ServedBy): PlanRecord {
  if (extended === null) return { kind: 'plan', plan, ...served };
  const injections = plan.injections.slice(extended.injections.length);
  if (injections.length === 0) return { kind: 'served', planId: plan.id, ...served };
  return { kind: 'injections', planId: plan.id, injections, ...served };
}

/** Nothing of ours goes out by it: losing it costs a shorter match at most. */
export function changesNoBytes(record: PlanRecord): boolean {
  return record.kind === 'served' || (record.kind === 'plan' && isEmptyPlan(record.plan));
}
