import { createHash } from 'node:crypto';
import { clip, compareText, isRecord, oneLine } from '../../common/text.ts';
import { isContinuation } from '../../common/turn.ts';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import { withoutCommands } from '../text/sentences.ts';
import { withoutMarkup } from '../text/typed-text.ts';
import { turnContentHash } from './imported-turn.ts';
import { createTaskLists, type TaskList } from './task-list.ts';

interface SessionInfo {
  readonly project: string;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly turns: number;
  /** The beginning of the first prompt; '' where it has no words. */
  readonly title: string;
}

type NewTurn = Omit<JournalTurn, 'seq' | 'redacted'>;

/** Finds the imported turn that a captured turn is another form of; its place in the conversation is unknown. */
function createImportMatcher(isRecorded: (turnId: string) => boolean) {
  const unmatched = new Map<string, string[]>();
  return (turn: NewTurn, text: TurnText): string | undefined => {
    if (turn.part !== undefined) return undefined;
    const hash = turnContentHash(turn.sessionId, text);
    const waiting = unmatched.get(hash) ?? [];
    if (turn.imported !== undefined) {
      unmatched.set(hash, [...waiting, turn.turnId]);
      return undefined;
    }
    const [first, ...rest] = waiting.filter(isRecorded);
    unmatched.set(hash, rest);
    if (rest.length === 0) unmatched.delete(hash);
    return first;
  };
}

/** Ids of the same turn, the first of them canonical. */
function createForms() {
  const canonicalIds = new Map<string, string>();
  const formsById = new Map<string, string[]>();
  const canonicalId = (turnId: string): string => canonicalIds.get(turnId) ?? turnId;
  const of = (turnId: string): readonly string[] => formsById.get(canonicalId(turnId)) ?? [canonicalId(turnId)];
  return {
    canonicalId,
    of,
    add(turnId: string, other: string): void {
      const first = canonicalId(other);
      canonicalIds.set(turnId, first);
      formsById.set(first, [...of(first), turnId]);
    },
  };
}

/** Parts of whole turns, and the whole turns that contain a part. */
function createPartMaps() {
  const partsOf = new Map<string, readonly string[]>();
  const wholesOf = new Map<string, { readonly turnId: string; readonly isCopied: boolean }[]>();
  const add = (whole: string, ids: readonly string[]): void =>
    void partsOf.set(whole, [...new Set([...(partsOf.get(whole) ?? []), ...ids])]);
  return {
    partsOf,
    wholesOf,
    record({ turnId, parts = [], unfinishedIds = [], tail, part: own }: NewTurn): void {
      if (own?.of !== undefined) {
        add(own.of, [turnId]);
        wholesOf.set(turnId, [{ turnId: own.of, isCopied: false }]);
      }
      const ids = [...parts.map((part) => part.turnId), ...unfinishedIds];
      if (ids.length === 0) return;
      for (const id of ids) {
        const isCopied = tail !== true || unfinishedIds.includes(id);
        wholesOf.set(id, [...(wholesOf.get(id) ?? []), { turnId, isCopied }]);
      }
      add(turnId, ids);
    },
  };
}

/** Turns that the user went back behind: of those that follow one turn of a session, all but the newest. */
function createBranches(canonicalId: (turnId: string) => string) {
  /** By session, the newest turn that follows each turn. */
  const newest = new Map<string, Map<string, string>>();
  /** Each with the turn that it follows. */
  const abandoned = new Map<string, string>();
  return {
    add({ turnId, sessionId }: NewTurn, before: string): void {
      const followers = newest.get(sessionId) ?? new Map<string, string>();
      newest.set(sessionId, followers);
      let parent: string | undefined = before;
      // What follows an abandoned turn is abandoned already.
      for (let id = followers.get(before); id !== undefined && !abandoned.has(id); id = followers.get(id)) {
        abandoned.set(id, parent);
        parent = id;
      }
      followers.set(before, turnId);
      // Another terminal may continue what this one left.
      for (let id: string | undefined = before; id !== undefined; id = parent) {
        parent = abandoned.get(id);
        if (parent !== undefined) followers.set(parent, id);
        abandoned.delete(id);
      }
    },
    /** The user went back behind all of these turns, and the session continued from there. */
    areAbandoned: (turnIds: readonly string[]): boolean =>
      turnIds.length > 0 && turnIds.every((turnId) => abandoned.has(canonicalId(turnId))),
  };
}

function createSessionCounts() {
  const sessions = new Map<string, SessionInfo>();
  /** A session counts whole turns only, each in its first form; what follows a summary is of the turn before. */
  const counted = new Set<string>();
  /** The turn whose prompt a session is named by. */
  const namingTurns = new Map<string, string>();
  function uncount(turnId: string, sessionId: string): void {
    const session = sessions.get(sessionId);
    if (session === undefined || !counted.delete(turnId)) return;
    if (session.turns > 1) sessions.set(sessionId, { ...session, turns: session.turns - 1 });
    else sessions.delete(sessionId);
  }
  return {
    sessions,
    add(turn: NewTurn, { user }: TurnText, isCounted: boolean): void {
      const session = sessions.get(turn.sessionId);
      if (!session?.title) namingTurns.set(turn.sessionId, turn.turnId);
      sessions.set(turn.sessionId, {
        project: turn.project || (session?.project ?? ''),
        firstAtMs: Math.min(session?.firstAtMs ?? turn.atMs, turn.atMs),
        lastAtMs: Math.max(session?.lastAtMs ?? turn.atMs, turn.atMs),
        turns: (session?.turns ?? 0) + (isCounted ? 1 : 0),
        title: session?.title || findTitle(user),
      });
      if (!isCounted) return;
      counted.add(turn.turnId);
      for (const id of turn.unfinishedIds ?? []) uncount(id, turn.sessionId);
    },
    drop(turnId: string, sessionId: string): void {
      const session = sessions.get(sessionId);
      const isNaming = namingTurns.get(sessionId) === turnId;
      if (session !== undefined && isNaming) sessions.set(sessionId, { ...session, title: '' });
      uncount(turnId, sessionId);
    },
  };
}

/** Known turns and their ids: the same turn may arrive again serialized differently. */
export type TurnRegistry = ReturnType<typeof createTurnRegistry>;

export function createTurnRegistry() {
  /** Session of each turn; null where the id is only reserved. */
  const sessionOf = new Map<string, string | null>();
  /** Ends of turns behind a summary: they do not say where in the session the next turn is. */
  const summarized = new Set<string>();
  /** Known turns that a summary stands in front of now. */
  const behindSummary = new Set<string>();
  /** First turn with each digest. */
  const firstTurns = new Map<string, string>();
  const getSession = (turnId: string): string | undefined => sessionOf.get(turnId) ?? undefined;
  const isRecorded = (turnId: string): boolean => getSession(turnId) !== undefined;
  const matchImported = createImportMatcher(isRecorded);
  const forms = createForms();
  const { sessions, ...counts } = createSessionCounts();
  const { partsOf, wholesOf, record: recordParts } = createPartMaps();
  const tasks = createTaskLists();
  const { areAbandoned, add: addBranch } = createBranches(forms.canonicalId);

  function enter(turn: NewTurn, text: TurnText, mayBeNew: boolean): 'new' | 'form' | null {
    if (isRecorded(turn.turnId)) return null;
    const isContinued = text.parts.some((each) => isContinuation(each.text));
    const isSummarized = isContinued || summarized.has(turn.before ?? '');
    const isSummary = isSummarized && text.user === '';
    if (isSummary) summarized.add(turn.turnId);
    const { before } = turn;
    // Its other form cannot be recognized, such as that of a turn during a pause.
    const places = [forms.canonicalId(before ?? ''), ...(!before || isRecorded(before) ? [] : ['a turn not kept'])];
    const { names, lookups } = getIdentities(turn, text, places, isSummarized);
    const known = lookups.map((name) => firstTurns.get(name)).find((turnId) => turnId !== undefined);
    const first = known ?? matchImported(turn, text);
    if (first === undefined && !mayBeNew) return null;
    sessionOf.set(turn.turnId, turn.sessionId);
    recordParts(turn);
    for (const name of names) firstTurns.set(name, first ?? turn.turnId);
    counts.add(turn, text, first === undefined && turn.part === undefined && !isSummary);
    if (first === undefined) tasks.record(turn, text);
    else forms.add(turn.turnId, first);
    if (isSummarized && first !== undefined) behindSummary.add(turn.turnId);
    // No turn follows a prompt that an import found in the queue.
    const isQueued = turn.imported !== undefined && text.parts.length === 0;
    // First turns follow none. Captured ones may begin with a summary in a form that is not known.
    const follows = before || (before === '' && turn.imported);
    // A turn that begins with a summary follows the same turn as those that the summary replaces, as does what follows
    // a known turn that it stands in front of.
    const isOutside = turn.part !== undefined || isContinued || behindSummary.has(before ?? '');
    if (first === undefined && follows && !isOutside && !isQueued) addBranch(turn, forms.canonicalId(follows));
    return first === undefined ? 'new' : 'form';
  }

  return {
    /** False when the id is known or reserved already. */
    reserve(turnId: string): boolean {
      if (sessionOf.has(turnId)) return false;
      sessionOf.set(turnId, null);
      return true;
    },
    /** Undoes `take`, so that the turn may be offered again. */
    release: (turnId: string): void => void (isRecorded(turnId) || sessionOf.delete(turnId)),
    isRecorded,
    isReserved: (turnId: string): boolean => sessionOf.has(turnId),
    /** `turnId` is a part of the recorded turn `of`, which is all that is kept of it. */
    addForm: forms.add,
    /** Adds a durable turn; false when it is known or another form of a known one. */
    record: (turn: NewTurn, text: TurnText): boolean => enter(turn, text, true) === 'new',
    /** Adds a turn that is another form of a known one, as `record` does; false where it is none, or known itself. */
    recognize: (turn: NewTurn, text: TurnText): boolean => enter(turn, text, false) === 'form',
    /** Forgets the turns; their ids stay reserved. */
    drop(turnIds: readonly string[]): void {
      tasks.drop([...turnIds, ...turnIds.flatMap((turnId) => wholesOf.get(turnId) ?? []).map((whole) => whole.turnId)]);
      for (const turnId of turnIds) {
        const sessionId = getSession(turnId);
        if (sessionId === undefined) continue;
        sessionOf.set(turnId, null);
        counts.drop(turnId, sessionId);
      }
    },
    /** The id that nodes use for this turn. */
    canonicalId: forms.canonicalId,
    areAbandoned,
    /** Every id of this turn, oldest first. */
    aliases: forms.of,
    getSession,
    getParts: (turnId: string): readonly string[] => partsOf.get(turnId) ?? [],
    /** Whole turns that contain this part; `isCopied`: their record repeats its messages. */
    getWholes: (part: string): readonly { readonly turnId: string; readonly isCopied: boolean }[] =>
      wholesOf.get(part) ?? [],
    session: (sessionId: string): SessionInfo | undefined => sessions.get(sessionId),
    sessions: (): ReadonlyMap<string, SessionInfo> => sessions,
    /** To-do lists by session. */
    tasks: tasks.lists,
  };
}

/** Of a prompt that is long or pasted, so much is read. */
const READ_CHARS = 2_000;
const TITLE_CHARS = 70;

/** Of the session's first prompt with words. */
function findTitle(prompt: string): string {
  const lines = withoutMarkup(withoutCommands(prompt.slice(0, READ_CHARS)))
    .split('\n')
    .map(oneLine);
  return clip(lines.find((line) => line !== '/clear' && /[\p{L}\p{N}]/u.test(line)) ?? '', TITLE_CHARS);
}

/**
 * Digests that identify a turn, and those of them to look it up by. A newer client may word the first messages in another
 * way, which changes every later key; a summary may replace everything before the turn.
 */
function getIdentities(turn: NewTurn, text: TurnText, places: readonly string[], isSummarized: boolean) {
  const { key, project, sessionId, before, part, imported } = turn;
  const words = hashWords(turn, text);
  // Of a slice V8 would keep the whole text.
  const digest = (place: string): string =>
    createHash('sha256').update(`${place}\n${words}`).digest().toString('latin1', 0, 16);
  const exact = digest(`${key}\n${project}`);
  if (before === undefined || part !== undefined || imported !== undefined) return { names: [exact], lookups: [exact] };
  const kept = text.user === '' ? [] : [digest(`in ${sessionId}`)];
  const placed = places.map((place) => digest(`after ${sessionId} ${place}`));
  return { names: [exact, ...placed, ...kept], lookups: [exact, ...(isSummarized ? kept : placed)] };
}

/** Equal for the same prompt, answered with the same words and calls. */
function hashWords(turn: NewTurn, text: TurnText): string {
  const place = turn.part === undefined ? '' : `part ${turn.part.index}\n`;
  const hash = createHash('sha256').update(`${place}${text.user}\n`);
  for (const part of text.parts) {
    // Parallel results may arrive in another order, so they are left out.
    if (part.kind === 'tool_use') hash.update(`tool_use:${part.tool}:${sortedInput(part.text)}\n`);
    else if (part.kind === 'assistant' && !isContinuation(part.text)) hash.update(`assistant:${part.text.trim()}\n`);
  }
  return hash.digest('base64');
}

/** An input as Claude Code sends it back may order its keys in another way than the answer did. */
export function sortedInput(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), (_, value: unknown) =>
      isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => compareText(a, b))) : value,
    );
  } catch {
    return json; // redaction may leave no JSON
  }
}

export function getTaskLists(turnRegistry: Pick<TurnRegistry, 'tasks' | 'session'>): TaskList[] {
  return [...turnRegistry.tasks()].flatMap(([sessionId, tasks]) => {
    const facts = turnRegistry.session(sessionId);
    return facts === undefined ? [] : [{ sessionId, tasks, ...facts }];
  });
}
