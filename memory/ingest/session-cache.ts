import { createSerialQueue, type SerialQueue } from '../../common/async.ts';
import type { TurnText } from '../model/turn.ts';

/** What is in memory of a session that somebody works in. */
export interface Session {
  readonly id: string;
  readonly serial: SerialQueue;
  project: string;
  buffer: TurnText[];
  hydration: Promise<void> | null;
  sensing: boolean;
  idle: NodeJS.Timeout | null;
  /** Pieces of work that were begun or wait. */
  busy: number;
}

/** Sessions that are worked in; of those that rested longest nothing is held that the disk has. */
export interface AwakeSessions {
  has(id: string): boolean;
  /** Makes it awake: whoever asks for it reads first what the journal holds. */
  of(id: string): Session;
  all(): readonly Session[];
  /** Put away with turns that no node stands for yet. */
  waiting(project?: string): readonly string[];
  /** @param passes  nobody works in it: it goes before those that were there */
  run(session: Session, work: () => Promise<void>, passes?: boolean): Promise<void>;
}

export interface AwakeParts {
  /** Whether turns in its buffer wait for nothing but that somebody asks for them. */
  readonly buffersRest: boolean;
  readonly onError: (sessionId: string, error: unknown) => void;
  readonly onPutAway: (sessionId: string) => void;
  readonly most?: number;
}

/** More than are in use at one time. */
const MOST_SESSIONS = 200;

export function createAwakeSessions({
  buffersRest,
  onError,
  onPutAway,
  most = MOST_SESSIONS,
}: AwakeParts): AwakeSessions {
  /** The one used last at the end. */
  const sessions = new Map<string, Session>();
  /** By session, its project. */
  const waiting = new Map<string, string>();

  function rests({ busy, sensing, buffer }: Session): boolean {
    return busy === 0 && !sensing && (buffersRest || buffer.length === 0);
  }

  function makeRoom(first: readonly Session[]): void {
    for (const session of [...first, ...sessions.values()]) {
      if (sessions.size <= most) return;
      if (sessions.get(session.id) !== session || !rests(session)) continue;
      const { id, buffer, hydration, idle, project } = session;
      sessions.delete(id);
      if (idle !== null) clearTimeout(idle);
      if (buffer.length > 0) waiting.set(id, project);
      else if (hydration !== null) waiting.delete(id);
      onPutAway(id);
    }
  }

  return {
    has: (id) => sessions.has(id),
    of(id) {
      const session = sessions.get(id) ?? {
        id,
        serial: createSerialQueue((error) => onError(id, error)),
        project: waiting.get(id) ?? '',
        buffer: [],
        hydration: null,
        sensing: false,
        idle: null,
        busy: 0,
      };
      sessions.delete(id);
      sessions.set(id, session);
      return session;
    },
    all: () => [...sessions.values()],
    waiting: (project) =>
      [...waiting].flatMap(([id, own]) => (sessions.has(id) || (project ?? own) !== own ? [] : [id])),
    async run(session, work, passes = false) {
      session.busy += 1;
      await session.serial(work);
      session.busy -= 1;
      makeRoom(passes ? [session] : []);
    },
  };
}
