import type { CapturedTurn, Origin } from '../common/turn.ts';
import type { Lexicon } from './core/lexicon.ts';
import type { Fact, MemoryNode } from './core/node.ts';
import type { Revised } from './core/revision.ts';

/** What a text is for vector search. */
export interface Embedding {
  /** Of length 1, or all zeros for text without words. */
  readonly vector: Float32Array;
  /** For questions in Hangul, kana or Han; null where the text has none of them, or `vector` reads them itself. */
  readonly scriptVector: Float32Array | null;
  /** Distinct ids of its pieces, ascending; empty where the embedder weighs none. */
  readonly pieces: Uint16Array;
}

/** What is known of the texts that a question is asked of. */
export interface Corpus {
  /** Inverse document frequency of each piece, see `PieceStats`. */
  pieceWeights(pieces: readonly number[]): ReadonlyMap<number, number>;
  /** About the mean of its vectors; null where there are too few to tell. */
  mean(): Promise<Float32Array | null>;
}

export interface QueryVector {
  readonly vector: Float32Array;
  /** Which vectors of the documents it is compared with. */
  readonly comparedWith: 'vector' | 'scriptVector';
}

/** Turns text into vectors. Never runs on the thread that streams. */
export interface Embedder {
  /** Stored beside each vector; a change of id means the index must be rebuilt. */
  readonly id: string;
  readonly dimensions: number;
  /** One embedding for each text, in order. */
  embed(texts: readonly string[]): Promise<readonly Embedding[]>;
  /** The vector of a question about a corpus; never waits until documents are done. */
  embedQuery(text: string, corpus: Corpus): Promise<QueryVector>;
  close(): Promise<void>;
}

/** What a model is shown of one turn: redacted, whole, never a preview. */
export interface TurnText {
  readonly end: string;
  readonly atMs: number;
  readonly origin: Origin;
  readonly user: string;
  readonly parts: readonly TurnPart[];
  /** Files of the project that its tool calls named, as they were when it ended. */
  readonly files?: readonly FileMark[];
}

export interface TurnPart {
  readonly kind: 'assistant' | 'tool_use' | 'tool_result';
  readonly origin: Origin;
  /** Tool name for the two tool kinds, else ''. */
  readonly tool: string;
  readonly text: string;
}

export interface SensorReading {
  readonly logic_flow: 'MAINTAIN' | 'BROKEN';
  readonly load_level: number;
  readonly redundancy_detected: boolean;
}

export interface SensorInput {
  /** Whose turns these are; for the bill only. */
  readonly sessionId?: string;
  /** Up to the last five buffered turns, oldest first. */
  readonly buffer: readonly TurnText[];
  readonly turn: TurnText;
}

export interface CompactionInput {
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
export interface KnownStatement extends Revised {
  readonly text: string;
  /** Since when, `2026-03-01`. */
  readonly date: string;
}

export interface DraftNode {
  readonly summary: string;
  readonly trigger: string;
  readonly topic_tags: readonly string[];
  readonly importance: 'HIGH' | 'MED' | 'LOW';
  readonly recall_mode: 'passive' | 'active' | 'both';
  /** `end` of each turn it stands for; together the drafts cover every turn of the input. */
  readonly turns: readonly string[];
  readonly facts: readonly Fact[];
  /** Where every word of it was copied from, if its writer knows; never taken from a model. */
  readonly origin?: Origin;
  /** Of the known statements those that are no longer so by what it says. */
  readonly revises?: readonly Revised[];
}

/** One line of the brief with the turns it rests on. */
export interface Claim {
  readonly text: string;
  readonly sources: readonly string[];
}

export interface CompactionResult {
  readonly nodes: readonly DraftNode[];
  readonly brief: { readonly active: readonly Claim[]; readonly hints: readonly Claim[] };
}

/** Nodes that seem to say the same, or to belong together. */
export interface CondenseInput {
  readonly kind: 'merge' | 'group';
  readonly notes: readonly { readonly summary: string; readonly trigger: string; readonly facts: readonly string[] }[];
}

export interface CondenseResult {
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
  sense(input: SensorInput, signal: AbortSignal): Promise<SensorReading>;
  compact(input: CompactionInput, signal: AbortSignal): Promise<CompactionResult>;
  /** One text for several nodes; one that cannot do it leaves it to rules. */
  condense?(input: CondenseInput, signal: AbortSignal): Promise<CondenseResult>;
  /** Tier 2 of one node. */
  detail(input: DetailInput, signal: AbortSignal): Promise<DetailResult>;
  /** Ends every child; idempotent. */
  close(): Promise<void>;
}

/** One durable record of the journal: a redacted turn. `project` is the project key, see `core/project.ts`. */
export interface JournalTurn extends CapturedTurn {
  readonly seq: number;
  readonly project: string;
  readonly redacted: boolean;
  readonly files?: readonly FileMark[];
  /** The assistant says again in it what came from outside earlier in its session: all it says counts as external. */
  readonly echoes?: true;
  /** Of a turn with `parts`: their messages come before these and are not among them. */
  readonly tail?: true;
}

/** A file of a project at one moment. */
export interface FileMark {
  /** Relative to the project's root, with forward slashes. */
  readonly path: string;
  /** Beginning of the digest of its content, hex; '' where it was not read. */
  readonly sha256: string;
  /** Beginning of the commit that was checked out, hex; '' where there was none. */
  readonly commit: string;
}

/** What the disk says of a marked file; `unknown` where it cannot or must not be read. */
export type FileState = 'same' | 'changed' | 'deleted' | 'unknown';

/** The projects' own files: only looked at, never written, and never one outside the project or with secrets. */
export interface SourceFiles {
  /** The project's root for a working directory inside it; null where there is none. */
  rootOf(directory: string | null): string | null;
  /** The path inside `root`; null for one that leads out of it. Relative paths start from `directory`. */
  placeOf(file: string, root: string, directory: string): string | null;
  /** Null where there is no such file now. May take as long as the disk does. */
  mark(root: string, path: string): Promise<FileMark | null>;
  compare(root: string, mark: FileMark): Promise<FileState>;
}

/** Append-only raw turns; the only copy of what was trimmed. */
export interface Journal {
  /** Resolves once the turn is on disk (fsynced); gives it its sequence number in the session. */
  append(turn: Omit<JournalTurn, 'seq'>): Promise<JournalTurn>;
  /** Every session on disk, with the newest write first. */
  sessions(): Promise<readonly { readonly sessionId: string; readonly updatedAtMs: number }[]>;
  /** Turns of a session in order of arrival; the latest record wins where an `end` stands twice. */
  read(sessionId: string): Promise<readonly JournalTurn[]>;
  /** Rewrites the session without these turns; nothing of them stays on disk. */
  remove(sessionId: string, ends: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface Problem {
  readonly file: string;
  readonly message: string;
}

/** The truth: one markdown file for each session with a section for each of its nodes. */
export interface NodeFiles {
  /**
   * Reads all; a section that does not validate is named in `problems` and left as it is on disk. Files that did not
   * change since the last time give the very same nodes. With `only`, no other file is looked at.
   */
  load(
    only?: readonly string[],
  ): Promise<{ readonly nodes: readonly MemoryNode[]; readonly problems: readonly Problem[] }>;
  /** Inserts or replaces by `node_id`; durable when it resolves. Nodes may be of several sessions. */
  save(nodes: readonly MemoryNode[]): Promise<void>;
  /** The sections of these ids, and nothing beside. */
  drop(nodeIds: readonly string[]): Promise<void>;
  /** Every section of these ids, wherever it stands, and set-aside copies that name one of them or of `ends`. */
  remove(nodeIds: readonly string[], ends?: readonly string[]): Promise<void>;
  readBrief(sessionId: string): Promise<StoredBrief | null>;
  /** One that claims nothing is taken away. */
  writeBrief(brief: StoredBrief): Promise<void>;
  /** Every brief that can be read, ordered by session. */
  briefs(): Promise<readonly StoredBrief[]>;
}

/** Tells when files were changed by someone else. */
export interface NodeWatch {
  /**
   * Resolves when nothing that happens from now on is missed. `changed` is given the markdown files that were written,
   * moved or removed, once they have come to rest; our own writes are among them.
   */
  start(changed: (files: readonly string[]) => void): Promise<void>;
  close(): Promise<void>;
}

export interface SnapshotInfo {
  readonly id: string;
  readonly at: string;
  /** What was about to happen: `edit`, `rm`, `import`, `rollback` or `consolidate`. */
  readonly reason: string;
  readonly bytes: number;
}

/** Nodes as they were and as they are to be; null where there was none, or is to be none. */
export interface NodeRewrite {
  readonly before: MemoryNode | null;
  readonly after: MemoryNode | null;
}

/** A change of many files that happens as a whole or not at all. */
export interface ChangeRecord {
  /** Taken before it. */
  readonly snapshot: string;
  readonly changes: readonly NodeRewrite[];
}

/** What the last dream did, in numbers, and what it looked at. */
export interface DreamLedger {
  readonly at: string;
  readonly snapshot: string | null;
  readonly merged: number;
  readonly groups: number;
  readonly tags: number;
  readonly linked: number;
  readonly pruned: number;
  /** Nodes that the next one looks at. */
  readonly left: number;
  /** Digest of each node as it was looked at. */
  readonly seen: Readonly<Record<string, string>>;
}

export interface DreamFiles {
  /** Durable when it resolves: from now on the change is undone at the next start. `digests` of what it writes, by id. */
  begin(record: ChangeRecord, digests: Readonly<Record<string, string>>): Promise<void>;
  /** Durable when it resolves: the change stands, or is undone. */
  end(): Promise<void>;
  /** A change that was begun and not ended. */
  pending(): Promise<ChangeRecord | null>;
  /** Digests of what the last change wrote. */
  written(): Promise<ReadonlyMap<string, string>>;
  load(): Promise<DreamLedger | null>;
  save(ledger: DreamLedger): Promise<void>;
}

/** Memory as it stood before a change, a bounded number of times. */
export interface Snapshots {
  /** Newest first. */
  list(): Promise<readonly SnapshotInfo[]>;
  write(reason: string, text: string): Promise<SnapshotInfo>;
  /** @throws CometError `not_found` */
  read(id: string): Promise<string>;
  /** Passes each through `change`; what comes back takes its place, and nothing of what was there stays. */
  rewrite(change: (text: string) => string | Promise<string>): Promise<void>;
}

export interface StoredBrief {
  readonly session_id: string;
  readonly project: string;
  readonly updated_at: string;
  /** Claims with the origin they take from their sources. */
  readonly active: readonly (Claim & { readonly origin: Origin })[];
  readonly hints: readonly (Claim & { readonly origin: Origin })[];
}

/** What is searched: a row for each node, each turn and each fact, the latter two pointing to their node. */
export interface IndexRow {
  readonly row_id: string;
  readonly kind: 'node' | 'turn' | 'fact';
  readonly node_id: string;
  readonly session_id: string;
  readonly project: string;
  /** `end` of the turn; '' on other rows. */
  readonly turn: string;
  readonly origin: Origin;
  /** Of a turn when it was said, of a node or fact when the first of its turns was. */
  readonly created_at_ms: number;
  /** `contentDigest` of the node on its own row; '' on other rows. */
  readonly digest: string;
  /** What full text sees, before tokenising. */
  readonly text: string;
  /** What the vector is made of (a turn's or fact's own text on their rows). */
  readonly summary: string;
  /** What the trigger vector is made of; '' on other than node rows. */
  readonly trigger: string;
  /** Ends of the turns said right before it in its session, nearest first, at most five; none on other rows. */
  readonly before: readonly string[];
  /** Ends of the turns that a fact rests on; none on other rows. */
  readonly sources: readonly string[];
}

/** A row without its texts. */
export type FoundRow = Pick<
  IndexRow,
  'row_id' | 'kind' | 'node_id' | 'session_id' | 'project' | 'turn' | 'origin' | 'created_at_ms' | 'before' | 'sources'
> & {
  /** Its text tells a time. */
  readonly timed: boolean;
};

export interface IndexFilter {
  readonly project?: string;
  readonly sessionId?: string;
}

/** What the index knows of rows, by their slots. Nodes and turns go by numbers; 0 is none. */
export interface RowReader {
  nodeOf(slot: number): number;
  turnOf(slot: number): number;
  /** The turn said so many turns before it, from 1 on. */
  beforeOf(slot: number, by: number): number;
  /** The nth turn that a fact rests on, from 0 on. */
  sourceOf(slot: number, nth: number): number;
  atMs(slot: number): number;
  isTimed(slot: number): boolean;
  /** Undefined for a row that is gone. */
  at(slot: number): FoundRow | undefined;
  /** The node's id or the turn's end. */
  nameOf(number: number): string;
  numberOf(name: string): number;
}

/** Rows that a lane found, best first. */
export interface Hits {
  readonly slots: readonly number[];
  /** BM25 on the lanes of full text, cosine on those of vectors; higher is better. */
  readonly scores: readonly number[];
}

export interface LaneHits {
  /** Full text over nodes. */
  readonly fts: Hits;
  /** Vectors of nodes. */
  readonly summary: Hits;
  readonly trigger: Hits;
  /** Full text over turns. */
  readonly raw: Hits;
  /** Vectors of turns. */
  readonly meaning: Hits;
  /** Full text over turns, with terms near in meaning to the question's. */
  readonly expanded: Hits;
  /** Full text over each turn with the five before it. */
  readonly window: Hits;
  /** Full text over turns, with the identifiers, paths and names of the question alone. */
  readonly entity: Hits;
  readonly fact: Hits;
  readonly factMeaning: Hits;
}

export type Lane = keyof LaneHits;

/** What a search found. To be read at once: rows that are written later may change what the slots stand for. */
export interface Found {
  readonly lanes: LaneHits;
  readonly rows: RowReader;
}

export interface SearchOptions {
  readonly filter: IndexFilter;
  /** Hits of each lane of turns and of facts at most; lanes of nodes give no more than 60. */
  readonly limit: number;
  /** Lanes to leave empty. */
  readonly without?: ReadonlySet<Lane>;
}

/** Reads each passage beside the question, which ranking by words and vectors does not. */
export interface Reranker {
  /**
   * A score for each text, in their order; more is better, and only their order counts.
   *
   * @throws CometError `model_failed`, or the signal's reason as soon as it aborts
   */
  score(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/** What was said in a turn, as it is indexed. */
export interface TurnWords {
  readonly text: string;
  readonly origin: Origin;
}

export interface IndexEntry {
  readonly digest: string;
  readonly turns: readonly string[];
}

/** An index with the vectors of another embedder, filled while the one of before serves. */
export interface Successor extends Pick<NodeIndex, 'entries' | 'upsert' | 'removeNodes'> {
  /** All is in it: it serves from now on, and the one of before goes for good. */
  takeOver(): Promise<void>;
}

/** Rebuildable from the files. One writer. */
export interface NodeIndex {
  /** `Embedder.id` of the vectors that searches compare. */
  embedderId(): string;
  /** Null where none is needed. What is written to the index is written to it as well. */
  successor?(): Successor | null;
  upsert(rows: readonly IndexRow[]): Promise<void>;
  /** Every row of these nodes, turn rows included. */
  removeNodes(nodeIds: readonly string[]): Promise<void>;
  search(query: string, options: SearchOptions): Promise<Found>;
  /** Turns by their ends; those that are not indexed are left out. */
  turnWords(ends: readonly string[]): Promise<ReadonlyMap<string, TurnWords>>;
  /** Inverse document frequency, ln(1 + (N - df + .5) / (df + .5)), of each token over the filter's rows. */
  termWeights(tokens: readonly string[], filter: IndexFilter): ReadonlyMap<string, number>;
  readonly lexicon: Lexicon;
  nodeIds(): Promise<ReadonlySet<string>>;
  /** For each node its digest ('' where only rows of its turns are left) and the ends of its turn rows. */
  entries(): Promise<ReadonlyMap<string, IndexEntry>>;
  /** Nothing of what was removed or replaced stays on disk when this resolves. */
  purge(): Promise<void>;
  count(): Promise<number>;
  clear(): Promise<void>;
  close(): Promise<void>;
}
