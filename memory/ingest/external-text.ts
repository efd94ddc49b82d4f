import { setImmediate as nextTick } from 'node:timers/promises';
import { type CapturedMessage, type CapturedTurn, isCleanOrigin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { isContinuation, mayContinue } from '../text/compaction-summary.ts';
import { blocksOf, contentText, withoutInjected } from './content-blocks.ts';
import { readTurn } from './turn-trust.ts';

/** Words in a row by which a text is recognised when it is repeated. */
const ROW = 5;
/** Rows that are remembered of a session: some 200 KB of text. */
const MOST_ROWS = 40_000;
/** And of all sessions: some 2 MB of text. */
const MOST_ROWS_IN_ALL = 400_000;
/** Of one text that was said before. */
const SAID_CHARS = 20_000;
const NOTHING: ReadonlySet<Row> = new Set();
const WORD = /[\p{L}\p{N}_]+/gu;
/** Places in the net or on a disk are recognised alone. */
const PLACE = /[\w.+-]+@[\w-]+\.[\w.-]+|(?:\w+:\/\/|\/)[\w@:%.~/-]{5,}|(?:[\w-]+\.)+[a-z]{2,}\/[\w%.~/-]+/giu;

type Row = string | number;

/** What a session was told from outside, so that it is known when somebody says it again in a later turn. */
export interface Heard {
  /**
   * Enters what the turn brought from outside; of `messages` what its reader is not shown, as reminders are. `said` is
   * what was said before, and not from outside: a summary repeats it.
   */
  take(turn: TurnText, messages?: readonly CapturedMessage[], said?: ReadonlySet<Row>): void;
  hear(text: string): void;
  /** How much is remembered. */
  rows(): number;
  /** Whether the assistant repeats in the turn what it heard, and the user did not say. */
  isRepeatedIn(turn: TurnText): boolean;
}

/** What each session was told; of those that rested longest, where it is too much, only that they were told something. */
export function createHearing(most = MOST_ROWS_IN_ALL): (sessionId: string, atMs: number) => Heard {
  const sessions = new Map<string, { readonly heard: Heard; readonly atMs: number }>();
  const deaf = new Set<string>();
  let held = 0;

  function makeRoom(): void {
    const oldest = [...sessions].sort(([, a], [, b]) => a.atMs - b.atMs);
    for (const [id, { heard }] of oldest) {
      if (held <= most / 2) return;
      if (heard.rows() > 0) deaf.add(id);
      held -= heard.rows();
      sessions.delete(id);
    }
  }

  return (sessionId, atMs) => {
    if (held > most) makeRoom();
    const known = sessions.get(sessionId);
    const onRow = (): void => {
      held += 1;
      // Most sessions are told nothing from outside.
      if (!sessions.has(sessionId)) sessions.set(sessionId, { heard, atMs });
    };
    const heard = known?.heard ?? createHeard({ isFull: deaf.has(sessionId), onRow });
    if (known !== undefined) sessions.set(sessionId, { heard, atMs: Math.max(atMs, known.atMs) });
    return heard;
  };
}

export function createHeard({ isFull: wasFull = false, onRow = () => {} } = {}): Heard {
  const rows = new Set<Row>();
  /** More came than can be remembered: whatever is said may be a part of it. */
  let isFull = wasFull;

  function hear(text: string, said: ReadonlySet<Row> = NOTHING): void {
    for (const row of rowsOf(text)) {
      if (isFull) return;
      if (said.has(row)) continue;
      if (!rows.has(row)) onRow();
      rows.add(row);
      isFull = rows.size >= MOST_ROWS;
    }
  }

  return {
    rows: () => rows.size,
    hear: (text) => hear(text),
    take({ parts }, messages = [], said = NOTHING) {
      const foreign = parts.filter(({ origin }) => origin === 'external');
      for (const { text } of foreign) hear(text, said);
      if (foreign.length > 0) for (const text of messages.flatMap(unshownResults)) hear(text);
    },
    isRepeatedIn({ user, parts }) {
      if (rows.size === 0 && !isFull) return false;
      const said = parts.filter(({ kind, origin }) => kind !== 'tool_result' && isCleanOrigin(origin));
      if (isFull) return said.length > 0;
      const own = new Set(rowsOf(user));
      return said.some(({ text }) => {
        for (const row of rowsOf(text)) if (rows.has(row) && !own.has(row)) return true;
        return false;
      });
    },
  };
}

/** What of a text was said before it in turns that are shown one by one, and did not come from outside. */
export function createSaidBefore(text: string): { readonly rows: ReadonlySet<Row>; see(turn: TurnText): void } {
  const wanted = new Set(rowsOf(text));
  const rows = new Set<Row>();
  return {
    rows,
    see({ user, parts }) {
      const own = parts.filter(({ origin }) => origin !== 'external').map((part) => part.text);
      for (const said of [user, ...own]) {
        for (const row of rowsOf(said.slice(0, SAID_CHARS))) if (wanted.has(row)) rows.add(row);
      }
    },
  };
}

/** Results that are shown without something that claims to be the client's or ours. */
function unshownResults(message: CapturedMessage): string[] {
  const results = blocksOf(message).filter((block) => block['type'] === 'tool_result');
  return results.map((block) => contentText(block['content'])).filter((text) => withoutInjected(text) !== text);
}

function* rowsOf(text: string): Generator<Row> {
  const plain = text
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toLowerCase();
  for (const [place] of plain.matchAll(PLACE)) yield place.replace(/[./]+$/, '');
  const before: string[] = [];
  for (const [word] of plain.matchAll(WORD)) {
    before.push(word);
    if (before.length < ROW) continue;
    yield hash(before.join(' '));
    before.shift();
  }
}

/** FNV-1a, 32 bits: a row taken for another one costs a line its channel, no more. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

export type SaidBefore = Parameters<Heard['take']>[2];

/** What the summary that a turn begins with repeats of `earlier` turns; nothing where it begins with none. */
export async function saidBefore(
  turn: CapturedTurn,
  earlier: () => readonly CapturedTurn[] | Promise<readonly CapturedTurn[]>,
): Promise<SaidBefore> {
  if (!mayContinue(turn)) return undefined;
  const { parts } = readTurn(turn);
  if (!parts.some(({ text }) => isContinuation(text))) return undefined;
  // The answers of such a turn count as from outside as well.
  const known = createSaidBefore(parts.map(({ text }) => text).join('\n'));
  for (const one of await earlier()) {
    known.see(readTurn(one));
    await nextTick();
  }
  return known.rows;
}
