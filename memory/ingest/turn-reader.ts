import type { Origin } from '../../common/turn.ts';
import { type JournalTurn, spokenText, type TurnText, withoutToolOutput } from '../model/turn.ts';
import type { Journal } from '../storage/turn-log.ts';
import { type JoinedRecords, type JoinedTurn, joinParts } from './join-parts.ts';
import type { TurnRegistry } from './turn-registry.ts';
import { readTurn, readTurnPart } from './turn-trust.ts';

/** Older turns are found through the search index; the cache serves recent ones. */
const CACHED_CHARS = 2_000_000;

interface TurnWords {
  /** Marked, see `partsOf`. */
  readonly text: string;
  readonly origin: Origin;
}

/** Reads raw turns: each once, in its latest form, under its canonical id. */
export interface TurnReader {
  turns(sessionId: string): Promise<readonly JoinedTurn[]>;
  /** Transcripts of subagents, which are no messages of the turns that started them. */
  agents(sessionId: string): Promise<readonly JoinedTurn[]>;
  /** Whole turns, then parts. */
  ofSession(sessionId: string): Promise<readonly TurnText[]>;
  words(turnId: string): Promise<TurnWords | null>;
  keep(turn: TurnText): void;
  drop(turnIds: readonly string[]): void;
}

export function createTurnReader(journal: Journal, turnRegistry: TurnRegistry): TurnReader {
  const cache = new Map<string, TurnWords>();
  let chars = 0;

  function drop(turnIds: readonly string[]): void {
    for (const turnId of turnIds) {
      chars -= charsOf(cache.get(turnId));
      cache.delete(turnId);
    }
  }

  function keep(turn: TurnText): void {
    drop([turn.turnId]);
    const said = { text: spokenText(turn), origin: withoutToolOutput(turn).origin };
    cache.set(turn.turnId, said);
    chars += charsOf(said);
    for (const oldest of cache.keys()) {
      if (chars <= CACHED_CHARS) break;
      drop([oldest]);
    }
  }

  const nameOf = (turnId: string): string => turnRegistry.aliases(turnId)[0] ?? turnId;

  async function joined(sessionId: string): Promise<JoinedRecords> {
    const latest = new Map<string, JournalTurn>();
    for (const turn of await journal.read(sessionId)) {
      const name = nameOf(turn.turnId);
      // Another form of the turn may arrive after its files changed: keep the first hashes.
      const files = latest.get(name)?.files ?? turn.files;
      latest.set(name, { ...turn, turnId: name, ...(files === undefined ? {} : { files }) });
    }
    return joinParts([...latest.values()], nameOf);
  }

  async function ofSession(sessionId: string): Promise<readonly TurnText[]> {
    const { turns, parts } = await joined(sessionId);
    const whole = turns.filter((turn) => turn.part === undefined);
    const rounds = [...parts, ...turns.filter((turn) => turn.part !== undefined)];
    return [...whole.map(readTurn), ...readParts(rounds)];
  }

  return {
    turns: async (sessionId) => (await joined(sessionId)).turns,
    agents: async (sessionId) => (await joined(sessionId)).parts.filter(({ part }) => part?.of !== undefined),
    ofSession,
    keep,
    drop,
    async words(turnId) {
      const name = turnRegistry.aliases(turnId)[0] ?? turnId;
      const sessionId = turnRegistry.sessionOf(name);
      if (!cache.has(name) && sessionId !== undefined) {
        for (const turn of await ofSession(sessionId)) keep(turn);
      }
      return cache.get(name) ?? null;
    },
  };
}

function charsOf(said: TurnWords | undefined): number {
  return said?.text.length ?? 0;
}

/** Taint carries over from part to part; a part whose predecessor is missing counts as tainted. */
function readParts(parts: readonly JournalTurn[]): TurnText[] {
  const tainted = new Map<string | null, boolean>([[null, false]]);
  return parts.map((part) => {
    const read = readTurnPart(part, tainted.get(part.part?.after ?? null) ?? true);
    tainted.set(part.turnId, read.tainted);
    return read.text;
  });
}
