import type { CapturedTurn } from '../../common/turn.ts';
import type { JournalTurn } from '../model/turn.ts';

/** Append-only raw turns; the only copy of what was trimmed. */
export interface Journal {
  /** Resolves once the turn is on disk (fsynced); gives it its sequence number in the session. */
  append(turn: Omit<JournalTurn, 'seq'>): Promise<JournalTurn>;
  /** Every session on disk, with the newest write first. */
  sessions(): Promise<readonly { readonly sessionId: string; readonly updatedAtMs: number }[]>;
  /** Turns of a session in order of arrival; the latest record wins where a turn id occurs twice. */
  read(sessionId: string): Promise<readonly JournalTurn[]>;
  /** Rewrites the session without these turns; nothing of them stays on disk. */
  remove(sessionId: string, turnIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export type TurnWork = 'read' | 'compact';

export type MarkedTurn = Pick<CapturedTurn, 'sessionId' | 'turnId' | 'atMs'>;

/** Turns are marked while they are worked on, so that the next process knows what this one died of. */
export interface CrashMarks {
  during<T>(what: TurnWork, turns: readonly MarkedTurn[], work: () => Promise<T>): Promise<T>;
  /** A process died of it, or of one beside it: work on it alone. */
  isSuspect(turnId: string): boolean;
  /** A second one did: leave it. */
  isSkipped(turnId: string): boolean;
  skipped(): readonly MarkedTurn[];
}
