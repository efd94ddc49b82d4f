/** Reads each passage beside the question, which ranking by words and vectors does not. */
export interface Reranker {
  /**
   * A score for each text, in their order; more is better, and only their order counts.
   *
   * @throws CometError `model_failed`, or the signal's reason as soon as it aborts
   */
  score(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}
