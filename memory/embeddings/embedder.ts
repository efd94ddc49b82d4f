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
