import { readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../../../common/errors.ts';
import { ensureDir, readFileIfPresent } from '../../../common/files.ts';
import { sha256 } from '../../../common/text.ts';
import type { Embedder } from '../../embeddings/embedder.ts';
import type { SearchIndex } from '../search-index.ts';
import { type LanceIndexOptions, type OpenedIndex, openLanceIndex } from './search-index.ts';

export interface IndexHomeOptions extends LanceIndexOptions {
  /** The embedder that made an index, null where it cannot be had any more. */
  readonly getEmbedder: (id: string) => Embedder | null;
}

/** Present, with the embedder's id, in the folder of an index that serves. */
const SERVES = 'SERVES';

/**
 * Opens the index of an embedder, which has a folder of its own below `dir`. Where only that of another embedder has
 * ever served, that one continues to serve, and the new one is its successor: see `SearchIndex.successor`.
 * @throws CometError `index_failed`
 */
export async function openIndexHome(options: IndexHomeOptions): Promise<OpenedIndex> {
  try {
    return await findOpen(options);
  } catch (cause) {
    if (cause instanceof CometError && cause.code === 'index_failed') throw cause;
    throw new CometError('index_failed', 'the index cannot be opened; check space and permissions', { cause });
  }
}

async function findOpen(options: IndexHomeOptions): Promise<OpenedIndex> {
  const { dir, embedder } = options;
  const own = path.join(dir, getFolder(embedder.id));
  await ensureDir(dir);
  const serving = await servingFolders(dir);
  if (!serving.has(path.basename(own))) {
    for (const [folder, id] of serving) {
      const old = await openOld(options, path.join(dir, folder), id);
      if (old === null) continue;
      const next = await openLanceIndex({ ...options, dir: own });
      const index = createSucceededIndex({
        ...old,
        next: next.index,
        async taken() {
          await serves(own, embedder.id);
          return () => removeOthers(dir, own);
        },
      });
      return { index, rebuilt: false, reason: '' };
    }
  }
  const opened = await openLanceIndex({ ...options, dir: own });
  await serves(own, embedder.id);
  await removeOthers(dir, own);
  return opened;
}

async function openOld(options: IndexHomeOptions, folder: string, id: string) {
  const embedder = options.getEmbedder(id);
  if (embedder === null) return null;
  const { index, rebuilt } = await openLanceIndex({ ...options, dir: folder, embedder });
  if (!rebuilt) return { serving: index, embedder };
  // It could not be read: there is nothing in it to serve.
  await index.close();
  await embedder.close();
  return null;
}

const serves = (folder: string, id: string): Promise<void> => writeFile(path.join(folder, SERVES), id, { mode: 0o600 });

async function servingFolders(dir: string): Promise<Map<string, string>> {
  const folders = new Map<string, string>();
  for (const name of await readdir(dir)) {
    const id = await readFileIfPresent(path.join(dir, name, SERVES)).catch(() => null);
    if (id !== null && name === getFolder(id)) folders.set(name, id);
  }
  return folders;
}

/** What was set aside of the own one stays. */
async function removeOthers(dir: string, own: string): Promise<void> {
  const kept = [path.basename(own), `${path.basename(own)}.damaged`];
  const others = (await readdir(dir)).filter((name) => !kept.includes(name));
  await Promise.all(others.map((name) => rm(path.join(dir, name), { recursive: true, force: true })));
}

function getFolder(embedderId: string): string {
  return `${embedderId.replace(/[^\w.-]+/g, '-').slice(0, 60)}-${sha256(embedderId, 8)}`;
}

export interface Succession {
  readonly serving: SearchIndex;
  /** Of `serving`; closed with it. */
  readonly embedder: Embedder;
  readonly next: SearchIndex;
  /** Makes it last that `next` serves; what it gives is done once the old one is closed. */
  readonly taken: () => Promise<() => Promise<void>>;
}

/** One index that serves and one that is filled; both are told what changes, until the other takes over. */
export function createSucceededIndex({ serving, embedder, next, taken }: Succession): SearchIndex {
  let current = serving;
  let pending: SearchIndex | null = next;
  const reading = new Set<Promise<unknown>>();

  function trackRead<T>(work: Promise<T>): Promise<T> {
    const settled = Promise.allSettled([work]);
    reading.add(settled);
    void settled.then(() => reading.delete(settled));
    return work;
  }

  async function onBoth(change: (index: SearchIndex) => Promise<void>): Promise<void> {
    await Promise.all((pending === null ? [current] : [current, pending]).map(change));
  }

  async function takeOver(): Promise<void> {
    if (pending === null) return;
    const cleanUp = await taken();
    const old = current;
    current = pending;
    pending = null;
    // A search that began on the old one still reads its files.
    await Promise.all(reading);
    await old.close();
    await embedder.close();
    await cleanUp();
  }

  return {
    successor: () =>
      pending === null ? null : { entries: pending.entries, put: pending.put, remove: pending.remove, takeOver },
    embedderId: () => current.embedderId(),
    put: (rows) => onBoth((index) => index.put(rows)),
    remove: (nodeIds) => onBoth((index) => index.remove(nodeIds)),
    search: (...query) => trackRead(current.search(...query)),
    turnTexts: (...ids) => trackRead(current.turnTexts(...ids)),
    termWeights: (...terms) => trackRead(current.termWeights(...terms)),
    entries: () => current.entries(),
    size: () => current.size(),
    optimize: () => onBoth((index) => index.optimize()),
    rest: () => onBoth((index) => index.rest()),
    clear: () => current.clear(),
    async close() {
      await onBoth((index) => index.close());
      await embedder.close();
    },
  };
}
