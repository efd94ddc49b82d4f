import { createHash } from 'node:crypto';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import { grown } from '../search/grow-array.ts';
import { createTextIds } from '../search/string-interner.ts';
import { saidDigest } from './imported-turn.ts';
import { createTaskBook, type Task, type TaskList } from './task-list.ts';

interface SessionFacts {
  readonly project: string;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly turns: number;
}

/** Which turns are known, and under which names: the same turn may come back serialised in another way. */
export interface TurnBook {
  /** Reserves a turn id; false when it is known or reserved. */
  take(turnId: string): boolean;
  /** Gives a reserved turn id back, so that it may be offered again. */
  release(turnId: string): void;
  isRecorded(turnId: string): boolean;
  /** These turns are gone for good; their names stay taken. */
  drop(turnIds: readonly string[]): void;
  /** Enters a durable turn. Returns true when it is new, false when it is another form of a known one. */
  record(turn: JournalTurn, text: TurnText): boolean;
  /** The name that nodes use for this turn. */
  canonical(turnId: string): string;
  /** Every name of this turn, oldest first. */
  forms(turnId: string): readonly string[];
  sessionOf(turnId: string): string | undefined;
  /** Ids of the parts that a turn begins with. */
  partsOf(turnId: string): readonly string[];
  /** Records of whole turns that hold this part; `isCopied` where they hold its messages too. */
  wholesOf(part: string): readonly { readonly turnId: string; readonly isCopied: boolean }[];
  session(sessionId: string): SessionFacts | undefined;
  sessions(): ReadonlyMap<string, SessionFacts>;
  /** Sessions whose agent kept a list of tasks, with the tasks as they were left. */
  tasks(): ReadonlyMap<string, readonly Task[]>;
}

/** What is known of a turn: it is reserved, it is durable, its session counts it (whole turns, each in its first form). */
const [TAKEN, RECORDED, COUNTED] = [1, 2, 4];

export function createTurnBook(): TurnBook {
  /** Ids of turns and of sessions, by whose numbers the columns go. */
  const names = createTextIds();
  let marks = new Uint32Array(1_024);
  let sessionOfTurn = new Uint32Array(1_024);
  const sayings = createTextIds();
  /** By saying, the turn that said it first. */
  let firstToSay = new Uint32Array(1_024);
  const canonicalOf = new Map<string, string>();
  const formsOf = new Map<string, string[]>();
  /** Imported turns that have not been captured yet, by what they say: their place in the conversation is not known. */
  const unplaced = new Map<string, string[]>();
  const sessions = new Map<string, SessionFacts>();
  const partsOf = new Map<string, readonly string[]>();
  const wholesOf = new Map<string, { readonly turnId: string; readonly isCopied: boolean }[]>();
  const tasks = createTaskBook();

  function isMarked(turnId: string, mark: number): boolean {
    const turn = names.find(turnId);
    return turn !== undefined && ((marks[turn] ?? 0) & mark) !== 0;
  }

  function mark(turnId: string, mark: number): number {
    const turn = names.of(turnId);
    marks = grown(marks, turn);
    marks[turn] = (marks[turn] as number) | mark;
    return turn;
  }

  /** False where it was not set. */
  function unmark(turnId: string, mark: number): boolean {
    if (!isMarked(turnId, mark)) return false;
    const turn = names.of(turnId);
    marks[turn] = (marks[turn] as number) & ~mark;
    return true;
  }

  const isRecorded = (turnId: string): boolean => isMarked(turnId, RECORDED);

  function sessionOf(turnId: string): string | undefined {
    return isRecorded(turnId) ? names.text(sessionOfTurn[names.of(turnId)] as number) : undefined;
  }

  function saidFirst(saying: string): string | undefined {
    const number = sayings.find(saying);
    return number === undefined ? undefined : names.text(firstToSay[number] as number);
  }

  function say(saying: string, turnId: string): void {
    const number = sayings.of(saying);
    firstToSay = grown(firstToSay, number);
    firstToSay[number] = names.of(turnId);
  }

  function recordParts({ turnId, parts = [], tail }: JournalTurn): void {
    if (parts.length === 0) return;
    partsOf.set(
      turnId,
      parts.map((part) => part.turnId),
    );
    for (const part of parts) {
      wholesOf.set(part.turnId, [...(wholesOf.get(part.turnId) ?? []), { turnId, isCopied: tail !== true }]);
    }
  }

  /** The imported turn that this is another form of. */
  function placed(turn: JournalTurn, text: TurnText, saying: string): string | undefined {
    if (turn.part !== undefined) return undefined;
    const said = saidDigest(turn.sessionId, text);
    const waiting = unplaced.get(said) ?? [];
    if (turn.imported !== undefined) {
      unplaced.set(said, [...waiting, turn.turnId]);
      return undefined;
    }
    const [first, ...rest] = waiting.filter(isRecorded);
    unplaced.set(said, rest);
    if (rest.length === 0) unplaced.delete(said);
    if (first !== undefined) say(saying, first);
    return first;
  }

  const canonical = (turnId: string): string => canonicalOf.get(turnId) ?? turnId;
  return {
    take(turnId) {
      if (isMarked(turnId, TAKEN)) return false;
      mark(turnId, TAKEN);
      return true;
    },
    release: (turnId) => void (isRecorded(turnId) || unmark(turnId, TAKEN)),
    isRecorded,
    record(turn, text) {
      if (isRecorded(turn.turnId)) return false;
      const number = mark(turn.turnId, TAKEN | RECORDED);
      sessionOfTurn = grown(sessionOfTurn, number);
      sessionOfTurn[number] = names.of(turn.sessionId);
      recordParts(turn);
      const saying = sayingOf(turn, text);
      const first = saidFirst(saying) ?? placed(turn, text, saying);
      const known = sessions.get(turn.sessionId);
      const isCounted = first === undefined && turn.part === undefined;
      sessions.set(turn.sessionId, {
        project: turn.project || (known?.project ?? ''),
        firstAtMs: Math.min(known?.firstAtMs ?? turn.atMs, turn.atMs),
        lastAtMs: Math.max(known?.lastAtMs ?? turn.atMs, turn.atMs),
        turns: (known?.turns ?? 0) + (isCounted ? 1 : 0),
      });
      if (isCounted) mark(turn.turnId, COUNTED);
      if (first === undefined) {
        say(saying, turn.turnId);
        tasks.take(turn, text);
        return true;
      }
      canonicalOf.set(turn.turnId, first);
      formsOf.set(first, [...(formsOf.get(first) ?? [first]), turn.turnId]);
      return false;
    },
    drop(turnIds) {
      tasks.drop([...turnIds, ...turnIds.flatMap((turnId) => wholesOf.get(turnId) ?? []).map((whole) => whole.turnId)]);
      for (const turnId of turnIds) {
        const sessionId = sessionOf(turnId);
        const known = sessions.get(sessionId ?? '');
        unmark(turnId, RECORDED);
        if (sessionId === undefined || known === undefined || !unmark(turnId, COUNTED)) continue;
        if (known.turns > 1) sessions.set(sessionId, { ...known, turns: known.turns - 1 });
        else sessions.delete(sessionId);
      }
    },
    canonical,
    forms: (turnId) => formsOf.get(canonical(turnId)) ?? [canonical(turnId)],
    sessionOf,
    partsOf: (turnId) => partsOf.get(turnId) ?? [],
    wholesOf: (part) => wholesOf.get(part) ?? [],
    session: (sessionId) => sessions.get(sessionId),
    sessions: () => sessions,
    tasks: tasks.lists,
  };
}

/** Same prompt at the same place of the same history in the same project, same words and calls in answer to it. */
function sayingOf(turn: JournalTurn, text: TurnText): string {
  const place = turn.part === undefined ? '' : `part ${turn.part.index}\n`;
  const hash = createHash('sha256').update(`${turn.key}\n${turn.project}\n${place}${text.user}\n`);
  for (const part of text.parts) {
    // Parallel results come back in another order; what was said and called does not change.
    if (part.kind !== 'tool_result')
      hash.update(`${part.kind}:${part.kind === 'tool_use' ? part.tool : part.text.trim()}\n`);
  }
  return hash.digest('base64');
}

/** What the agents of all sessions left on their lists. */
export function taskListsOf(book: Pick<TurnBook, 'tasks' | 'session'>): TaskList[] {
  return [...book.tasks()].flatMap(([sessionId, tasks]) => {
    const facts = book.session(sessionId);
    return facts === undefined ? [] : [{ sessionId, tasks, ...facts }];
  });
}
