import { createSerialQueue } from '../../common/async.ts';
import type { TurnText } from '../model/turn.ts';

/** A turn that no node covers yet. */
export interface BufferedTurn extends TurnText {
  readonly project: string;
}

export type Session = ReturnType<typeof newSession>;

function newSession(id: string, onError: (error: unknown) => void) {
  return {
    id,
    serial: createSerialQueue(onError),
    /** Of the last turn. */
    project: '',
    buffer: [] as BufferedTurn[],
    /** The last compacted turns, one of which a short reply may answer. */
    before: [] as readonly TurnText[],
    hydration: null as Promise<void> | null,
    sensing: false,
    idle: null as NodeJS.Timeout | null,
    /** Tasks running or queued. */
    busy: 0,
  };
}

export interface SessionCacheOptions {
  /** Whether a session with buffered turns may be evicted: nothing compacts them without a request. */
  readonly mayEvictBuffered: boolean;
  readonly onError: (sessionId: string, error: unknown) => void;
  readonly onEvict: (sessionId: string) => void;
  readonly limit?: number;
}

const MOST_SESSIONS = 200;

/** Keeps recently used sessions in memory; the rest can be read back from the journal. */
export type SessionCache = ReturnType<typeof createSessionCache>;

export function createSessionCache({ mayEvictBuffered, onError, onEvict, limit = MOST_SESSIONS }: SessionCacheOptions) {
  /** Least recently used first. */
  const sessions = new Map<string, Session>();
  /** Session id to the projects of its buffered turns. */
  const waiting = new Map<string, ReadonlySet<string>>();

  function rests({ busy, sensing, buffer }: Session): boolean {
    return busy === 0 && !sensing && (mayEvictBuffered || buffer.length === 0);
  }

  function makeRoom(first: readonly Session[]): void {
    for (const session of [...first, ...sessions.values()]) {
      if (sessions.size <= limit) return;
      if (sessions.get(session.id) !== session || !rests(session)) continue;
      const { id, buffer, hydration, idle } = session;
      sessions.delete(id);
      if (idle !== null) clearTimeout(idle);
      if (buffer.length > 0) waiting.set(id, new Set(buffer.map(({ project }) => project)));
      else if (hydration !== null) waiting.delete(id);
      onEvict(id);
    }
  }

  return {
    has: (id: string): boolean => sessions.has(id),
    /** Returns the cached session or an empty one that the caller has to hydrate. */
    restore(id: string): Session {
      const session = sessions.get(id) ?? newSession(id, (error) => onError(id, error));
      sessions.delete(id);
      sessions.set(id, session);
      return session;
    },
    all: (): readonly Session[] => [...sessions.values()],
    /** Evicted sessions with turns that no node covers yet, of this project where one is given. */
    evictedWithTurns: (project?: string): readonly string[] =>
      [...waiting].flatMap(([id, projects]) =>
        sessions.has(id) || (project !== undefined && !projects.has(project)) ? [] : [id],
      ),
    /** @param passes  evict this session first, as it is only read once */
    async run(session: Session, work: () => Promise<void>, passes: boolean = false): Promise<void> {
      session.busy += 1;
      await session.serial(work);
      session.busy -= 1;
      makeRoom(passes ? [session] : []);
    },
  };
}
