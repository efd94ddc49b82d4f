import { isDeepStrictEqual } from 'node:util';
import { contentDigest } from '../model/content-hash.ts';
import type { MemoryNode } from '../model/node.ts';
import type { NodeFiles } from '../storage/node-files.ts';
import type { ChangeRecord, DreamFiles, NodeRewrite } from '../storage/snapshot-files.ts';

type Files = Pick<NodeFiles, 'load' | 'save' | 'drop'>;

/** Writes all of it or nothing, whenever the process ends. @throws what the disk throws; then nothing is changed */
export async function writeChange(record: ChangeRecord, files: Files, dreams: DreamFiles): Promise<void> {
  const fresh = record.changes.flatMap(({ after }) => after ?? []);
  await dreams.begin(record, Object.fromEntries(fresh.map((node) => [node.node_id, contentDigest(node)])));
  try {
    await files.save(fresh);
    const gone = record.changes.flatMap(({ before, after }) =>
      after === null && before !== null ? [before.node_id] : [],
    );
    if (gone.length > 0) await files.drop(gone);
  } catch (error) {
    await undo(record.changes, files);
    await dreams.end();
    throw error;
  }
  await dreams.end();
}

/** Undoes what was begun and not ended; true where there was something. */
export async function recoverChange(files: Files, dreams: DreamFiles): Promise<boolean> {
  const record = await dreams.pending();
  if (record === null) return false;
  await undo(record.changes, files);
  await dreams.end();
  return true;
}

/** What somebody changed since stays as it is. */
async function undo(changes: readonly NodeRewrite[], files: Files): Promise<void> {
  const now = new Map((await files.load()).nodes.map((node) => [node.node_id, node]));
  const back: MemoryNode[] = [];
  const gone: string[] = [];
  for (const { before, after } of changes) {
    const { node_id: id } = (before ?? after) as MemoryNode;
    const found = now.get(id);
    const isOurs = after === null ? found === undefined : found !== undefined && isDeepStrictEqual(found, after);
    if (!isOurs) continue;
    if (before === null) gone.push(id);
    else back.push(before);
  }
  if (back.length > 0) await files.save(back);
  if (gone.length > 0) await files.drop(gone);
}
