import { setImmediate as nextTick } from 'node:timers/promises';
import { runAtOnce, runInSlices, type Steps } from '../../common/async.ts';
import { trimEnd } from '../../common/text.ts';
import { type CapturedMessage, type CapturedTurn, isCleanOrigin, isContinuation } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { createCompactSet } from '../text/compact-set.ts';
import { getSequences, getSome, hashText, withoutFolder } from '../text/repetition.ts';
import { contentText, getBlocks, stripInjected } from './content-blocks.ts';
import { readTurn } from './turn-trust.ts';

/** About 200 KB of text. */
const MAX_SESSION_SHINGLES = 40_000;
/** About 2 MB of text. */
const MAX_SHINGLES = 400_000;
const EARLIER_TEXT_CHARS = 20_000;
const NO_SHINGLES: ReadonlySet<number> = new Set();
/** A URL, path or address identifies a text by itself. */
const PLACE =
  /(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+|(?:(?<!\w)\w+:\/\/|\/)[\w@:%.~/-]{5,}|(?<![\w.-])(?:[\w-]+\.)+[a-z]{2,}\/[\w%.~/-]+/giu;

/** One tracker per session. Above `limit` shingles the longest idle sessions are evicted and then distrust all text. */
export function createExternalTextTrackers(
  limit = MAX_SHINGLES,
): (sessionId: string, atMs: number) => ExternalTextTracker {
  const sessions = new Map<string, { readonly tracker: ExternalTextTracker; readonly atMs: number }>();
  const evicted = new Set<string>();
  let total = 0;

  function evictIdle(): void {
    const oldest = [...sessions].sort(([, a], [, b]) => a.atMs - b.atMs);
    for (const [id, { tracker }] of oldest) {
      if (total <= limit / 2) return;
      if (tracker.size() > 0) evicted.add(id);
      total -= tracker.size();
      sessions.delete(id);
    }
  }

  return (sessionId, atMs) => {
    if (total > limit) evictIdle();
    const session = sessions.get(sessionId);
    const onAdd = (): void => {
      total += 1;
      // Registered late: most sessions have no external text.
      if (!sessions.has(sessionId)) sessions.set(sessionId, { tracker, atMs });
    };
    const tracker = session?.tracker ?? createExternalTextTracker({ isFull: evicted.has(sessionId), onAdd });
    if (session !== undefined) sessions.set(sessionId, { tracker, atMs: Math.max(atMs, session.atMs) });
    return tracker;
  };
}

/** Remembers external text of a session so that a later repetition of it is recognized. */
export type ExternalTextTracker = ReturnType<typeof createExternalTextTracker>;

export function createExternalTextTracker({ isFull: wasFull = false, onAdd = () => {} } = {}) {
  const external = createCompactSet(2 * MAX_SESSION_SHINGLES);
  /** Over capacity: a trusted text may repeat what was not stored. */
  let isFull = wasFull;

  function* add(text: string, shingles: ReadonlySet<number> = NO_SHINGLES): Steps<void> {
    yield* getSome(text, getShingles, (shingle) => {
      if (isFull || shingles.has(shingle)) return isFull;
      if (!external.has(shingle)) onAdd();
      external.add(shingle);
      isFull = external.size >= MAX_SESSION_SHINGLES;
      return isFull;
    });
  }

  return {
    size: (): number => external.size,
    addText: (text: string): void => runAtOnce(add(text)),
    /**
     * @param messages  raw messages: their injected parts, which `turn` lacks, are external too
     * @param shingles  shingles of earlier trusted text, which a summary may repeat
     */
    *addTurn(
      { parts }: TurnText,
      messages: readonly CapturedMessage[] = [],
      shingles: ReadonlySet<number> = NO_SHINGLES,
    ): Steps<void> {
      const foreign = parts.filter(({ origin }) => origin === 'external');
      for (const { text } of foreign) yield* add(text, shingles);
      if (foreign.length > 0) for (const text of messages.flatMap(hiddenResults)) yield* add(text);
    },
    /** Whether the assistant repeats external text that the user did not write. @param dir  working directory */
    *isRepeatedIn({ user, parts }: TurnText, dir: string | null = null): Steps<boolean> {
      if (external.size === 0 && !isFull) return false;
      const trusted = parts.filter(({ kind, origin }) => kind !== 'tool_result' && isCleanOrigin(origin));
      if (isFull) return trusted.length > 0;
      const own = new Set<number>();
      yield* getSome(user, getShingles, (shingle) => void own.add(shingle));
      const isRepeated = (shingle: number): boolean => external.has(shingle) && !own.has(shingle);
      const said = (plain: string) => getShingles(plain, dir);
      for (const { text } of trusted) if (yield* getSome(text, said, isRepeated)) return true;
      return false;
    },
  };
}

/** Collects the shingles of `text` that trusted parts of earlier turns contain. */
export function* createRepeatedTextFinder(text: string): Steps<{
  readonly found: ReadonlySet<number>;
  search(turn: TurnText): Steps<void>;
}> {
  const wanted = new Set<number>();
  yield* getSome(text, getShingles, (shingle) => void wanted.add(shingle));
  const shingles = new Set<number>();
  return {
    found: shingles,
    *search({ user, parts }) {
      const own = parts.filter(({ origin }) => origin !== 'external').map((part) => part.text);
      for (const earlier of [user, ...own]) {
        yield* getSome(earlier.slice(0, EARLIER_TEXT_CHARS), getShingles, (shingle) => {
          if (wanted.has(shingle)) shingles.add(shingle);
        });
      }
    },
  };
}

/** Results from which `TurnText` strips something that looks injected. */
function hiddenResults(message: CapturedMessage): string[] {
  const results = getBlocks(message).filter((block) => block['type'] === 'tool_result');
  return results.map((block) => contentText(block['content'])).filter((text) => stripInjected(text) !== text);
}

/** @param dir  working directory: neither its path nor a beginning of it is a place */
function* getShingles(plain: string, dir: string | null = null): Generator<number> {
  for (const [match] of plain.matchAll(PLACE)) {
    const place = trimEnd(match, './');
    if (dir?.toLowerCase().startsWith(place) !== true) yield hashText(place);
  }
  yield* getSequences(withoutFolder(plain, dir));
}

export type RepeatedText = Parameters<ExternalTextTracker['addTurn']>[2];

/** What a turn's opening compaction summary repeats of `earlier` turns; undefined without such a summary. */
export async function findRepeatedText(
  turn: CapturedTurn,
  earlier: () => readonly CapturedTurn[] | Promise<readonly CapturedTurn[]>,
): Promise<RepeatedText> {
  const { parts } = readTurn(turn);
  if (!parts.some(({ text }) => isContinuation(text))) return undefined;
  const repeats = await runInSlices(createRepeatedTextFinder(parts.map(({ text }) => text).join('\n')));
  for (const one of await earlier()) {
    await runInSlices(repeats.search(readTurn(one)));
    await nextTick();
  }
  return repeats.found;
}

/** Whether a turn without a prompt says behind its summary only what `earlier` turns said: Claude Code keeps the end. */
export async function repeatsTurns(
  { user, parts }: TurnText,
  earlier: () => Promise<readonly CapturedTurn[]>,
): Promise<boolean> {
  const said = parts.filter(({ kind, text }) => kind !== 'tool_result' && !isContinuation(text));
  if (user !== '' || said.length === 0 || !parts.some(({ text }) => isContinuation(text))) return false;
  const missing = new Set(said.map(({ text }) => text.trim()));
  for (const turn of await earlier()) {
    for (const { text } of readTurn(turn).parts) missing.delete(text.trim());
    await nextTick();
  }
  return missing.size === 0;
}
