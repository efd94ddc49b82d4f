import type { Origin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { KnownFact } from '../recall/project-summary.ts';
import type { Problem } from '../storage/turn-log.ts';

export interface NodeFilter {
  readonly sessionId?: string;
  readonly projectDir?: string;
  readonly tag?: string;
  readonly importance?: 'HIGH' | 'MED' | 'LOW';
  readonly sinceMs?: number;
  /** Bundle children too. */
  readonly all?: boolean;
  /** Only those that are held out of recall; false: none of them. */
  readonly quarantine?: boolean;
  readonly limit?: number;
}

export interface RawMessage {
  readonly seq: number;
  readonly role: string;
  /** Parsed `content`, verbatim but for redacted spans. */
  readonly content: unknown;
  /** Of what is kept; where nothing was redacted, of the very characters that Claude Code sent. */
  readonly sha256: string;
  /** Secrets were taken out of it; where they stood there are marks. */
  readonly redacted?: true;
}

export interface NodeView extends MemoryNode {
  /** Why the detailed summary is the local adapter's, or is not there; absent where there is nothing to say. */
  readonly detail_note?: string;
  readonly raw?: readonly RawMessage[];
  /** Rounds and tool calls of its turns. */
  readonly children?: readonly { readonly node_id: string; readonly summary: string }[];
}

export interface SessionView {
  readonly session_id: string;
  readonly project: string;
  readonly status: 'active' | 'closed';
  readonly created_at: string;
  readonly updated_at: string;
  /** When the user closed it; null where that was not done, or turns came after it. */
  readonly closed_at: string | null;
  readonly turns: number;
  readonly node_ids: readonly string[];
}

/** A node as its tier-1 line. */
export interface NodeLine {
  readonly node_id: string;
  readonly origin: Origin;
  readonly text: string;
}

export interface SessionDetail extends SessionView {
  /** Oldest first. */
  readonly nodes: readonly NodeLine[];
  /** Markdown, '' when there is none. */
  readonly brief: string;
}

export interface KnownNode extends NodeLine {
  readonly importance: 'HIGH' | 'MED' | 'LOW';
  /** When it was said. */
  readonly at: string;
  /** What is still so of its summary, on one line, with a note where its files changed. */
  readonly summary: string;
}

export interface ProjectView {
  /** Its key, see `core/project.ts`. */
  readonly project: string;
  readonly counts: {
    readonly sessions: number;
    readonly turns: number;
    readonly nodes: number;
    readonly facts: number;
  };
  /** When the oldest and the newest of it were said; null where nothing is known. */
  readonly since: string | null;
  readonly until: string | null;
  /** The last one of the project. */
  readonly brief: { readonly session_id: string; readonly updated_at: string; readonly text: string } | null;
  /** Pinned first, then by importance, then the newest; at most 20. */
  readonly nodes: readonly KnownNode[];
  /** What was decided, newest first, at most 10. */
  readonly decisions: readonly KnownNode[];
  /** What Claude Code's agent left undone, with its state. */
  readonly tasks: readonly string[];
  /** Most used first, at most 20. */
  readonly tags: readonly { readonly tag: string; readonly nodes: number }[];
  /** People and things that several memories name, most first, at most 12. */
  readonly names: readonly { readonly name: string; readonly nodes: number }[];
  /** What most memories are about, at most 12; `state` as far as it was known in time. */
  readonly files: readonly {
    readonly path: string;
    readonly nodes: number;
    readonly state: 'as_remembered' | 'changed' | 'deleted' | 'unknown';
  }[];
  /** Each once, newest first, at most 50. */
  readonly facts: readonly KnownFact[];
}

export interface MemoryStatus {
  readonly queue: { readonly sensor: number; readonly compacter: number; readonly indexer: number };
  readonly llm: {
    readonly backend: string;
    readonly calls_today: number;
    readonly tokens_today: number;
    /** At the prices of the API, as Claude Code reckons it. */
    readonly cost_usd_today: number;
    /** Compactions that wait for the model; local nodes stand in for them. */
    readonly deferred: number;
    /** Why they wait, '' when none does. */
    readonly deferred_because: string;
    /** When the model may be asked again, ISO; null when none waits. */
    readonly deferred_until: string | null;
    /** Why the last model call failed, '' when it did not. */
    readonly last_error: string;
  };
  readonly nodes: number;
  readonly problems: readonly Problem[];
  /** Nodes written so far, while `reindex` runs, or what the index lacks, or the one of another embedder, is filled. */
  readonly reindex: { readonly done: number; readonly total: number } | null;
  /** Pieces of a document written so far, or with `turns` bytes of transcripts read, while that is imported. */
  readonly importing: {
    readonly file: string;
    readonly done: number;
    readonly total: number;
    readonly turns?: number;
  } | null;
  /** What the last dream did; null before the first. */
  readonly dream: {
    readonly at: string;
    readonly merged: number;
    readonly groups: number;
    readonly pruned: number;
    readonly left: number;
    readonly running: boolean;
  } | null;
}

export interface MemoryStats {
  readonly nodes: number;
  readonly pinned: number;
  readonly stand_ins: number;
  readonly facts: number;
  readonly sessions: number;
  readonly projects: number;
  readonly turns: number;
  readonly oldest: string | null;
  readonly newest: string | null;
  readonly by_importance: Readonly<Record<string, number>>;
  readonly by_recall_mode: Readonly<Record<string, number>>;
  readonly by_origin: Readonly<Record<string, number>>;
  readonly by_writer: Readonly<Record<string, number>>;
  /** Most used first, at most 20. */
  readonly tags: readonly { readonly tag: string; readonly nodes: number }[];
  readonly index: { readonly nodes: number; readonly rows: number };
  readonly snapshots: number;
  readonly problems: number;
}

/** Where a node comes from. */
export interface NodeReason {
  readonly node_id: string;
  readonly summary: string;
  readonly origin: Origin;
  readonly written_by: string;
  readonly compaction_reason: string;
  readonly turns: readonly {
    readonly turn: string;
    /** Null where its raw text is not kept. */
    readonly at: string | null;
    readonly origin: Origin | null;
    readonly prompt: string;
    /** Tools whose results lowered the origin. */
    readonly tools: readonly string[];
  }[];
  /** What it states, and which of its turns each statement rests on. */
  readonly facts: readonly {
    readonly concept: string;
    readonly value: string;
    readonly polarity: 'positive' | 'negative';
    readonly origin: Origin;
    readonly turns: readonly string[];
  }[];
  /** Ids that lead here. */
  readonly aliases: readonly string[];
  /** What of it is no longer so, since when, and by which node; the node as a whole where `statement` is null. */
  readonly replaced: readonly {
    readonly statement: string | null;
    readonly valid_to: string | null;
    readonly by: string | null;
  }[];
  /** Nodes of which it replaced something. */
  readonly replaces: readonly string[];
}
