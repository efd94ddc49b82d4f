import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { CometError, type Problem } from '../../../common/errors.ts';
import { LruMap } from '../../../common/map.ts';
import type { JournalTurn } from '../../model/turn.ts';
import { sessionStem } from '../paths.ts';
import type { Journal } from '../turn-log.ts';
import { openDir } from './file-cache.ts';
import { createSessionLog, type SessionLog } from './log-file.ts';

const ENDING = '.log';

/**
 * Raw turns on disk: one append-only file for each session. The directory has one writer.
 *
 * `report` is told of every torn or damaged file once, when it has been put right.
 * Files are looked at when their session is first touched, so opening costs nothing however long the history is.
 * Every method may throw CometError `journal_failed`, after which the file is as it was before the call.
 */
export async function openJournal({ dir, report }: { dir: string; report(found: Problem): void }): Promise<Journal> {
  await openDir(dir);
  const logs = new LruMap<string, SessionLog>(Number.POSITIVE_INFINITY);
  /** Files that this process wrote to, the newest last. */
  const writes = new Set<string>();
  let closed = false;

  const getLog = (stem: string): SessionLog =>
    logs.getOrCreate(stem, () => createSessionLog(path.join(dir, `${stem}${ENDING}`), report));

  return {
    async append(turn) {
      if (closed) throw new CometError('journal_failed', 'the journal is closed');
      const stem = sessionStem(turn.sessionId);
      const record = await getLog(stem).append(turn);
      writes.delete(stem);
      writes.add(stem);
      return record;
    },

    async sessions() {
      const names = (await readdir(dir)).filter((name) => name.endsWith(ENDING));
      const logs = await Promise.all(names.map((name) => describe(dir, name.slice(0, -ENDING.length), getLog)));
      // Time stamps of files are coarse; among equal ones the order of our own writes decides.
      const order = [...writes];
      return logs
        .filter((session) => session !== null)
        .sort((a, b) => b.updatedAtMs - a.updatedAtMs || order.indexOf(b.stem) - order.indexOf(a.stem))
        .map(({ sessionId }) => sessionId);
    },

    read: async (sessionId) => latestTurns(await getLog(sessionStem(sessionId)).read()),

    remove: (sessionId, turnIds) => getLog(sessionStem(sessionId)).remove(new Set(turnIds)),

    async close() {
      closed = true;
      await Promise.all([...logs.values()].map((log) => log.settled()));
    },
  };
}

async function describe(dir: string, stem: string, getLog: (stem: string) => SessionLog) {
  const { size, mtimeMs } = await stat(path.join(dir, `${stem}${ENDING}`));
  if (size === 0) return null;
  const sessionId = stem.startsWith('_') ? (await getLog(stem).read())[0]?.sessionId : stem;
  return sessionId === undefined ? null : { stem, sessionId, updatedAtMs: mtimeMs };
}

/** Order of arrival; where a turn id occurs twice, the later record takes the earlier one's place. */
export function latestTurns(records: readonly JournalTurn[]): JournalTurn[] {
  return [...new Map(records.map((record) => [record.turnId, record])).values()];
}
