import type { Origin } from '../../common/turn.ts';
import type { WordRarity } from '../embeddings/word-rarity.ts';

/** What is searched: a row for each node, each turn and each fact, the latter two pointing to their node. */
export interface IndexRow {
  readonly row_id: string;
  readonly kind: 'node' | 'turn' | 'fact';
  readonly node_id: string;
  readonly session_id: string;
  readonly project: string;
  /** Id of the turn; '' on other rows. */
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
  /** Ids of the turns said right before it in its session, nearest first, at most five; none on other rows. */
  readonly before: readonly string[];
  /** Ids of the turns that a fact rests on; none on other rows. */
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
  /** The node's id or the turn's. */
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
  /** Turns by their ids; those that are not indexed are left out. */
  turnWords(turnIds: readonly string[]): Promise<ReadonlyMap<string, TurnWords>>;
  /** Inverse document frequency, ln(1 + (N - df + .5) / (df + .5)), of each token over the filter's rows. */
  termWeights(tokens: readonly string[], filter: IndexFilter): ReadonlyMap<string, number>;
  readonly lexicon: WordRarity;
  nodeIds(): Promise<ReadonlySet<string>>;
  /** For each node its digest ('' where only rows of its turns are left) and the ids of its turn rows. */
  entries(): Promise<ReadonlyMap<string, IndexEntry>>;
  /** Nothing of what was removed or replaced stays on disk when this resolves. */
  purge(): Promise<void>;
  count(): Promise<number>;
  clear(): Promise<void>;
  close(): Promise<void>;
}
