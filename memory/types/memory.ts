import type { Scope } from '../../common/policy.ts';
import type { CapturedTurn } from '../../common/turn.ts';
import type { ArchiveFormat } from '../model/archive.ts';
import type { MemoryNode } from '../model/node.ts';
import type { SnapshotInfo } from '../storage/snapshot-files.ts';
import type {
  DocumentReport,
  DocumentRequest,
  DreamReport,
  DreamRequest,
  ForgetReport,
  ForgetRequest,
  ImportReport,
  NodeChange,
  NoteRequest,
  PastReport,
  PastRequest,
  RollbackReport,
} from './changes.ts';
import type { MemoryLine, RecallHit, RecallRequest, StandingMemory } from './recall.ts';
import type {
  MemoryStats,
  MemoryStatus,
  NodeFilter,
  NodeReason,
  NodeView,
  ProjectView,
  RawMessage,
  SessionDetail,
  SessionView,
} from './views.ts';

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
  /** Brief of the session (or the last one of its project), and the passive and pinned lines; its own with `session`. */
  standing(sessionId: string, projectDir: string | null, scope?: Scope): Promise<StandingMemory>;
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
