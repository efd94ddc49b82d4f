import type { ChangeRecord, DreamFiles, DreamLedger } from '../../memory/storage/fs/dream-files.ts';

/** Dream files that last as long as the test. */
export function createMemoryDreams(): DreamFiles {
  let pending: ChangeRecord | null = null;
  let written: Readonly<Record<string, string>> = {};
  let last: DreamLedger | null = null;
  let first: number | null = null;
  return {
    async begin(record, digests) {
      written = digests;
      pending = structuredClone(record);
    },
    end: async () => {
      pending = null;
    },
    pending: async () => pending,
    lastDigests: async () => new Map(Object.entries(written)),
    load: async () => last,
    firstMs: async (nowMs) => (first ??= nowMs),
    save: async (ledger) => {
      last = ledger;
    },
  };
}
