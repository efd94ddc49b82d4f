import type { DreamFiles } from '../memory/storage/snapshot-files.ts';

/** Where memory is only asked, nothing is tidied. */
export const noDreams: DreamFiles = {
  begin: refused,
  end: refused,
  pending: async () => null,
  lastDigests: async () => new Map(),
  load: async () => null,
  firstMs: async (nowMs: number) => nowMs,
  save: refused,
};

async function refused(): Promise<never> {
  throw new Error('memory is only asked here');
}
