import type { Origin } from '../../common/turn.ts';
import { saidText } from '../compaction/build-nodes.ts';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import type { Journal } from '../storage/turn-log.ts';
import { type JoinedRecords, type JoinedTurn, joinParts } from './join-parts.ts';
import type { TurnBook } from './turn-registry.ts';
import { readTainted, readTurn, withoutTools } from './turn-trust.ts';

/** Older turns are found through the search index; the cache serves recent ones. */
const CACHED_CHARS = 2_000_000;

interface Said {
  readonly text: string;
  readonly origin: Origin;
  readonly user: string;
}

/** Reads raw turns: each once, in its latest form, under its canonical id. */
export interface Texts {
  turns(sessionId: string): Promise<readonly JoinedTurn[]>;
  /** Whole turns, then parts. */
  ofSession(sessionId: string): Promise<readonly TurnText[]>;
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

/** Taint carries over from part to part; a part whose predecessor is missing counts as tainted. */
function readParts(parts: readonly JournalTurn[]): TurnText[] {
  const tainted = new Map<string | null, boolean>([[null, false]]);
  return parts.map((part) => {
    const read = readTainted(part, tainted.get(part.part?.after ?? null) ?? true);
    tainted.set(part.turnId, read.tainted);
    return read.text;
  });
}
