import { setTimeout as after } from 'node:timers/promises';
import type { Clock } from '../../common/async.ts';
import { createClient, type SentRequest } from './client.ts';
import type { Stage } from './harness.ts';
import type { StorySession } from './story.ts';

/** A clock of the story's: 20 seconds a request, whatever this machine needs for it. */
export interface StoryClock extends Clock {
  advance(ms: number): void;
}

export interface Played {
  readonly turns: number;
  readonly of: number;
  readonly session: number;
}

const REQUEST_MS = 20_000;
const SETTLE_MS = 30_000;
const FLUSH_MS = 25_000;

export function createStoryClock(): StoryClock {
  let nowMs = Date.UTC(2026, 10, 2, 8);
  return {
    now: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

/**
 * Plays every session of the story through the stage.
 *
 * @returns the last answer to each prompt, as it came back to the client
 * @throws CometError where a request does not come back
 */
export async function playStory(
  stage: Stage,
  story: readonly StorySession[],
  options: {
    readonly clock: StoryClock;
    readonly onRequest: (request: SentRequest) => void;
    readonly onTurn: (played: Played) => void;
  },
): Promise<ReadonlyMap<string, string>> {
  const answers = new Map<string, string>();
  const of = story.reduce((sum, session) => sum + session.turns.length, 0);
  let turns = 0;
  for (const [at, session] of story.entries()) {
    options.clock.advance(session.pauseMs);
    // The engine summarizes a session's remaining turns after a long pause; the demo does it at once.
    if (session.pauseMs > 0) await stage.engine.call('flush', { timeoutMs: FLUSH_MS });
    const client = createClient(stage.way, session, (request) => {
      options.clock.advance(REQUEST_MS);
      options.onRequest(request);
    });
    for (const [done, turn] of session.turns.entries()) {
      await settle(stage, session.id, done);
      answers.set(turn.prompt, await client.play(turn));
      turns += 1;
      options.onTurn({ turns, of, session: at + 1 });
    }
  }
  return answers;
}

/** A person reads an answer before the next prompt; memory has all that time. Late is no failure. */
async function settle({ engine }: Stage, sessionId: string, turns: number): Promise<void> {
  if (turns === 0) return;
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; await after(5)) {
    const [{ queue }, sessions] = await Promise.all([engine.call('status', {}), engine.call('sessions/list', {})]);
    const known = sessions.find((session) => session.session_id === sessionId)?.turns ?? 0;
    if (known >= turns && queue.sensor + queue.compacter + queue.indexer === 0) return;
  }
}
