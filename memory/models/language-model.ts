import type { Origin } from '../../common/turn.ts';
import type { Claim, StatementRef } from '../model/claim.ts';
import type { Fact } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';

export interface TopicShiftReading {
  readonly logic_flow: 'MAINTAIN' | 'BROKEN';
  readonly load_level: number;
  readonly redundancy_detected: boolean;
}

export interface TopicShiftInput {
  /** Whose turns these are; for the bill only. */
  readonly sessionId?: string;
  /** Up to the last five buffered turns, oldest first. */
  readonly buffer: readonly TurnText[];
  readonly turn: TurnText;
}

export interface SummaryInput {
  /** Whose turns these are; for the bill only. */
  readonly sessionId?: string;
  readonly project: string;
  readonly turns: readonly TurnText[];
  /** Tags already used in this project, most frequent first; reused before new ones are made. */
  readonly knownTags: readonly string[];
  /** The session's brief until now, '' when there is none. */
  readonly brief: string;
  /** The claims of that brief with the turns they rest on, so that a new brief can keep them. */
  readonly briefClaims?: readonly Claim[];
  /** What memory holds to be so that these turns may revise. */
  readonly known?: readonly KnownStatement[];
}

/** A fact of a node, as it is shown to who may revise it. */
export interface KnownStatement extends StatementRef {
  readonly text: string;
  /** Since when, `2026-03-01`. */
  readonly date: string;
}

export interface ProposedNode {
  readonly summary: string;
  readonly trigger: string;
  readonly topic_tags: readonly string[];
  readonly importance: 'HIGH' | 'MED' | 'LOW';
  readonly recall_mode: 'passive' | 'active' | 'both';
  /** turn id of each turn it stands for; together the drafts cover every turn of the input. */
  readonly turns: readonly string[];
  readonly facts: readonly Fact[];
  /** Where every word of it was copied from, if its writer knows; never taken from a model. */
  readonly origin?: Origin;
  /** Of the known statements those that are no longer so by what it says. */
  readonly revises?: readonly StatementRef[];
}

export interface SummaryResult {
  readonly nodes: readonly ProposedNode[];
  readonly brief: { readonly active: readonly Claim[]; readonly hints: readonly Claim[] };
}

/** Nodes that seem to say the same, or to belong together. */
export interface MergeInput {
  readonly kind: 'merge' | 'group';
  readonly notes: readonly { readonly summary: string; readonly trigger: string; readonly facts: readonly string[] }[];
}

export interface MergeResult {
  /** They do; else the texts mean nothing. */
  readonly fits: boolean;
  readonly summary: string;
  readonly trigger: string;
}

export interface DetailInput {
  /** Whose turns these are; for the bill only. */
  readonly sessionId?: string;
  readonly summary: string;
  /** Those that the node stands for, whole, oldest first. */
  readonly turns: readonly TurnText[];
}

export interface DetailResult {
  /** At most eight; at least three where the turns say so much. */
  readonly sentences: readonly string[];
}

/**
 * The sensor and the compacter. Every call may take minutes and may fail.
 *
 * @throws CometError `model_missing`, `model_failed` or `model_timeout`
 */
export interface LanguageModel {
  readonly name: string;
  detectTopicShift(input: TopicShiftInput, signal: AbortSignal): Promise<TopicShiftReading>;
  summarize(input: SummaryInput, signal: AbortSignal): Promise<SummaryResult>;
  /** One text for several nodes; one that cannot do it leaves it to rules. */
  merge?(input: MergeInput, signal: AbortSignal): Promise<MergeResult>;
  /** Tier 2 of one node. */
  expand(input: DetailInput, signal: AbortSignal): Promise<DetailResult>;
  health?(): ModelHealth;
  /** Ends every child; idempotent. */
  close(): Promise<void>;
}

/** What `status` shows of a model. */
export interface ModelHealth {
  readonly callsToday: number;
  readonly tokensToday: number;
  readonly costUsdToday?: number;
  readonly lastError: string;
}
