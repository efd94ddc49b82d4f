import type { Scope } from '../../common/policy.ts';
import type { Origin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { FileChange } from '../model/turn.ts';
import type { Lane, LaneScore } from '../search/search-index.ts';

/** One tier-1 line, ready to inject: redacted, without line breaks, fences or tags. */
export interface MemoryLine {
  readonly nodeId: string;
  readonly text: string;
  readonly origin: Origin;
  /** Set on the lines that stand for turns which are cut. */
  readonly kept?: KeptState;
}

/** What a conversation may not lose with the turns of a node. */
export interface KeptState {
  /** Whole lines. */
  readonly decisions: readonly string[];
  /** Whole lines. */
  readonly open: readonly string[];
  /** Values that these lines do not name. */
  readonly values: readonly string[];
}

/** Memory for the system prompt of one plan; every line is of clean origin. */
export interface SessionContext {
  readonly brief: readonly string[];
  readonly lines: readonly MemoryLine[];
  /** The library's part, its heading first; absent where it has nothing to say. */
  readonly library?: readonly string[];
}

export interface BlockRequest {
  /** Key of the project; '' for what belongs to the user alone. */
  readonly project: string;
  /** Whose own memories are left out; '' for none. */
  readonly sessionId: string;
  /** Lines that the session gets anyway. */
  readonly told: readonly string[];
}

/** What a conversation was given of memory, by line. */
export interface ShownText {
  /** Of its system block. */
  readonly block: readonly string[];
  /** Of what prompts got since, oldest first. */
  readonly since: readonly string[];
}

/** The library's part of a session's context. */
export interface OpenBlock {
  /** Reads what changed on disk, as far as a prompt can wait. Never rejects. */
  refresh(): Promise<void>;
  /** Of the state that was read last; the same lines for the same state, none for an empty library. */
  lines(request: BlockRequest): readonly string[];
  /** Of the state on disk, for a project; '' for nothing. */
  text(project: string): Promise<string>;
  /** What belongs to the user alone, or that there is nothing. */
  linkedText(): Promise<string>;
}

export interface RecallRequest {
  readonly sessionId: string;
  readonly projectDir: string | null;
  /** Without reminders. */
  readonly prompt: string;
  /** The conversation before it, oldest first; used if the prompt has no content words. */
  readonly recent: readonly string[];
  /** Ids of the turns sent verbatim, whose nodes are not recalled. */
  readonly visibleTurns: ReadonlySet<string>;
  /** Texts already injected by the current plan; identical lines are skipped. */
  readonly shown: ReadonlySet<string>;
  /** Whether the request has this text already, which need not be said again. */
  readonly sends?: (text: string) => boolean;
  /** A narrower scope than configured, if the project requests one. */
  readonly scope?: Scope;
}

export interface RecallHit {
  readonly node: MemoryNode;
  readonly score: number;
  /** The tier-1 line, with a matching quote if that adds something. */
  readonly line: MemoryLine;
  /** The best matching line and its turn id; null if only the node matched. */
  readonly raw: { readonly text: string; readonly turn: string } | null;
  /** Files of the node that changed since; absent if none did. */
  readonly changed?: readonly FileChange[];
  /** The query asks for an exact value or wording, which only the verbatim turn can confirm. */
  readonly isExact?: true;
  /** Below the relevance filter: shown in search, never injected. */
  readonly isFar?: true;
  /** The node is about the requested file. */
  readonly anchored?: true;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
}

export interface SearchOptions {
  readonly top: number;
  readonly sessionId?: string;
  readonly projectDir?: string;
  /** Absolute path; memories about that file or folder come first. */
  readonly file?: string;
}
