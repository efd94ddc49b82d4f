import type { Scope } from '../../common/policy.ts';
import type { Origin } from '../../common/turn.ts';
import type { FileChange } from '../model/file-link.ts';
import type { MemoryNode } from '../model/node.ts';
import type { Lane } from '../search/node-index.ts';

/** A node as one line of tier 1, ready to be injected: redacted, one line, no fence or tag of ours inside. */
export interface MemoryLine {
  readonly nodeId: string;
  readonly text: string;
  readonly origin: Origin;
}

/** Memory in the system prompt for a whole epoch; every line is of clean origin. */
export interface SessionContext {
  readonly brief: readonly string[];
  readonly lines: readonly MemoryLine[];
}

export interface RecallRequest {
  readonly sessionId: string;
  readonly projectDir: string | null;
  /** The prompt, reminders stripped. */
  readonly prompt: string;
  /** The conversation before it, oldest first; used where the prompt has no words of its own. */
  readonly recent: readonly string[];
  /** Ids of the turns that are sent verbatim: what stands for them is not recalled. */
  readonly visibleTurns: ReadonlySet<string>;
  /** Texts already shown in this epoch: an identical line is not recalled again. */
  readonly shown: ReadonlySet<string>;
  /** Narrower than the configuration's where the project asks for it. */
  readonly scope?: Scope;
}

export interface LaneScore {
  readonly rank: number;
  readonly score: number;
}

export interface RecallHit {
  readonly node: MemoryNode;
  readonly score: number;
  /** The tier-1 line, with the raw line that matched where that adds something, and date and origin. */
  readonly line: MemoryLine;
  /** The verbatim line of the turn that matched best, and the turn's end; null when only the node matched. */
  readonly raw: { readonly text: string; readonly turn: string } | null;
  /** Files the node is about that are no longer what they were; absent where none is. */
  readonly changed?: readonly FileChange[];
  /** An exact value or wording is asked for: only the raw turn has it for certain. Absent where it is not. */
  readonly isExact?: true;
  /** It does not pass the gate: whoever asks is shown it, and no prompt is given it. Absent where it does. */
  readonly isFar?: true;
  /** The node is about the file that was asked for. */
  readonly anchored?: true;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
}

export interface SearchOptions {
  readonly top: number;
  readonly sessionId?: string;
  readonly projectDir?: string;
  /** Absolute path: what is about that file or folder comes first. */
  readonly file?: string;
}
