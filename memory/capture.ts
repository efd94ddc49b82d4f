import type { CapturedTurn } from '../common/turn.ts';
import type { MemoryParts } from './parts.ts';
import type { Sessions, SessionView } from './sessions.ts';

/** What enters memory from running conversations. */
export interface Capture {
  /** Queues finished turns; returns at once, never throws. A turn whose id is known is skipped. */
  captureTurns(turns: readonly CapturedTurn[]): void;
  /** Asks for durable nodes for these turns soon (forced compaction); returns at once. */
  prepareNodes(sessionId: string, turnIds: readonly string[]): void;
  /** Summarizes the session's waiting turns. @throws CometError `not_found` */
  summarizeSession(sessionId: string): Promise<void>;
  /** Does the same, and marks the session closed until its next turn. @throws CometError `not_found` */
  closeSession(sessionId: string): Promise<SessionView>;
}

interface Parts extends MemoryParts {
  readonly sessions: Sessions;
  /** Settles when history is read. */
  readonly started: Promise<void>;
  readonly isClosing: () => boolean;
  readonly onActivity: () => void;
}

export function createCapture({ log, pipeline, sessions, started, isClosing, onActivity }: Parts): Capture {
  return {
    captureTurns(turns) {
      onActivity();
      try {
        pipeline.capture(turns);
      } catch (error) {
        log.error('turns were not captured', { error });
      }
    },
    prepareNodes(sessionId, turnIds) {
      onActivity();
      if (!isClosing()) pipeline.prepare(sessionId, turnIds);
    },
    summarizeSession: (id) => started.then(() => sessions.summarize(id)),
    closeSession: (id) => started.then(() => sessions.close(id)),
  };
}
