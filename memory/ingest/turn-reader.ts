import type { Origin } from '../../common/turn.ts';
import { saidText } from '../compaction/build-nodes.ts';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import type { Journal } from '../storage/turn-log.ts';
import { type JoinedRecords, type JoinedTurn, joinParts } from './join-parts.ts';
import type { TurnBook } from './turn-registry.ts';
import { readTainted, readTurn, withoutTools } from './turn-trust.ts';

/** Recall finds what was said in the index; this is for whoever comes back to a turn of just now. */
const CACHED_CHARS = 2_000_000;

interface Said {
  readonly text: string;
  readonly origin: Origin;
  /** The user's own words. */
  readonly user: string;
}

/** Raw turns as nodes know them: each turn once, in its latest form, under its first name. */
export interface Texts {
  turns(sessionId: string): Promise<readonly JoinedTurn[]>;
  /** The same as text, and each part of them beside. */
  ofSession(sessionId: string): Promise<readonly TurnText[]>;
  /** What was said in a turn; from memory where it was used lately. */
  said(turnId: string): Promise<Said | null>;
  keep(turn: TurnText): void;
  drop(turnIds: readonly string[]): void;
}

export function createTexts(journal: Journal, book: TurnBook): Texts {
  const cache = new Map<string, Said>();
  let chars = 0;

  function drop(turnIds: readonly string[]): void {
    for (const turnId of turnIds) {
      chars -= charsOf(cache.get(turnId));
      cache.delete(turnId);
    }
  }

  function keep(turn: TurnText): void {
    drop([turn.turnId]);
    const said = {
      text: saidText(turn),
      origin: withoutTools(turn).origin,
      user: turn.userOrigin === undefined ? turn.user : '',
    };
    cache.set(turn.turnId, said);
    chars += charsOf(said);
    for (const oldest of cache.keys()) {
      if (chars <= CACHED_CHARS) break;
      drop([oldest]);
    }
  }

  const nameOf = (turnId: string): string => book.forms(turnId)[0] ?? turnId;

  async function joined(sessionId: string): Promise<JoinedRecords> {
    const latest = new Map<string, JournalTurn>();
    for (const turn of await journal.read(sessionId)) {
      const name = nameOf(turn.turnId);
      // When the turn comes back in another form, its files may have changed already.
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
    ofSession,
    keep,
    drop,
    async said(turnId) {
      const name = book.forms(turnId)[0] ?? turnId;
      const sessionId = book.sessionOf(name);
      if (!cache.has(name) && sessionId !== undefined) {
        for (const turn of await ofSession(sessionId)) keep(turn);
      }
      return cache.get(name) ?? null;
    },
  };
}

function charsOf(said: Said | undefined): number {
  return said === undefined ? 0 : said.text.length + said.user.length;
}

/** Taint goes on from part to part; where the one before is not there, it may have been tainted. */
function readParts(parts: readonly JournalTurn[]): TurnText[] {
  const tainted = new Map<string | null, boolean>([[null, false]]);
  return parts.map((part) => {
    const read = readTainted(part, tainted.get(part.part?.after ?? null) ?? true);
    tainted.set(part.turnId, read.tainted);
    return read.text;
  });
}
