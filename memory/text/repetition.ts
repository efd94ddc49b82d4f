import { runAtOnce, type Steps } from '../../common/async.ts';
import type { TurnText } from '../model/turn.ts';
import { type CompactSet, createCompactSet } from './compact-set.ts';

const SEQUENCE_WORDS = 5;
const WORD = /[\p{L}\p{N}_]+/gu;

/** A text of a turn, in order; `shown`: from a file, a tool or the client. */
export interface FlowText {
  readonly by: 'shown' | 'said' | 'wrote';
  readonly text: string;
}

/** Hashes of each five words in a row. @param plain  see `plainText` */
export function* getSequences(plain: string): Generator<number> {
  const before: string[] = [];
  for (const [word] of plain.matchAll(WORD)) {
    before.push(word);
    if (before.length < SEQUENCE_WORDS) continue;
    yield hashText(before.join(' '));
    before.shift();
  }
}

/** Calls `read` with each value of the plain text until it returns true; each is a step. Returns whether one did. */
export function* getSome<T>(
  text: string,
  valuesOf: (plain: string) => Iterable<T>,
  read: (value: T) => unknown,
): Steps<boolean> {
  const plain = yield* plainText(text);
  yield;
  for (const value of valuesOf(plain)) {
    if (read(value) === true) return true;
    yield;
  }
  return false;
}

function* plainText(text: string): Steps<string> {
  const normal = text.normalize('NFKC');
  yield;
  const visible = normal.replace(/\p{Cf}/gu, '');
  yield;
  return visible.toLowerCase();
}

/** Text that sessions were shown by files, tools of the project and the client: repeating it does not make it a statement of the user or of Claude. */
export type ShownText = ReturnType<typeof createShownText>;

/** Of all sessions, of which those that rest longest are dropped. */
const MAX_TOTAL = 1_000_000;
/** About 500 KB of text per session; then the older half is dropped. */
const MAX_SHOWN = 100_000;
/** More is in no result that Claude Code sends. */
const SHOWN_CHARS = 200_000;

export function createShownText() {
  const sessions = new Map<string, CompactSet>();
  return {
    /** Reads a turn; returns what the assistant repeats in it and neither it nor the user wrote first. */
    *read(sessionId: string, flow: readonly FlowText[], user: string): Steps<number[]> {
      const shown = sessions.get(sessionId) ?? createCompactSet(MAX_SHOWN);
      sessions.delete(sessionId);
      sessions.set(sessionId, shown);
      const own = new Set<number>();
      yield* getSome(user, getSequences, (sequence) => void own.add(sequence));
      const repeated = new Set<number>();
      for (const { by, text } of flow) {
        yield* getSome(text.slice(0, SHOWN_CHARS), getSequences, (sequence) => {
          if (own.has(sequence)) return;
          if (by === 'shown') shown.add(sequence);
          else if (!shown.has(sequence)) own.add(sequence);
          else if (by === 'said') repeated.add(sequence);
        });
      }
      let total = 0;
      for (const { size } of sessions.values()) total += size;
      for (const [id, { size }] of sessions) {
        if (total <= MAX_TOTAL) break;
        total -= size;
        sessions.delete(id);
      }
      return [...repeated];
    },
  };
}

/** Whether a text says what the assistant only repeats in these turns. */
export function repeatsShown(text: string, turns: readonly Pick<TurnText, 'repeats'>[]): boolean {
  const known = turns.flatMap(({ repeats }) => (repeats === undefined ? [] : [repeats]));
  if (known.length === 0) return false;
  return runAtOnce(getSome(text, getSequences, (sequence) => known.some((repeats) => repeats.has(sequence))));
}

/** FNV-1a, 32 bits: a collision only makes a turn less trusted. */
export function hashText(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value | 0;
}

/** The lines of a text, and whether each only repeats; a sequence may go over the end of a line. */
export function repeatedLines(
  text: string,
  repeats: ReadonlySet<number>,
): { readonly text: string; readonly isRepeated: boolean }[] {
  let before = '';
  return text.split('\n').map((line) => {
    const isRepeated = repeatsShown(`${before} ${line}`, [{ repeats }]);
    before = `${before} ${line}`
      .split(/\s+/)
      .slice(1 - SEQUENCE_WORDS)
      .join(' ');
    return { text: line, isRepeated };
  });
}
