import { setImmediate as nextTick } from 'node:timers/promises';
import { runAtOnce, runInSlices, type Steps } from '../../common/async.ts';
import { withoutQuotations } from '../../common/text.ts';
import { type CapturedMessage, type CapturedTurn, isCleanOrigin, isContinuation } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { createCompactSet } from '../text/compact-set.ts';
import { getShingles, getSome, repeatedParagraphs } from '../text/repetition.ts';
import { contentText, getBlocks, stripInjected } from './content-blocks.ts';
import { readTurn } from './turn-trust.ts';

/** About 200 KB of text. */
const MAX_SESSION_SHINGLES = 40_000;
/** About 2 MB of text. */
const MAX_SHINGLES = 400_000;
/** Of a turn, about 30 KB of text. */
const MOST_ECHOES = 5_000;
const EARLIER_TEXT_CHARS = 20_000;
const NO_SHINGLES: ReadonlySet<number> = new Set();
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

  function* add(text: string, dir: string | null, shingles: ReadonlySet<number> = NO_SHINGLES): Steps<void> {
    const valuesOf = (plain: string) => getShingles(plain, dir);
    yield* getSome(text, valuesOf, (shingle) => {
      if (isFull || shingles.has(shingle)) return isFull;
      if (!external.has(shingle)) onAdd();
      external.add(shingle);
      isFull = external.size >= MAX_SESSION_SHINGLES;
      return isFull;
    });
  }

  return {
    size: (): number => external.size,
    addText: (text: string): void => runAtOnce(add(text, null)),
    /**
     * @param messages  raw messages: their injected parts, which `turn` lacks, are external too
     * @param dir  working directory
     * @param shingles  shingles of earlier trusted text, which a summary may repeat
     */
    *addTurn(
      { parts }: TurnText,
      messages: readonly CapturedMessage[] = [],
      dir: string | null = null,
      shingles: ReadonlySet<number> = NO_SHINGLES,
    ): Steps<void> {
      // Not its calls: their syntax would be found again in each one.
      const foreign = parts
        .filter(({ kind }) => kind !== 'tool_use')
        .flatMap(({ origin, text, passages = [] }) => [{ origin, text }, ...passages])
        .filter(({ origin }) => origin === 'external');
      for (const { text } of foreign) yield* add(text, dir, shingles);
      if (foreign.length > 0) for (const text of messages.flatMap(hiddenResults)) yield* add(text, dir);
    },
    /**
     * Shingles of the paragraphs in which the assistant repeats external text that the user did not write; true where
     * all that it says has to count as such. @param dir  working directory @param repeats  as `addTurn` takes them
     */
    *findEchoes(
      { user, parts }: TurnText,
      dir: string | null = null,
      repeats: ReadonlySet<number> = NO_SHINGLES,
    ): Steps<readonly number[] | true> {
      for (const { origin, text } of parts)
        if (origin === 'external' && isContinuation(text)) yield* add(text, dir, repeats);
      if (external.size === 0 && !isFull) return [];
      const trusted = parts.filter(({ kind, origin }) => kind !== 'tool_result' && isCleanOrigin(origin));
      if (isFull) return trusted.length === 0 ? [] : true;
      const [own, found] = [new Set<number>(), new Set<number>()];
      yield* getSome(withoutQuotations(user), getShingles, (shingle) => void own.add(shingle));
      const isRepeated = (shingle: number): boolean => external.has(shingle) && !own.has(shingle);
      const said = (plain: string) => getShingles(plain, dir);
      for (const { kind, text } of trusted) {
        if (!(yield* getSome(text, said, isRepeated))) continue;
        const marks = kind === 'assistant' ? yield* repeatedParagraphs(text, isRepeated, dir) : [];
        const echoed = kind === 'assistant' ? text.split('\n').filter((_, at) => marks[at]) : [text];
        const isKept = (shingle: number): boolean => (kind === 'assistant' ? !own.has(shingle) : isRepeated(shingle));
        yield* getSome(echoed.join('\n'), said, (shingle) => void (isKept(shingle) && found.add(shingle)));
        if (found.size > MOST_ECHOES) return true;
      }
      return [...found];
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

export type RepeatedText = Parameters<ExternalTextTracker['addTurn']>[3];

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
