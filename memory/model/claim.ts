import type { Origin } from '../../common/turn.ts';

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

/** The brief of a session as it is stored. */
export interface StoredBrief {
  readonly session_id: string;
  readonly project: string;
  readonly updated_at: string;
  /** Claims with the origin they take from their sources. */
  readonly active: readonly (Claim & { readonly origin: Origin })[];
  readonly hints: readonly (Claim & { readonly origin: Origin })[];
}
