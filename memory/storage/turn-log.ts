import type { JournalTurn } from '../model/turn.ts';

/** Append-only raw turns; the only copy of what was trimmed. */
export interface Journal {
  /** Resolves once the turn is on disk (fsynced); gives it its sequence number in the session. */
  append(turn: Omit<JournalTurn, 'seq'>): Promise<JournalTurn>;
  /** Ids of every session on disk, with the newest write first. */
  sessions(): Promise<readonly string[]>;
  /** Turns of a session in order of arrival; the latest record wins where a turn id occurs twice. */
  read(sessionId: string): Promise<readonly JournalTurn[]>;
  /** Rewrites the session without these turns; nothing of them stays on disk. */
  remove(sessionId: string, turnIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}
