/** One line of the brief with the turns it rests on. */
export interface Claim {
  readonly text: string;
  readonly sources: readonly string[];
}

/** A statement of a node that someone says is no longer so. */
export interface StatementRef {
  readonly nodeId: string;
  /** Its place in the node's facts; null for the node as a whole. */
  readonly fact: number | null;
}
