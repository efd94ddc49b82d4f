import { z } from 'zod';
import { appendDurably, readFileIfPresent } from '../../../common/files.ts';
import { parseJson } from '../../../common/text.ts';

/** Sessions that the user closed. */
export interface ClosedSessionsFile {
  /** When each was closed last, ms. */
  load(): Promise<ReadonlyMap<string, number>>;
  add(sessionId: string, atMs: number): Promise<void>;
}

const Closing = z.object({ session_id: z.string().min(1), closed_at: z.iso.datetime() });

/** One close a line, append-only, fsynced; the latest of a session counts. */
export function createClosedSessionsFile(file: string): ClosedSessionsFile {
  return {
    async load() {
      const text = (await readFileIfPresent(file)) ?? '';
      const closings = text.split('\n').flatMap(parsed);
      return new Map(closings.map(({ session_id, closed_at }) => [session_id, Date.parse(closed_at)]));
    },
    add(sessionId, atMs) {
      const closing = { session_id: sessionId, closed_at: new Date(atMs).toISOString() };
      // A line that a power cut tore before this one must not take it along.
      return appendDurably(file, `\n${JSON.stringify(closing)}\n`);
    },
  };
}

function parsed(line: string): z.infer<typeof Closing>[] {
  // A session whose line was torn by a power cut counts as open.
  const closing = Closing.safeParse(parseJson(line));
  return closing.success ? [closing.data] : [];
}

/** Ids that must outlive the process: what the user removed is never captured again. */
export interface IdSetFile {
  load(): Promise<readonly string[]>;
  add(ids: readonly string[]): Promise<void>;
}

const HASH = /^[0-9a-f]{64}$/;

/** One turn id a line, append-only, fsynced: Claude Code keeps sending what the user had removed here. */
export function createIdSetFile(file: string): IdSetFile {
  return {
    async load() {
      const text = (await readFileIfPresent(file)) ?? '';
      return text.split('\n').filter((line) => HASH.test(line));
    },
    // A line that a power cut tore before these must not take one of them along.
    add: (turnIds) => appendDurably(file, `\n${turnIds.join('\n')}\n`),
  };
}
