/** A store of a ledger or of receipts that lasts as long as the process. */
export function createMemoryRecords<T>(records: T[] = []) {
  return {
    load: async (): Promise<readonly T[]> => [...records],
    append: async (record: T): Promise<void> => void records.push(record),
    replace: async (fresh: readonly T[]): Promise<void> => void records.splice(0, records.length, ...fresh),
    close: async (): Promise<void> => {},
  };
}
