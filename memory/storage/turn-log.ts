import type { CapturedTurn } from '../../common/turn.ts';
import type { FileMark } from './project-files.ts';

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
