import type { CapturedTurn } from '../common/turn.ts';
import type { MemoryParts } from './parts.ts';
import type { Sessions } from './sessions.ts';

/** What enters memory from running conversations. */
export type Capture = ReturnType<typeof createCapture>;

interface Parts extends MemoryParts {
  readonly sessions: Sessions;
  /** Settles when history is read. */
  readonly started: Promise<void>;
  readonly isClosing: () => boolean;
  readonly onActivity: () => void;
}

export function createCapture({ log, pipeline, sessions, started, isClosing, onActivity }: Parts) {
  return {
    /** Queues finished turns; returns at once, never throws. A turn whose id is known is skipped. */
    captureTurns(turns: readonly CapturedTurn[]): void {
      onActivity();
      try {
        pipeline.capture(turns);
      } catch (error) {
        log.error('turns were not captured', { error });
      }
    },
    /** Resolves once the turns of this session that were captured before are known or stored, or failed to be. */
    awaitCaptures: (sessionId: string): Promise<void> => pipeline.awaitCaptures(sessionId),
    /** A hook reports the exact prompt that the user typed. */
    reportPrompt: (sessionId: string, prompt: string): void => pipeline.reported(sessionId, prompt),
    /** Asks for durable nodes for these turns soon (forced compaction); returns at once. */
    prepareNodes(sessionId: string, turnIds: readonly string[]): void {
      onActivity();
      if (!isClosing()) pipeline.prepare(sessionId, turnIds);
    },
    summarizeSession: (id: string) => started.then(() => sessions.summarize(id)),
    closeSession: (id: string) => started.then(() => sessions.close(id)),
  };
}
