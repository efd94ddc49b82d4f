import type { Finding } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';

/** Memory recalled for one prompt. It keeps its position for the lifetime of the plan. */
export interface Injection {
  /** Lineage hash up to the prompt it was recalled for. */
  readonly anchor: string;
  /** `system`: a `role: "system"` message after the prompt. `block`: a trailing text block of the prompt. */
  readonly channel: 'system' | 'block';
  readonly text: string;
  readonly nodeIds: readonly string[];
  /** Absent in plans written before findings were recorded. */
  readonly found?: readonly Finding[];
}

/** The leading range of whole turns that is no longer sent. */
export interface Cut {
  /** Lineage hash up to the last absorbed message. */
  readonly through: string;
  /** Leading text block of the first kept prompt. */
  readonly preamble: string;
  readonly nodeIds: readonly string[];
}

/** The oldest tool rounds of one turn that are no longer sent. The turn's instruction is still sent. */
export interface RoundCut {
  /** Lineage hash up to the message before the first absorbed one. */
  readonly after: string;
  /** Lineage hash up to the last absorbed message. */
  readonly through: string;
  /** Trailing text block of the instruction. */
  readonly preamble: string;
  readonly nodeIds: readonly string[];
}

/**
 * What a conversation's prefix is rewritten to. Durable before its first use, and replayed byte for byte on every
 * request whose prefix matches. Only `injections` grows.
 */
export interface EpochPlan {
  readonly id: string;
  readonly sessionId: string;
  readonly createdAtMs: number;
  /** Counts the epochs of a conversation from 0. */
  readonly epoch: number;
  readonly cut: Cut | null;
  /** Behind the cut, oldest first; at most one per turn. */
  readonly rounds: readonly RoundCut[];
  /** Thinking is stripped up to the message with this lineage hash; null strips none. */
  readonly strippedThrough: string | null;
  /** Appended after Claude Code's last system block. */
  readonly systemBlock: string | null;
  readonly systemNodeIds: readonly string[];
  /** Findings for the system nodes that a prompt recalled. */
  readonly systemFound?: readonly Finding[];
  readonly injections: readonly Injection[];
  /** Upstream refused the plan: because of a thinking signature, or because of another change. */
  readonly broken: false | 'thinking' | 'structure';
}

/** What the prompt cache keys a prefix by, in addition to its bytes. */
export interface PlanUse {
  readonly atMs: number;
  readonly model: string;
  readonly effort: string;
}

/** A plan that matches a request. */
export interface Match {
  readonly plan: EpochPlan;
  /** Index of the newest message that the plan was already used for. */
  readonly servedAt: number;
  readonly lastUse: PlanUse;
}

/** One use of a plan: the lineage hash of the request it served. */
export interface ServedUse {
  readonly served: string;
  readonly use: PlanUse;
}

export type PlanRecord =
  | ({ readonly kind: 'plan'; readonly plan: EpochPlan } & ServedUse)
  | ({ readonly kind: 'injections'; readonly planId: string; readonly injections: readonly Injection[] } & ServedUse)
  | ({ readonly kind: 'served'; readonly planId: string } & ServedUse)
  | { readonly kind: 'broken'; readonly planId: string; readonly broken: 'thinking' | 'structure' };

export function describeUse(view: ConversationView, atMs: number): ServedUse {
  return { served: view.lineage.at(-1) as string, use: { atMs, model: view.model, effort: view.effort } };
}

/**
 * The record that makes `plan` usable.
 *
 * @param extended  the plan that `plan` extends in place; null writes `plan` whole
 */
export function createPlanRecord(extended: EpochPlan | null, plan: EpochPlan, use: ServedUse): PlanRecord {
  if (extended === null) return { kind: 'plan', plan, ...use };
  const injections = plan.injections.slice(extended.injections.length);
  if (injections.length === 0) return { kind: 'served', planId: plan.id, ...use };
  return { kind: 'injections', planId: plan.id, injections, ...use };
}

/** Losing such a record costs at most a match by a shorter prefix, so it need not be durable. */
export function changesNoBytes(record: PlanRecord): boolean {
  return record.kind === 'served' || (record.kind === 'plan' && isEmptyPlan(record.plan));
}

export function isEmptyPlan(plan: EpochPlan): boolean {
  return (
    plan.cut === null &&
    plan.rounds.length === 0 &&
    plan.strippedThrough === null &&
    plan.systemBlock === null &&
    plan.injections.length === 0
  );
}

/** Where a plan applies in a request, as message indices. */
export interface PlanLocation {
  readonly cutEnd: number;
  readonly stripEnd: number;
  readonly rounds: readonly LocatedRoundCut[];
}

export interface LocatedRoundCut {
  readonly cut: RoundCut;
  /** Messages `[start, end)` are absorbed. */
  readonly start: number;
  readonly end: number;
}

/** Null when the request does not have the plan's prefix. */
export function locatePlan(plan: EpochPlan, lineage: readonly string[]): PlanLocation | null {
  const indexAfter = (hash: string | null): number => (hash === null ? 0 : lineage.indexOf(hash) + 1);
  const cutEnd = indexAfter(plan.cut?.through ?? null);
  const stripEnd = indexAfter(plan.strippedThrough);
  if ((plan.cut !== null && cutEnd === 0) || (plan.strippedThrough !== null && stripEnd === 0)) return null;
  const rounds = plan.rounds.map((cut) => ({ cut, start: indexAfter(cut.after), end: indexAfter(cut.through) }));
  if (rounds.some(({ start, end }) => start === 0 || end === 0)) return null;
  return { cutEnd, stripEnd, rounds };
}
