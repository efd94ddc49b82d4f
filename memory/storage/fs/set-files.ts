import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { createMutex } from '../../../common/async.ts';
import { appendDurably, readFileIfPresent } from '../../../common/files.ts';
import { parseJson } from '../../../common/text.ts';
import type { CapturedTurn } from '../../../common/turn.ts';

const Closing = z.object({ session_id: z.string().min(1), closed_at: z.iso.datetime() });

export type ClosedSessionsFile = ReturnType<typeof createClosedSessionsFile>;

/** One close a line, append-only, fsynced; the latest of a session counts. */
export function createClosedSessionsFile(file: string) {
  return {
    /** When each was closed last, ms. */
    async load(): Promise<ReadonlyMap<string, number>> {
      const text = (await readFileIfPresent(file)) ?? '';
      // A session whose line was torn by a power cut counts as open.
      const closings = text.split('\n').flatMap((line) => Closing.safeParse(parseJson(line)).data ?? []);
      return new Map(closings.map(({ session_id, closed_at }) => [session_id, Date.parse(closed_at)]));
    },
    add(sessionId: string, atMs: number): Promise<void> {
      const closing = { session_id: sessionId, closed_at: new Date(atMs).toISOString() };
      // A line that a power cut tore before this one must not take it along.
      return appendDurably(file, `\n${JSON.stringify(closing)}\n`);
    },
  };
}

const HASH = /^[0-9a-f]{64}$/;

/** Ids that must outlive the process: what the user removed is never captured again. */
export type IdSetFile = ReturnType<typeof createIdSetFile>;

/** One id a line, append-only, fsynced: Claude Code keeps sending what the user had removed here. @param form  of an id */
export function createIdSetFile(file: string, form = HASH) {
  return {
    async load(): Promise<readonly string[]> {
      return ((await readFileIfPresent(file)) ?? '').split('\n').filter((line) => form.test(line));
    },
    // A line that a power cut tore before these must not take one of them along.
    add: (turnIds: readonly string[]): Promise<void> => appendDurably(file, `\n${turnIds.join('\n')}\n`),
  };
}

export type TurnWork = 'read' | 'compact';

export type MarkedTurn = Pick<CapturedTurn, 'sessionId' | 'turnId' | 'atMs'>;

/** Turns are marked while they are worked on, so that the next process knows what this one died of. */
export type CrashMarks = Awaited<ReturnType<typeof openCrashMarks>>;

const Marked = z.object({
  what: z.enum(['read', 'compact']),
  turnId: z.string(),
  sessionId: z.string(),
  atMs: z.number(),
});
const Crash = Marked.extend({ version: z.string(), survived: z.boolean().optional() });
type Marked = z.infer<typeof Marked>;

const SKIPPED_AT = 2;

/**
 * The marks in force are in `reading`, overwritten in place: that costs microseconds, and outlives the process without
 * a sync. What a process died of is appended to `crashes`.
 * @param version  counts only its own crashes: another one may read what this one cannot
 * @param onMark   called with each marked turn, before the work
 */
export async function openCrashMarks({
  dir,
  version,
  onMark = () => {},
}: {
  readonly dir: string;
  readonly version: string;
  readonly onMark?: ((what: TurnWork, turnId: string) => void) | undefined;
}) {
  const [readingFile, crashesFile] = [path.join(dir, 'reading'), path.join(dir, 'crashes')];
  const left = z.array(Marked).safeParse(parseJson((await readFileIfPresent(readingFile)) ?? '[]'));
  const append = (turns: readonly Marked[], survived?: true): Promise<void> =>
    appendDurably(crashesFile, turns.map((turn) => `\n${JSON.stringify({ ...turn, version, survived })}\n`).join(''));
  if (left.success && left.data.length > 0) await append(left.data).catch(() => undefined);
  const crashes = new Map<string, { readonly turn: MarkedTurn; readonly count: number }>();
  const getKey = (what: TurnWork, turnId: string): string => `${what} ${turnId}`;
  for (const line of ((await readFileIfPresent(crashesFile)) ?? '').split('\n')) {
    const { success, data } = Crash.safeParse(parseJson(line));
    if (!success || data.version !== version) continue;
    const key = getKey(data.what, data.turnId);
    if (data.survived) crashes.delete(key);
    else crashes.set(key, { turn: data, count: (crashes.get(key)?.count ?? 0) + 1 });
  }
  const repeated = [...crashes.values()].filter(({ count }) => count >= SKIPPED_AT);
  const skipped = new Map(repeated.map(({ turn }) => [turn.turnId, turn]));
  // It is open as long as the process: a file handle would close it, with a warning, when it is collected.
  const file = await promisify(fs.open)(readingFile, 'w', 0o600).catch(() => null);
  const marked = new Set<readonly Marked[]>();
  const lock = createMutex();
  let bytes = 0;
  const write = (): Promise<void> =>
    lock(async () => {
      const text = JSON.stringify([...marked].flat());
      // Blanks cover what was longer.
      if (file !== null) await promisify(fs.write)(file, text.padEnd(bytes), 0);
      bytes = text.length;
    }).catch(() => undefined); // Where nothing can be written, nothing is marked, and work continues.
  await write();
  return {
    async during<T>(what: TurnWork, turns: readonly MarkedTurn[], work: () => Promise<T>): Promise<T> {
      const own = turns.map(({ turnId, sessionId, atMs }) => ({ what, turnId, sessionId, atMs }));
      marked.add(own);
      await write();
      try {
        for (const { turnId } of turns) onMark(what, turnId);
        return await work();
      } finally {
        marked.delete(own);
        await write();
        const survivors = own.filter(({ turnId }) => crashes.delete(getKey(what, turnId)));
        if (survivors.length > 0) await append(survivors, true).catch(() => undefined);
      }
    },
    /** A process died of it, or of one beside it: work on it alone. */
    isSuspect: (turnId: string): boolean => Marked.shape.what.options.some((what) => crashes.has(getKey(what, turnId))),
    /** A second one did: leave it. */
    isSkipped: (turnId: string): boolean => skipped.has(turnId),
    skipped: (): readonly MarkedTurn[] => [...skipped.values()],
  };
}
