import type { JournalTurn } from '../model/turn.ts';

/** Order of arrival; where an `end` stands twice, the later record takes the earlier one's place. */
export function latestTurns(records: readonly JournalTurn[]): JournalTurn[] {
  const byEnd = new Map<string, JournalTurn>();
  for (const record of records) byEnd.set(record.end, record);
  return [...byEnd.values()];
}
