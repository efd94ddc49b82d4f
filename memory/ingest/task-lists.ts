import type { JournalTurn, TurnText } from '../model/turn.ts';
import { type Task, type TaskChange, taskChanges, tasksAfter } from './task-list.ts';

/** What the agents of sessions said is to be done. */
interface TaskBook {
  take(turn: Pick<JournalTurn, 'turnId' | 'sessionId' | 'atMs'>, text: TurnText): void;
  /** What was done to a list in these turns is unknown again. */
  drop(turnIds: readonly string[]): void;
  lists(): ReadonlyMap<string, readonly Task[]>;
}

interface Change {
  readonly turnId: string;
  readonly atMs: number;
  readonly changes: readonly TaskChange[];
}

/** Turns of one session that changed its list; of longer sessions the first are left out. */
const TURNS = 200;

export function createTaskBook(): TaskBook {
  const sessions = new Map<string, readonly Change[]>();
  /** A prompt waits for `lists`; most sessions are as they were. */
  const settled = new WeakMap<readonly Change[], readonly Task[]>();

  function tasksOf(turns: readonly Change[]): readonly Task[] {
    const tasks = settled.get(turns) ?? tasksAfter(turns.flatMap(({ changes }) => changes));
    settled.set(turns, tasks);
    return tasks;
  }

  return {
    take({ turnId, sessionId, atMs }, text) {
      const changes = taskChanges(text);
      if (changes.length === 0) return;
      // At a start, parts of turns come before whole turns that are older.
      const known = [...(sessions.get(sessionId) ?? []), { turnId, atMs, changes }];
      sessions.set(sessionId, known.toSorted((one, other) => one.atMs - other.atMs).slice(-TURNS));
    },
    drop(turnIds) {
      const gone = new Set(turnIds);
      for (const [id, turns] of sessions) {
        const left = turns.filter((turn) => !gone.has(turn.turnId));
        if (left.length === 0) sessions.delete(id);
        else if (left.length < turns.length) sessions.set(id, left);
      }
    },
    lists: () => new Map([...sessions].map(([id, turns]) => [id, tasksOf(turns)] as const)),
  };
}
