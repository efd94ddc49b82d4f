import { rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { createFree, readFileIfPresent, writeFileAtomic } from '../../../common/files.ts';
import { parseJson } from '../../../common/text.ts';
import { MemoryNode } from '../../model/node-schema.ts';
import { PageRewrite } from '../page-files.ts';
import { openDir, removeDurably } from './file-cache.ts';

/** Nodes as they were and as they are to be; null where there was none, or is to be none. */
const NodeRewrite = z.object({ before: MemoryNode.nullable(), after: MemoryNode.nullable() });
export type NodeRewrite = z.infer<typeof NodeRewrite>;

/** Digests of nodes by id. */
const Digests = z.record(z.string(), z.string());
const count = z.int().nonnegative();

/** What passes did since the last brief, for the next one. No texts: those of a memory that is removed would stay. */
const Untold = z.object({
  ...{ merged: count, groups: count, tags: count, linked: count, pruned: count, added: count },
  /** Names of topic pages that changed. */
  pages: z.array(z.string()),
  /** Ids of page statements that no longer hold. */
  past: z.array(z.string()),
});
export type Untold = z.infer<typeof Untold>;

/** A section of an inbox page; `since` is what it told from, and `digest` that of its text. */
const BriefRecord = z.object({
  at: z.iso.datetime(),
  snapshot: z.string().nullable(),
  day: z.string(),
  since: z.iso.datetime().nullable(),
  digest: z.string(),
});
export type BriefRecord = z.infer<typeof BriefRecord>;

/** What the last dream did, in numbers, and what it looked at. */
const DreamLedger = z.object({
  at: z.iso.datetime(),
  snapshot: z.string().nullable(),
  ...{ merged: count, groups: count, tags: count, linked: count, pruned: count },
  /** Nodes that the next one looks at. */
  left: count,
  /** Digest of each node as it was looked at. */
  seen: Digests,
  untold: Untold.optional(),
  /** Until when briefs tell what happened. */
  told: z.iso.datetime().nullish(),
  /** When the last pass of all phases ended well. */
  full: z.iso.datetime().optional(),
  /** Newest first. */
  briefs: z.array(BriefRecord).optional(),
  /** Day of the newest brief that a session was told of. */
  shown: z.string().optional(),
  /** See `MergeWriter.refusals`. */
  refused: z.array(z.string()).optional(),
});
export type DreamLedger = z.infer<typeof DreamLedger>;

/** A change of many files that happens as a whole or not at all; `snapshot` was taken before it. */
const ChangeRecord = z.object({
  snapshot: z.string(),
  changes: z.array(NodeRewrite).readonly(),
  pages: z.array(PageRewrite).readonly().optional(),
  /** State of the last dream before this one; absent where the change is none of a dream. */
  former: DreamLedger.nullish(),
});
export type ChangeRecord = Readonly<z.infer<typeof ChangeRecord>>;

export type DreamFiles = Awaited<ReturnType<typeof openDreamFiles>>;

/**
 * Four small files: `pending.json` while a change is under way, `written.json` with digests of what the last one wrote,
 * `last.json` with what the last dream did, `first.json` with the time from which nights count. None holds text of a node
 * longer than a change takes.
 */
export async function openDreamFiles(dir: string) {
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
    /** Durable when it resolves: from now on the change is undone at the next start. @param digests  of what it writes, by id */
    async begin(record: ChangeRecord, digests: Readonly<Record<string, string>>): Promise<void> {
      await write('written.json', digests);
      await write('pending.json', record);
    },
    /** Durable when it resolves: the change stays, or is undone. */
    end: () => removeDurably(at('pending.json')),
    /** A change that was begun and not ended. */
    pending: () => readRecord('pending.json', ChangeRecord),
    /** Digests of what the last change wrote. */
    lastDigests: async (): Promise<ReadonlyMap<string, string>> =>
      new Map(Object.entries((await readRecord('written.json', Digests)) ?? {})),
    load: () => readRecord('last.json', DreamLedger),
    /** `nowMs` of the first call in this home. */
    async firstMs(nowMs: number): Promise<number> {
      const firstMs = await readRecord('first.json', z.number());
      if (firstMs === null) await write('first.json', nowMs);
      return firstMs ?? nowMs;
    },
    /** @param ledger  null: as if there had been none */
    save: (ledger: DreamLedger | null) =>
      ledger === null ? removeDurably(at('last.json')) : write('last.json', ledger),
  };
}
