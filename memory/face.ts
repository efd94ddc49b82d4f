import type { Scope } from '../common/consent.ts';
import type { CapturedTurn, Origin } from '../common/turn.ts';
import type { ArchiveFormat } from './core/archive.ts';
import type { MemoryNode } from './core/node.ts';
import type { PastTurn } from './core/past-turn.ts';
import type { KnownFact } from './core/project-tally.ts';
import type { Source } from './core/source.ts';
import type { FileChange } from './core/staleness.ts';
import type { Lane, Problem, SnapshotInfo } from './ports.ts';

/** A node as one line of tier 1, ready to be injected: redacted, one line, no fence or tag of ours inside. */
export interface MemoryLine {
  readonly nodeId: string;
  readonly text: string;
  readonly origin: Origin;
}

/** What may stand in the system prompt for a whole epoch; every line is of clean origin. */
export interface StandingMemory {
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
  /** Ends of the turns that are sent verbatim: what stands for them is not recalled. */
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
  /** The node is about the file that was asked for. */
  readonly anchored?: true;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
}

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
  /** Nodes written so far, while `reindex` runs or the index of another embedder is filled. */
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

/** The public face of memory. Nothing here is awaited on the path of a request but `recall`, under a deadline. */
export interface Memory {
  /** Takes finished turns; returns at once, never throws. A turn whose `end` is known is skipped. */
  capture(turns: readonly CapturedTurn[]): void;
  /**
   * For those of `ends` that durable nodes stand for: the nodes' ids; none for what the user had removed. Synchronous,
   * from memory.
   */
  standIns(ends: readonly string[]): ReadonlyMap<string, readonly string[]>;
  /** Asks for durable nodes for these turns soon (forced compaction); returns at once. */
  prepare(sessionId: string, ends: readonly string[]): void;
  /** Tier-1 lines in the order given; unknown ids are left out. */
  lines(nodeIds: readonly string[]): readonly MemoryLine[];
  /** Brief of the session (or the last one of its project), and the passive and pinned lines. */
  standing(sessionId: string, projectDir: string | null): Promise<StandingMemory>;
  /** Best first; empty when nothing fits. */
  recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]>;

  /** A session may be named by any unambiguous start of its id. @throws CometError `ambiguous_id` */
  list(filter: NodeFilter): readonly MemoryNode[];
  /**
   * `id` may be any unambiguous prefix. Depth 1 makes the detailed summary where there is none yet, which may take as
   * long as a model does; depth 2 adds the verbatim messages.
   * @throws CometError `not_found` or `ambiguous_id`
   */
  show(id: string, depth: 0 | 1 | 2): Promise<NodeView>;
  /**
   * Best first. With `file`, an absolute path, what is about that file or folder comes first, newest first where `query`
   * is empty, then what fits the query or names the file.
   *
   * @throws as `list`
   */
  search(
    query: string,
    options: { top: number; sessionId?: string; projectDir?: string; file?: string },
  ): Promise<readonly RecallHit[]>;
  /** Removes file section, index rows and raw turns; returns the full ids. @throws as `show` */
  remove(ids: readonly string[]): Promise<readonly string[]>;
  /** Removes by where it came from, whose it is, or when it was said. @throws CometError `ambiguous_id`, `usage` */
  forget(request: ForgetRequest): Promise<ForgetReport>;
  /** Newest first; of one project where it is named. */
  sessions(filter?: { readonly projectDir?: string }): Promise<readonly SessionView[]>;
  /** @throws CometError `not_found` */
  session(sessionId: string): Promise<SessionDetail>;
  /** Makes memory of what waits of the session. @throws CometError `not_found` */
  settle(sessionId: string): Promise<void>;
  /** Does the same, and marks the session closed until its next turn. @throws CometError `not_found` */
  closeSession(sessionId: string): Promise<SessionView>;
  about(projectDir: string): Promise<ProjectView>;
  /** The brief as markdown, '' when there is none. @throws CometError `not_found` */
  brief(sessionId: string): Promise<string>;
  /** Every message of the session in order, for a fork with what it was forked from before them. @throws CometError `not_found` */
  restore(sessionId: string): Promise<readonly RawMessage[]>;
  /** Compacts every tail and waits until sensor, compacter and indexer are idle; false on timeout. */
  flush(timeoutMs: number): Promise<boolean>;
  status(): MemoryStatus;

  /** The node's section as its file has it. @throws as `show` */
  section(id: string): Promise<{ readonly id: string; readonly text: string }>;
  /** @throws as `show`; CometError `node_invalid` naming the key and what was expected, and nothing is changed */
  edit(id: string, change: NodeChange): Promise<MemoryNode>;
  /** Pinned nodes are always shown in their project, or in the one of `projectDir`. @throws as `edit` */
  pin(ids: readonly string[], isPinned: boolean, projectDir?: string): Promise<readonly MemoryNode[]>;
  /** Nodes and briefs, without raw turns. */
  exportAll(format: ArchiveFormat): Promise<string>;
  /** Takes an export back, all of it or nothing. @throws CometError `node_invalid`, naming line and key */
  importAll(text: string): Promise<ImportReport>;
  /** Takes a text in by pieces of at most 2,000 characters; what is here already stays as it is. */
  importDocument(request: DocumentRequest): Promise<DocumentReport>;
  /** Takes turns in that were said before, with the time at which they were; what is here already stays as it is. */
  importTurns(request: PastRequest): Promise<PastReport>;
  /**
   * Takes a note in; one that is here already stays as it is.
   * @throws CometError `node_invalid` where nothing is left of it, or the user had the same removed
   */
  remember(request: NoteRequest): Promise<{ readonly node: MemoryNode; readonly isNew: boolean }>;
  /** Newest first. */
  snapshots(): Promise<readonly SnapshotInfo[]>;
  /** @throws CometError `not_found` or `ambiguous_id` */
  rollback(snapshot: string): Promise<RollbackReport>;
  /** Merges what says the same, groups what belongs together, tidies tags and links; see `dream` in docs/DOMAIN.md. */
  dream(request: DreamRequest): Promise<DreamReport>;
  /** Writes the whole index again from the files; returns how many nodes. */
  reindex(): Promise<number>;
  stats(): Promise<MemoryStats>;
  /** @throws as `show` */
  why(id: string): Promise<NodeReason>;
  close(): Promise<void>;
}
