/**
 * Who a piece of text comes from, most trusted first. What is derived from several takes the lowest.
 */
export type Origin = 'user' | 'assistant' | 'tool' | 'external';

const ORDER: readonly Origin[] = ['user', 'assistant', 'tool', 'external'];

/** The least trusted of `origins`; `external` when there are none. */
export function lowestOrigin(origins: readonly Origin[]): Origin {
  let worst = -1;
  for (const origin of origins) worst = Math.max(worst, ORDER.indexOf(origin));
  return ORDER[worst] ?? 'external';
}

/** Only these may speak in a system channel. */
export function isCleanOrigin(origin: Origin): boolean {
  return origin === 'user' || origin === 'assistant';
}

export type Role = 'user' | 'assistant' | 'system';

/** One message as Claude Code sent it. */
export interface CapturedMessage {
  readonly role: Role;
  /** JSON text of the message's `content` value, the very characters received. */
  readonly content: string;
  /** Hex digest of those characters. */
  readonly sha256: string;
}

/**
 * A user message and all until the next one, tool calls included.
 *
 * `key` is the lineage hash up to and including the turn's prompt, `turnId` the one up to its last message.
 * A turn captured from the response stream, before Claude Code has sent it back, gets a
 * `turnId` computed from the reassembled assistant message. All hashes are lower-case hex.
 */
export interface CapturedTurn {
  readonly key: string;
  readonly turnId: string;
  /** Lineage up to what stands before its prompt: the id of the turn before; '' for the first one. */
  readonly before?: string;
  readonly sessionId: string;
  /** Claude Code's working directory; null when the request did not name one. */
  readonly projectDir: string | null;
  readonly model: string;
  readonly atMs: number;
  readonly messages: readonly CapturedMessage[];
  /** Set where this is not a turn but some rounds of one, the first with the turn's prompt before them. */
  readonly part?: TurnPart;
  /** Of a turn: the parts it begins with, each with its id and how many messages of the turn it holds. */
  readonly parts?: readonly { readonly turnId: string; readonly messages: number }[];
  /** What the user marked as private earlier in the conversation; never written. */
  readonly earlierPrivate?: readonly string[];
  /** Set where it was not captured but taken over later: from Claude Code's transcripts, or from a file. */
  readonly imported?: 'claude' | 'file';
}

export interface TurnPart {
  /** Counts the parts of a turn from 0. */
  readonly index: number;
  /** Id of the part before; null for the first. */
  readonly after: string | null;
}
