import type { Origin } from '../../common/turn.ts';

/** What is indexed: a row for each node, each turn and each fact; rows of turns and facts name their node. */
export interface IndexRow {
  readonly kind: 'node' | 'turn' | 'fact';
  readonly nodeId: string;
  /** The session in which a turn was said; on other rows the node's. */
  readonly sessionId: string;
  readonly project: string;
  /** '' on other than turn rows. */
  readonly turnId: string;
  readonly origin: Origin;
  /** When a turn was said; for a node or fact, when the first of its turns was. */
  readonly atMs: number;
  /** `contentDigest` of the node on its own row; '' on other rows. */
  readonly digest: string;
  /** What full text sees, before tokenizing. */
  readonly text: string;
  /** What the vector is made of. */
  readonly embedded: string;
  /** '' on other than node rows. */
  readonly trigger: string;
  /** Turns said one after the other in a session have consecutive places; null on other than turn rows. */
  readonly place: number | null;
  /** Turns that a fact rests on. */
  readonly sources: readonly string[];
}

export interface IndexFilter {
  readonly project?: string;
  readonly sessionId?: string;
}

/** Lanes over turns: their words, their words with those of the five turns before, identifiers and names, vectors. */
export const TURN_LANES = ['raw', 'window', 'entity', 'meaning'] as const;
/** Lanes over facts, which lead to the turns that the facts rest on: words, vectors. */
export const FACT_LANES = ['fact', 'factMeaning'] as const;
/** Lanes over nodes: words of summary and tags, words of the trigger, vectors of the summary. */
export const NODE_LANES = ['fts', 'trigger', 'summary'] as const;
export type Lane = (typeof TURN_LANES | typeof FACT_LANES | typeof NODE_LANES)[number];

/** Ranks start at 1. Scores are BM25 in lanes of words, cosines in lanes of vectors. */
export interface LaneScore {
  readonly rank: number;
  readonly score: number;
}

/** A turn of a node, or a node by itself, that at least one lane found. */
export interface Hit {
  readonly nodeId: string;
  /** Null where lanes of nodes found the node itself. */
  readonly turnId: string | null;
  readonly atMs: number;
  readonly tellsTime: boolean;
  /** See `IndexRow`; null where only a fact led to the turn. */
  readonly place: number | null;
  readonly lanes: Readonly<Partial<Record<Lane, LaneScore>>>;
}

export interface TurnWords {
  readonly text: string;
  readonly origin: Origin;
}

export interface IndexEntry {
  readonly digest: string;
  readonly sessionId: string;
  readonly turns: readonly string[];
}

/**
 * Finds turns and nodes. Everything in it can be rebuilt from the files. One writer. Reads throw CometError
 * `index_unreadable` where `clear` and new rows would help.
 */
export interface SearchIndex {
  /** `Embedder.id` of the vectors that searches compare. */
  embedderId(): string;
  /**
   * An index for another embedder, filled while this one serves; null where none is needed. Writes to this one go there
   * too, until `takeOver`: it is complete and serves from now on, and this one is deleted.
   */
  successor?(): (Pick<SearchIndex, 'entries' | 'put' | 'remove'> & { takeOver(): Promise<void> }) | null;
  /** Replaces all rows of the nodes that these rows belong to. A search sees them once this resolves. */
  put(rows: readonly IndexRow[]): Promise<void>;
  remove(nodeIds: readonly string[]): Promise<void>;
  /** Asks each lane for its best `limit` rows. The hits are in no order: see `ranking/`. */
  search(query: string, filter: IndexFilter, limit: number, lanes: readonly Lane[]): Promise<readonly Hit[]>;
  /** Texts of turns of these nodes by turn id; turns that are not indexed are left out. */
  turnTexts(nodeIds: readonly string[], turnIds: readonly string[]): Promise<ReadonlyMap<string, TurnWords>>;
  /** Inverse document frequency, ln(1 + (N - df + .5) / (df + .5)), of each token over the filter's turns and nodes. */
  termWeights(tokens: readonly string[], filter: IndexFilter): Promise<ReadonlyMap<string, number>>;
  /** For each node its digest, '' where it must be written again, and its indexed turns. */
  entries(): Promise<ReadonlyMap<string, IndexEntry>>;
  size(): Promise<{ readonly nodes: number; readonly rows: number }>;
  /** Merges commits. Nothing of what was removed or replaced stays on disk when this resolves. */
  optimize(): Promise<void>;
  /** Frees what only makes searches faster; the next one is slower. */
  rest(): Promise<void>;
  clear(): Promise<void>;
  close(): Promise<void>;
}
