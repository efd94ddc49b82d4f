import type { JournalTurn } from '../model/turn.ts';

/** Order of arrival; where a turn id occurs twice, the later record takes the earlier one's place. */
export function latestTurns(records: readonly JournalTurn[]): JournalTurn[] {
  const byId = new Map<string, JournalTurn>();
  for (const record of records) byId.set(record.turnId, record);
  return [...byId.values()];
}
