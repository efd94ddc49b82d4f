import { CometError } from '../../common/errors.ts';
import type { JournalTurn } from '../../memory/model/turn.ts';
import { latestTurns } from '../../memory/storage/fs/turn-log.ts';
import type { Journal } from '../../memory/storage/turn-log.ts';

/** A journal that lasts as long as the process, for tests and for homes that cannot be written. */
export function createMemoryJournal(): Journal {
  const sessions = new Map<string, { records: JournalTurn[]; nextSeq: number }>();
  let closed = false;

  return {
    async append(turn) {
      if (closed) throw new CometError('journal_failed', 'the journal is closed');
      const session = sessions.get(turn.sessionId) ?? { records: [], nextSeq: 0 };
      const record: JournalTurn = { ...turn, seq: session.nextSeq };
      session.records.push(record);
      session.nextSeq += 1;
      // Set anew, so that the order of the map is the order of writes.
      sessions.delete(turn.sessionId);
      sessions.set(turn.sessionId, session);
      return record;
    },
    sessions: async () => [...sessions.keys()].reverse(),
    read: async (sessionId) => latestTurns(sessions.get(sessionId)?.records ?? []),
    async remove(sessionId, turnIds) {
      const session = sessions.get(sessionId);
      if (session === undefined) return;
      session.records = session.records.filter((record) => !turnIds.includes(record.turnId));
      if (session.records.length === 0) sessions.delete(sessionId);
    },
    async close() {
      closed = true;
    },
  };
}
