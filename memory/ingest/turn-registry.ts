import { createHash } from 'node:crypto';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import { grown } from '../search/grow-array.ts';
import { createTextIds } from '../search/string-interner.ts';
import { saidDigest } from './imported-turn.ts';
import type { Task, TaskList } from './task-list.ts';
import { createTaskBook } from './task-lists.ts';

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
  /** These turns are gone for good; their names stay taken. */
  drop(ends: readonly string[]): void;
  /** Enters a durable turn. Returns true when it is new, false when it is another form of a known one. */
  record(turn: JournalTurn, text: TurnText): boolean;
  /** The name that nodes use for this turn. */
  canonical(end: string): string;
  /** Every name of this turn, oldest first. */
  forms(end: string): readonly string[];
  sessionOf(end: string): string | undefined;
  /** Ends of the parts that a turn begins with. */
  partsOf(end: string): readonly string[];
  /** Records of whole turns that hold this part; `isCopied` where they hold its messages too. */
  wholesOf(part: string): readonly { readonly end: string; readonly isCopied: boolean }[];
  session(sessionId: string): SessionFacts | undefined;
  sessions(): ReadonlyMap<string, SessionFacts>;
  /** Sessions whose agent kept a list of tasks, with the tasks as they were left. */
  tasks(): ReadonlyMap<string, readonly Task[]>;
}

/** What is known of a turn: it is reserved, it is durable, its session counts it (whole turns, each in its first form). */
const [TAKEN, RECORDED, COUNTED] = [1, 2, 4];

export function createTurnBook(): TurnBook {
  /** Ends of turns and ids of sessions, by whose numbers the columns go. */
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
  const wholesOf = new Map<string, { readonly end: string; readonly isCopied: boolean }[]>();
  const tasks = createTaskBook();

  function isMarked(end: string, mark: number): boolean {
    const turn = names.find(end);
    return turn !== undefined && ((marks[turn] ?? 0) & mark) !== 0;
  }

  function mark(end: string, mark: number): number {
    const turn = names.of(end);
    marks = grown(marks, turn);
    marks[turn] = (marks[turn] as number) | mark;
    return turn;
  }

  /** False where it was not set. */
  function unmark(end: string, mark: number): boolean {
    if (!isMarked(end, mark)) return false;
    const turn = names.of(end);
    marks[turn] = (marks[turn] as number) & ~mark;
    return true;
  }

  const isRecorded = (end: string): boolean => isMarked(end, RECORDED);

  function sessionOf(end: string): string | undefined {
    return isRecorded(end) ? names.text(sessionOfTurn[names.of(end)] as number) : undefined;
  }

  function saidFirst(saying: string): string | undefined {
    const number = sayings.find(saying);
    return number === undefined ? undefined : names.text(firstToSay[number] as number);
  }

  function say(saying: string, end: string): void {
    const number = sayings.of(saying);
    firstToSay = grown(firstToSay, number);
    firstToSay[number] = names.of(end);
  }

  function recordParts({ end, parts = [], tail }: JournalTurn): void {
    if (parts.length === 0) return;
    partsOf.set(
      end,
      parts.map((part) => part.end),
    );
    for (const part of parts) {
      wholesOf.set(part.end, [...(wholesOf.get(part.end) ?? []), { end, isCopied: tail !== true }]);
    }
  }

  /** The imported turn that this is another form of. */
  function placed(turn: JournalTurn, text: TurnText, saying: string): string | undefined {
    if (turn.part !== undefined) return undefined;
    const said = saidDigest(turn.sessionId, text);
    const waiting = unplaced.get(said) ?? [];
    if (turn.imported !== undefined) {
      unplaced.set(said, [...waiting, turn.end]);
      return undefined;
    }
    const [first, ...rest] = waiting.filter(isRecorded);
    unplaced.set(said, rest);
    if (rest.length === 0) unplaced.delete(said);
    if (first !== undefined) say(saying, first);
    return first;
  }

  const canonical = (end: string): string => canonicalOf.get(end) ?? end;
  return {
    take(end) {
      if (isMarked(end, TAKEN)) return false;
      mark(end, TAKEN);
      return true;
    },
    release: (end) => void (isRecorded(end) || unmark(end, TAKEN)),
    isRecorded,
    record(turn, text) {
      if (isRecorded(turn.end)) return false;
      const number = mark(turn.end, TAKEN | RECORDED);
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
      if (isCounted) mark(turn.end, COUNTED);
      if (first === undefined) {
        say(saying, turn.end);
        tasks.take(turn, text);
        return true;
      }
      canonicalOf.set(turn.end, first);
      formsOf.set(first, [...(formsOf.get(first) ?? [first]), turn.end]);
      return false;
    },
    drop(ends) {
      tasks.drop([...ends, ...ends.flatMap((end) => wholesOf.get(end) ?? []).map((whole) => whole.end)]);
      for (const end of ends) {
        const sessionId = sessionOf(end);
        const known = sessions.get(sessionId ?? '');
        unmark(end, RECORDED);
        if (sessionId === undefined || known === undefined || !unmark(end, COUNTED)) continue;
        if (known.turns > 1) sessions.set(sessionId, { ...known, turns: known.turns - 1 });
        else sessions.delete(sessionId);
      }
    },
    canonical,
    forms: (end) => formsOf.get(canonical(end)) ?? [canonical(end)],
    sessionOf,
    partsOf: (end) => partsOf.get(end) ?? [],
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
