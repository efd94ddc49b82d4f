import { rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { createFree, readFileIfPresent, writeFileAtomic } from '../../../common/files.ts';
import { parseJson } from '../../../common/text.ts';
import { ChangeRecord, Digests, type DreamFiles, DreamLedger } from '../snapshot-files.ts';
import { openDir, removeDurably } from './file-cache.ts';

/**
 * Four small files: `pending.json` while a change is under way, `written.json` with digests of what the last one
 * wrote, `last.json` with what the last dream did,
 * `first.json` with the time from which nights count. None holds text of a node longer than a change takes.
 */
export async function openDreamFiles(dir: string): Promise<DreamFiles> {
  await openDir(dir);
  const at = (name: string): string => path.join(dir, name);
  const write = (name: string, value: unknown): Promise<void> => writeFileAtomic(at(name), JSON.stringify(value));

  /** Null where there is none, or none that can be understood: that is set aside. */
  async function readRecord<T>(name: string, schema: z.ZodType<T>): Promise<T | null> {
    const text = await readFileIfPresent(at(name));
    if (text === null) return null;
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    await createFree((number) => `${at(name)}.invalid-${number}`, text);
    await rm(at(name), { force: true });
    return null;
  }

  return {
    async begin(record: ChangeRecord, digests) {
      await write('written.json', digests);
      await write('pending.json', record);
    },
    end: () => removeDurably(at('pending.json')),
    pending: () => readRecord('pending.json', ChangeRecord),
    lastDigests: async () => new Map(Object.entries((await readRecord('written.json', Digests)) ?? {})),
    load: () => readRecord('last.json', DreamLedger),
    async firstMs(nowMs: number) {
      const firstMs = await readRecord('first.json', z.number());
      if (firstMs === null) await write('first.json', nowMs);
      return firstMs ?? nowMs;
    },
    save: (ledger: DreamLedger | null) =>
      ledger === null ? removeDurably(at('last.json')) : write('last.json', ledger),
  };
}
