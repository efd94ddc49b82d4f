import type { MemoryLine } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { FileChange } from '../model/turn.ts';
import type { Lane, LaneScore } from '../search/search-index.ts';

export type { KeptState, MemoryLine, RecallRequest, SessionContext, ShownText } from '../../common/turn.ts';

export interface BlockRequest {
  /** Key of the project; '' for what belongs to the user alone. */
  readonly project: string;
  /** Whose own memories are left out; '' for none. */
  readonly sessionId: string;
  /** Lines that the session gets anyway. */
  readonly told: readonly string[];
}

/** The library's part of a session's context. */
export interface OpenBlock {
  /** Reads what changed on disk, as far as a prompt can wait. Never rejects. */
  refresh(): Promise<void>;
  /** Of the state that was read last; the same lines for the same state, none for an empty library. */
  lines(request: BlockRequest): readonly string[];
  /** Of the state on disk: what belongs to the user alone, or that there is nothing. */
  linkedText(): Promise<string>;
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
  readonly anchored?: true;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
}

export interface SearchOptions {
  readonly top: number;
  readonly sessionId?: string;
  readonly projectDir?: string;
  /** Key of a project, as nodes have it; instead of `projectDir`. */
  readonly project?: string;
  readonly skips?: (node: MemoryNode) => boolean;
  /** Absolute path; memories about that file or folder come first. */
  readonly file?: string;
}
