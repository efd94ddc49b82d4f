import { runAtOnce, type Steps } from '../../common/async.ts';
import { LruMap } from '../../common/map.ts';
import type { CapturedTurn, Origin } from '../../common/turn.ts';
import { createAgentReports } from './agent-reports.ts';
import { createCommandReports } from './command-reports.ts';
import { digestText } from './content-blocks.ts';
import { findCandidates } from './turn-trust.ts';

const SESSIONS = 200;

/** What is known of the texts of a turn beyond their form, by session. */
export type Reports = ReturnType<typeof createReports>;

/** @param sealedOrigin  of what our own program wrote; null for any other text */
export function createReports(sealedOrigin?: (text: string) => Origin | null, agents = createAgentReports()) {
  const prompts = new LruMap<string, Set<string>>(SESSIONS);
  const commands = createCommandReports();

  /** The turn with the origins of texts that a hook, our own program, a subagent or a command in the background wrote. */
  function* read(turn: CapturedTurn): Steps<CapturedTurn> {
    const { sessionId } = turn;
    const outputs = Object.entries(commands.read(turn));
    const origins: [string, Origin][] = [];
    for (const text of turn.messages.filter(({ role }) => role !== 'assistant').flatMap(findCandidates)) {
      yield;
      const digest = digestText(text);
      const origin = prompts.peek(sessionId)?.has(digest)
        ? 'user'
        : (sealedOrigin?.(text) ?? agents.getOrigin(sessionId, text) ?? commands.getOrigin(sessionId, text));
      if (origin !== null) origins.push([digest, origin]);
    }
    const known = [...origins, ...outputs];
    return known.length === 0 ? turn : { ...turn, origins: Object.fromEntries(known) };
  }

  return {
    read,
    /** Of a turn before a restart: what it started may end in a later one. */
    noteCommands: (turn: CapturedTurn): void => void commands.read(turn),
    /** A hook reports the exact prompt. */
    addPrompt(sessionId: string, prompt: string): void {
      prompts.getOrCreate(sessionId, () => new Set()).add(digestText(prompt));
    },
    /** Returns whether the report of a subagent counts. @param seen  all that it was shown and said, its report last */
    addAgent: (seen: CapturedTurn): boolean => agents.observe(runAtOnce(read(seen))),
  };
}
