/** How a recalled memory was found: its score, and rank and score in each lane that found it. */
export interface Finding {
  readonly nodeId: string;
  readonly score: number;
  readonly lanes: Readonly<Record<string, { readonly rank: number; readonly score: number }>>;
}

/** Memory recalled for one prompt; stays where it was put for as long as the plan lives. */
export interface Injection {
  /** Lineage up to the prompt it was recalled for. */
  readonly anchor: string;
  /** `system` is a `role: "system"` message after the prompt, `block` a trailing text block of it. */
  readonly channel: 'system' | 'block';
  readonly text: string;
  readonly nodeIds: readonly string[];
  /** Not said of a memory that was recalled before that was kept. */
  readonly found?: readonly Finding[];
}

/** One leading range of whole turns that is no longer sent. */
export interface Cut {
  /** Lineage up to the last absorbed message. */
  readonly through: string;
  /** Leading text block of the first kept prompt. */
  readonly preamble: string;
  readonly nodeIds: readonly string[];
}

/** The oldest rounds of one turn that are no longer sent; the turn's own instruction is. */
export interface RoundCut {
  /** Lineage up to the message in front of the first absorbed one. */
  readonly after: string;
  /** Lineage up to the last absorbed message. */
  readonly through: string;
  /** Trailing text block of the instruction. */
  readonly preamble: string;
  readonly nodeIds: readonly string[];
}

/**
 * What a conversation's prefix is rewritten to. Frozen and durable before its first use, replayed byte for byte on
 * every request whose prefix matches. Only `injections` and `served` grow.
 */
export interface EpochPlan {
  readonly id: string;
  readonly sessionId: string;
  readonly createdAtMs: number;
  /** Counts the epochs of a conversation from 0. */
  readonly epoch: number;
  readonly cut: Cut | null;
  /** Behind the cut, oldest first; at most one in a turn. */
  readonly rounds: readonly RoundCut[];
  /** Thinking is stripped up to the message with this lineage; null: none is. */
  readonly strippedThrough: string | null;
  /** Appended after Claude Code's last system block. */
  readonly systemBlock: string | null;
  readonly systemNodeIds: readonly string[];
  /** How those were found that a prompt recalled. */
  readonly systemFound?: readonly Finding[];
  readonly injections: readonly Injection[];
  /** Upstream refused it: for a thinking signature, or for anything else of ours. */
  readonly broken: false | 'thinking' | 'structure';
}

/** What the prompt cache holds a prefix by, beside its bytes. */
export interface PlanUse {
  readonly atMs: number;
  readonly model: string;
  readonly effort: string;
}

/** A plan together with where in the request it applies. */
export interface Match {
  readonly plan: EpochPlan;
  /** Index of the newest message that this plan was already used for. */
  readonly servedAt: number;
  readonly lastUse: PlanUse;
}

interface Served {
  readonly served: string;
  readonly use: PlanUse;
}

export type PlanRecord =
  | ({ readonly kind: 'plan'; readonly plan: EpochPlan } & Served)
  | ({ readonly kind: 'injections'; readonly planId: string; readonly injections: readonly Injection[] } & Served)
  | ({ readonly kind: 'served'; readonly planId: string } & Served)
  | { readonly kind: 'broken'; readonly planId: string; readonly broken: 'thinking' | 'structure' };

/** A plan that changes no byte. */
export function isEmptyPlan(plan: EpochPlan): boolean {
  return (
    plan.cut === null &&
    plan.rounds.length === 0 &&
    plan.strippedThrough === null &&
    plan.systemBlock === null &&
    plan.injections.length === 0
  );
}

/** Where a plan applies in a request, as message indices and counts. */
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

/** Null when the plan's prefix is not that of this request. */
export function locatePlan(plan: EpochPlan, lineage: readonly string[]): PlanLocation | null {
  const after = (hash: string | null): number => (hash === null ? 0 : lineage.indexOf(hash) + 1);
  const cutEnd = after(plan.cut?.through ?? null);
  const stripEnd = after(plan.strippedThrough);
  if ((plan.cut !== null && cutEnd === 0) || (plan.strippedThrough !== null && stripEnd === 0)) return null;
  const rounds = plan.rounds.map((cut) => ({ cut, start: after(cut.after), end: after(cut.through) }));
  if (rounds.some(({ start, end }) => start === 0 || end === 0)) return null;
  return { cutEnd, stripEnd, rounds };
}
