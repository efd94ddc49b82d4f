/**
 * Where a text comes from, most trusted first. A text derived from several sources has the lowest origin.
 */
export type Origin = 'user' | 'assistant' | 'tool' | 'external';

const ORDER: readonly Origin[] = ['user', 'assistant', 'tool', 'external'];

/** The least trusted of `origins`; `external` when there are none. */
export function lowestOrigin(origins: readonly Origin[]): Origin {
  let worst = -1;
  for (const origin of origins) worst = Math.max(worst, ORDER.indexOf(origin));
  return ORDER[worst] ?? 'external';
}

/** Only text of these origins may go to a system channel. */
export function isCleanOrigin(origin: Origin): boolean {
  return origin === 'user' || origin === 'assistant';
}

export type Role = 'user' | 'assistant' | 'system';

/** One message as Claude Code sent it. */
export interface CapturedMessage {
  readonly role: Role;
  /** JSON text of the message's `content` value, exactly as received. */
  readonly content: string;
  /** Hex digest of `content`. */
  readonly sha256: string;
}

/**
 * A user message and everything up to the next one, including tool calls.
 *
 * `key` is the lineage hash up to and including the turn's prompt, `turnId` the one up to its last message.
 * A turn captured from the response stream, before Claude Code has sent it back, gets a
 * `turnId` computed from the reassembled assistant message. All hashes are lower-case hex.
 */
export interface CapturedTurn {
  readonly key: string;
  readonly turnId: string;
  /** Lineage before its prompt: the id of the previous turn; '' for the first one. */
  readonly before?: string;
  readonly sessionId: string;
  /** Claude Code's working directory; null when the request did not name one. */
  readonly projectDir: string | null;
  readonly model: string;
  readonly atMs: number;
  readonly messages: readonly CapturedMessage[];
  /** Set when this is a part of a turn: some tool rounds, the first part with the turn's prompt. */
  readonly part?: TurnPart;
  /** The parts that a whole turn begins with: their ids and numbers of messages. */
  readonly parts?: readonly { readonly turnId: string; readonly messages: number }[];
  /** What the user marked as private earlier in the conversation; never written. */
  readonly earlierPrivate?: readonly string[];
  /** Set when it was imported instead of captured: from Claude Code's transcripts, or from a file. */
  readonly imported?: 'claude' | 'file';
}

export interface TurnPart {
  /** Counts the parts of a turn from 0. */
  readonly index: number;
  /** Id of the part before; null for the first. */
  readonly after: string | null;
  /** For a subagent's transcript: id of the turn that started it, whose own messages are others. */
  readonly of?: string;
}
