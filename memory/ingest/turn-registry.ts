import { createHash } from 'node:crypto';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import { grown } from './grow-array.ts';
import { turnContentHash } from './imported-turn.ts';
import { createTextIds } from './string-interner.ts';
import { createTaskLists, type Task, type TaskList } from './task-list.ts';

interface SessionInfo {
  readonly project: string;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly turns: number;
}

/** Known turns and their ids: the same turn may arrive again serialized differently. */
export interface TurnRegistry {
  /** False when the id is known or reserved already. */
  reserve(turnId: string): boolean;
  /** Undoes `take`, so that the turn may be offered again. */
  release(turnId: string): void;
  isRecorded(turnId: string): boolean;
  /** Forgets the turns; their ids stay reserved. */
  drop(turnIds: readonly string[]): void;
  /** Adds a durable turn; false when it is known or another form of a known one. */
  record(turn: JournalTurn, text: TurnText): boolean;
  /** The id that nodes use for this turn. */
  canonicalId(turnId: string): string;
  /** Every id of this turn, oldest first. */
  aliases(turnId: string): readonly string[];
  sessionOf(turnId: string): string | undefined;
  partsOf(turnId: string): readonly string[];
  /** Whole turns that contain this part; `isCopied`: their record repeats its messages. */
  wholesOf(part: string): readonly { readonly turnId: string; readonly isCopied: boolean }[];
  session(sessionId: string): SessionInfo | undefined;
  sessions(): ReadonlyMap<string, SessionInfo>;
  /** To-do lists by session. */
  tasks(): ReadonlyMap<string, readonly Task[]>;
}

/** Bit flags. A session counts whole turns only, each in its first form. */
const [TAKEN, RECORDED, COUNTED] = [1, 2, 4];

export function createTurnRegistry(): TurnRegistry {
  /** Interned turn and session ids; their numbers index the columns. */
  const names = createTextIds();
  let marks = new Uint32Array(1_024);
  let sessionOfTurn = new Uint32Array(1_024);
  const hashes = createTextIds();
  /** First turn with each hash. */
  let firstTurnOf = new Uint32Array(1_024);
  const canonicalOf = new Map<string, string>();
  const formsOf = new Map<string, string[]>();
  /** Imported turns not captured yet, by content hash: their place in the conversation is unknown. */
  const unplaced = new Map<string, string[]>();
  const sessions = new Map<string, SessionInfo>();
  const partsOf = new Map<string, readonly string[]>();
  const wholesOf = new Map<string, { readonly turnId: string; readonly isCopied: boolean }[]>();
  const tasks = createTaskLists();

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

  /** False when the flag was not set. */
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

  function findFirst(hash: string): string | undefined {
    const number = hashes.find(hash);
    return number === undefined ? undefined : names.text(firstTurnOf[number] as number);
  }

  function setFirst(hash: string, turnId: string): void {
    const number = hashes.of(hash);
    firstTurnOf = grown(firstTurnOf, number);
    firstTurnOf[number] = names.of(turnId);
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

  /** The imported turn that this captured turn is another form of. */
  function matchImported(turn: JournalTurn, text: TurnText, hash: string): string | undefined {
    if (turn.part !== undefined) return undefined;
    const contentHash = turnContentHash(turn.sessionId, text);
    const waiting = unplaced.get(contentHash) ?? [];
    if (turn.imported !== undefined) {
      unplaced.set(contentHash, [...waiting, turn.turnId]);
      return undefined;
    }
    const [first, ...rest] = waiting.filter(isRecorded);
    unplaced.set(contentHash, rest);
    if (rest.length === 0) unplaced.delete(contentHash);
    if (first !== undefined) setFirst(hash, first);
    return first;
  }

  const canonicalId = (turnId: string): string => canonicalOf.get(turnId) ?? turnId;
  return {
    reserve(turnId) {
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
      const hash = turnIdentityHash(turn, text);
      const first = findFirst(hash) ?? matchImported(turn, text, hash);
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
        setFirst(hash, turn.turnId);
        tasks.record(turn, text);
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
    canonicalId,
    aliases: (turnId) => formsOf.get(canonicalId(turnId)) ?? [canonicalId(turnId)],
    sessionOf,
    partsOf: (turnId) => partsOf.get(turnId) ?? [],
    wholesOf: (part) => wholesOf.get(part) ?? [],
    session: (sessionId) => sessions.get(sessionId),
    sessions: () => sessions,
    tasks: tasks.lists,
  };
}

/** Equal for the same prompt after the same history in the same project, answered with the same words and calls. */
function turnIdentityHash(turn: JournalTurn, text: TurnText): string {
  const place = turn.part === undefined ? '' : `part ${turn.part.index}\n`;
  const hash = createHash('sha256').update(`${turn.key}\n${turn.project}\n${place}${text.user}\n`);
  for (const part of text.parts) {
    // Parallel results may arrive in another order, so they are left out.
    if (part.kind !== 'tool_result')
      hash.update(`${part.kind}:${part.kind === 'tool_use' ? part.tool : part.text.trim()}\n`);
  }
  return hash.digest('base64');
}

export function taskListsOf(turnRegistry: Pick<TurnRegistry, 'tasks' | 'session'>): TaskList[] {
  return [...turnRegistry.tasks()].flatMap(([sessionId, tasks]) => {
    const facts = turnRegistry.session(sessionId);
    return facts === undefined ? [] : [{ sessionId, tasks, ...facts }];
  });
}
