import { createHash } from 'node:crypto';
import type { JournalTurn, TurnText } from './ports.ts';

interface SessionFacts {
  readonly project: string;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly turns: number;
}

/** Which turns are known, and under which names: the same turn may come back serialised in another way. */
export interface TurnBook {
  /** Reserves an `end`; false when it is known or reserved. */
  take(end: string): boolean;
  /** Gives a reserved `end` back, so that it may be offered again. */
  release(end: string): void;
  isRecorded(end: string): boolean;
  /** Enters a durable turn. Returns true when it is new, false when it is another form of a known one. */
  record(turn: JournalTurn, text: TurnText): boolean;
  /** The name that nodes use for this turn. */
  canonical(end: string): string;
  /** Every name of this turn, oldest first. */
  forms(end: string): readonly string[];
  sessionOf(end: string): string | undefined;
  session(sessionId: string): SessionFacts | undefined;
  sessions(): ReadonlyMap<string, SessionFacts>;
}

export function createTurnBook(): TurnBook {
  const taken = new Set<string>();
  const sessionOfTurn = new Map<string, string>();
  const canonicalOf = new Map<string, string>();
  const formsOf = new Map<string, string[]>();
  const bySaying = new Map<string, string>();
  const sessions = new Map<string, SessionFacts>();

  const canonical = (end: string): string => canonicalOf.get(end) ?? end;
  return {
    take(end) {
      if (taken.has(end)) return false;
      taken.add(end);
      return true;
    },
    release: (end) => void (sessionOfTurn.has(end) || taken.delete(end)),
    isRecorded: (end) => sessionOfTurn.has(end),
    record(turn, text) {
      taken.add(turn.end);
      if (sessionOfTurn.has(turn.end)) return false;
      sessionOfTurn.set(turn.end, turn.sessionId);
      const saying = sayingOf(turn, text);
      const first = bySaying.get(saying);
      const known = sessions.get(turn.sessionId);
      sessions.set(turn.sessionId, {
        project: turn.project || (known?.project ?? ''),
        firstAtMs: Math.min(known?.firstAtMs ?? turn.atMs, turn.atMs),
        lastAtMs: Math.max(known?.lastAtMs ?? turn.atMs, turn.atMs),
        turns: (known?.turns ?? 0) + (first === undefined ? 1 : 0),
      });
      if (first === undefined) {
        bySaying.set(saying, turn.end);
        return true;
      }
      canonicalOf.set(turn.end, first);
      formsOf.set(first, [...(formsOf.get(first) ?? [first]), turn.end]);
      return false;
    },
    canonical,
    forms: (end) => formsOf.get(canonical(end)) ?? [canonical(end)],
    sessionOf: (end) => sessionOfTurn.get(end),
    session: (sessionId) => sessions.get(sessionId),
    sessions: () => sessions,
  };
}

/** Same prompt at the same place of the same history, same words and calls in answer to it. */
function sayingOf(turn: JournalTurn, text: TurnText): string {
  const hash = createHash('sha256').update(`${turn.key}\n${text.user}\n`);
  for (const part of text.parts) {
    // Parallel results come back in another order; what was said and called does not change.
    if (part.kind !== 'tool_result')
      hash.update(`${part.kind}:${part.kind === 'tool_use' ? part.tool : part.text.trim()}\n`);
  }
  return hash.digest('base64');
}
