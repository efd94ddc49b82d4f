import type { Origin } from '../../common/turn.ts';
import type { Ontology } from '../facts/ontology.ts';
import type { Claim, Decision, Fact, MemoryNode, StatedItem, StatementRef } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { Prompt } from './prompts/prompt.ts';

export interface TopicShiftReading {
  readonly logic_flow: 'MAINTAIN' | 'BROKEN';
  readonly load_level: number;
  readonly redundancy_detected: boolean;
}

export interface TopicShiftInput {
  /** For usage accounting only. */
  readonly sessionId?: string;
  /** Up to the last five buffered turns, oldest first. */
  readonly buffer: readonly TurnText[];
  readonly turn: TurnText;
}

export interface SummaryInput {
  /** For usage accounting only. */
  readonly sessionId?: string;
  readonly turns: readonly TurnText[];
  /** The turn before the first, which a short reply answers. */
  readonly before?: TurnText | undefined;
  /** Tags already used in this project, most frequent first; reused before new ones are made. */
  readonly knownTags: readonly string[];
  /** The session's current brief, '' if it has none; null where no new one is wanted. */
  readonly brief: string | null;
  /** Claims of that brief with their source turns, so that a new brief can keep them. */
  readonly briefClaims?: readonly Claim[];
  readonly known?: readonly KnownStatement[];
  /** Open tasks that these turns may say more of. */
  readonly tasks?: readonly KnownTask[];
  /** What facts may be about; none are asked for without it. */
  readonly ontology?: Ontology;
}

/** What earlier turns say, as shown to the model that may end it. */
export interface KnownStatement extends Pick<StatedItem, 'text' | 'origin'> {
  readonly kind: 'fact' | 'open' | 'decided';
  /** Of a fact. */
  readonly ref?: StatementRef;
  /** Valid from, as `2026-03-01`. */
  readonly date: string;
}

export interface KnownTask {
  /** Six hex digits. */
  readonly id: string;
  readonly title: string;
  /** A time or a cron form. */
  readonly trigger?: string | undefined;
}

/** Its origin is set by rules only; a model names no origin. */
type ProposedItem<T extends StatedItem> = Omit<T, 'origin'> & { readonly origin?: T['origin'] };

export interface ProposedNode
  extends Pick<MemoryNode, 'summary' | 'title' | 'outcome' | 'trigger' | 'importance' | 'recall_mode'> {
  readonly decisions?: readonly ProposedItem<Decision>[];
  readonly open?: readonly ProposedItem<StatedItem>[];
  readonly values?: readonly string[];
  readonly topic_tags: readonly string[];
  /** Ids of the turns it covers; the nodes and `skipped` together cover every turn of the input. */
  readonly turns: readonly string[];
  readonly facts: readonly Fact[];
  /** Lowest origin of the copied text; set by rules only, never by a model. */
  readonly origin?: Origin;
  readonly revises?: readonly KnownStatement[];
}

export interface SummaryResult {
  readonly nodes: readonly ProposedNode[];
  /** Ids of turns that leave nothing to remember; none if absent. */
  readonly skipped?: readonly string[];
  /** Candidates for facts of the ontology, as the model gave them: not validated. */
  readonly facts?: readonly unknown[];
  readonly brief: { readonly active: readonly Claim[]; readonly hints: readonly Claim[] };
}

/** Nodes that look like duplicates, or like one topic. */
export interface MergeInput {
  readonly kind: 'merge' | 'group';
  readonly notes: readonly { readonly summary: string; readonly trigger: string; readonly facts: readonly string[] }[];
}

export interface MergeResult extends Pick<MemoryNode, 'summary' | 'trigger'> {
  /** Whether they are; if false, the texts are meaningless. */
  readonly fits: boolean;
}

export interface DetailInput {
  /** The node stands for finished tool calls. */
  readonly isBundle?: boolean;
  /** For usage accounting only. */
  readonly sessionId?: string;
  readonly summary: string;
  /** The node's turns, whole, oldest first. */
  readonly turns: readonly TurnText[];
}

export interface DetailResult {
  /** Three to eight; fewer if the turns say less. */
  readonly sentences: readonly string[];
}

/**
 * Detects topic shifts and summarizes turns. Every call may take minutes and may fail.
 * @throws CometError `model_missing`, `model_failed` or `model_timeout`
 */
export interface LanguageModel {
  readonly name: string;
  detectTopicShift(input: TopicShiftInput, signal: AbortSignal): Promise<TopicShiftReading>;
  summarize(input: SummaryInput, signal: AbortSignal): Promise<SummaryResult>;
  /** One text for several nodes; without it, rules merge them. */
  merge?(input: MergeInput, signal: AbortSignal): Promise<MergeResult>;
  expand(input: DetailInput, signal: AbortSignal): Promise<DetailResult>;
  /** Answers a prompt of the caller's own. */
  ask?<T>(prompt: Prompt<T>, signal: AbortSignal): Promise<T>;
  health?(): ModelHealth;
  /** Ends every child process; idempotent. */
  close(): Promise<void>;
}

/** Shown by `status`; calls and tokens are those of today. */
export interface ModelHealth {
  readonly callsToday: number;
  readonly tokensToday: number;
  readonly costUsdToday?: number;
  /** Of `merge` alone, since the start of the process. */
  readonly mergeTokens?: number;
  readonly running?: number;
  /** `kind: detail`, redacted and clipped; '' if the last call succeeded. */
  readonly lastError: string;
}
