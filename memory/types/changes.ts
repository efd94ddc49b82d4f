import type { PastTurn } from '../ingest/imported-turn.ts';
import type { Source } from '../model/source-filter.ts';

/** A node's whole section, or single fields given as texts. */
export type NodeChange =
  | { readonly text: string /** The section that was edited. */; readonly base: string }
  | { readonly set: Readonly<Record<string, string>> };

export interface ImportReport {
  readonly kind: 'nodes';
  readonly added: number;
  readonly replaced: number;
  readonly unchanged: number;
  readonly briefs: number;
}

export interface DocumentRequest {
  /** Absolute; names the document: an import of the same file replaces what it no longer says. */
  readonly file: string;
  readonly text: string;
  /** The memory of this directory's project takes it in. */
  readonly projectDir: string;
  /** Pieces that the user removed too. */
  readonly again?: boolean;
}

/** Of pieces; together they are `chunks`, but for the outdated ones. */
export interface DocumentReport {
  readonly kind: 'document';
  readonly file: string;
  /** Under which `restore` gives them. */
  readonly session_id: string;
  readonly chunks: number;
  readonly added: number;
  /** Here already, from this file or another one. */
  readonly unchanged: number;
  /** Removed: the file no longer says so. */
  readonly outdated: number;
  /** Left out: the user had removed them. */
  readonly skipped: number;
}

export interface PastRequest {
  /** Of one session, oldest first. */
  readonly turns: readonly PastTurn[];
  readonly imported: 'claude' | 'file';
  /** Count only. */
  readonly dryRun: boolean;
  /** Those that are asked for; the others are looked at, because names rest on the turns before. */
  readonly wants?: (turn: PastTurn) => boolean;
  /** What was said where or when the user wants nothing taken in stays out; without it all may be kept. */
  readonly mayKeep?: (turn: PastTurn) => boolean;
  /** Names of turns that this run has met already, in whatever session; they are added to it. */
  readonly met: Set<string>;
  /**
   * Asked before each batch that the model would write anew, with about as many tokens as that takes; absent where the
   * nodes of the local adapter are enough.
   */
  readonly mayAsk?: (tokens: number) => boolean;
}

/** Of turns that were asked for; `added`, `known` and `skipped` together are `turns`. */
export interface PastReport {
  readonly turns: number;
  readonly added: number;
  /** Here already, imported or captured. */
  readonly known: number;
  /** Left out: the user had removed them, or memory was paused. */
  readonly skipped: number;
  /** What was said in the added ones, in about as many tokens. */
  readonly tokens: number;
  /** What the model would be shown and write, in about as many tokens. */
  readonly modelTokens: number;
  /** Batches that the model wrote, and those that it was to write and did not. */
  readonly modelDone: number;
  readonly modelLeft: number;
}

export interface NoteRequest {
  readonly text: string;
  /** Absolute; the memory of this directory's project takes it in. */
  readonly projectDir: string;
}

export interface RollbackReport {
  /** Nodes that were put back as they were. */
  readonly restored: number;
  readonly removed: number;
  readonly briefs: number;
  /** The snapshot that undoes it. */
  readonly undo: string;
}

export interface DreamRequest {
  /** Say what would be done, and do nothing. */
  readonly dryRun: boolean;
  /** The memory of this directory's project alone. */
  readonly projectDir?: string;
}

export interface DreamReport {
  readonly dry_run: boolean;
  readonly at: string;
  /** What `rollback` goes back to; null where nothing was changed. */
  readonly snapshot: string | null;
  /** Nodes that were new or changed since the last dream. */
  readonly looked_at: number;
  readonly merged: readonly { readonly keeper: string; readonly merged: readonly string[]; readonly summary: string }[];
  readonly groups: readonly {
    readonly parent: string;
    readonly members: readonly string[];
    readonly summary: string;
  }[];
  readonly tags: readonly { readonly from: string; readonly to: string }[];
  readonly linked: number;
  readonly pruned: { readonly links: number; readonly nodes: readonly string[] };
  /** Nodes that the next dream looks at. */
  readonly left: number;
  /** Why no model was asked although there is one; '' where it was. */
  readonly without_model: string;
}

/** What is to be forgotten: all that is given has to fit, and something is given. */
export interface ForgetRequest {
  /** Say what would be forgotten, and forget nothing. */
  readonly dryRun: boolean;
  /** Something of it entered the turn; see `Source`. */
  readonly source?: Source;
  readonly sessionId?: string;
  /** Said then or later. */
  readonly sinceMs?: number;
}

export interface ForgetReport {
  readonly dry_run: boolean;
  readonly turns: number;
  readonly sessions: readonly string[];
  readonly nodes: readonly { readonly node_id: string; readonly summary: string }[];
  /** Nodes made anew of turns that had shared one with what was forgotten. */
  readonly remade: number;
}
