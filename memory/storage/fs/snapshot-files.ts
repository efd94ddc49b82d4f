import { readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { getOnly } from '../../../common/errors.ts';
import { createExclusive, writeFileAtomic } from '../../../common/files.ts';
import { openDir } from './file-cache.ts';

const ENDING = '.jsonl.gz';
const NAME = /^(\d{8}T\d{9}Z)-([a-z]+)-[0-9a-f]{6}$/;

/** What we do by ourselves night after night must not push out what a person did. */
const OURS = 'consolidate';
const MOST_OURS = 5;

export interface SnapshotFilesOptions {
  readonly dir: string;
  /** Maximum number of snapshots; the oldest is removed. */
  readonly most: number;
  readonly now: () => number;
  readonly randomHex: () => string;
}

export interface SnapshotInfo {
  readonly id: string;
  readonly at: string;
  /** What was about to happen: `edit`, `rm`, `import`, `rollback` or `consolidate`. */
  readonly reason: string;
  readonly bytes: number;
}

/** Memory as it was before a change, a bounded number of times. */
export type Snapshots = Awaited<ReturnType<typeof openSnapshotFiles>>;

/** One compressed file for each snapshot: `20261121T101500000Z-edit-a1b2c3.jsonl.gz`. */
export async function openSnapshotFiles({ dir, most, now, randomHex }: SnapshotFilesOptions) {
  await openDir(dir);
  const getFile = (id: string): string => path.join(dir, `${id}${ENDING}`);

  /** Newest first. */
  async function ids(): Promise<string[]> {
    const files = (await readdir(dir)).filter((name) => name.endsWith(ENDING));
    const names = files.map((name) => name.slice(0, -ENDING.length)).filter((name) => NAME.test(name));
    return names.sort().reverse();
  }

  async function readSnapshot(id: string): Promise<string> {
    return (await promisify(gunzip)(await readFile(getFile(id)))).toString('utf8');
  }

  async function info(id: string): Promise<SnapshotInfo> {
    const [, stamp = '', reason = ''] = NAME.exec(id) ?? [];
    const at = stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/, '$1-$2-$3T$4:$5:$6.$7Z');
    return { id, at, reason, bytes: (await stat(getFile(id))).size };
  }

  return {
    /** Newest first. */
    list: async (): Promise<readonly SnapshotInfo[]> => Promise.all((await ids()).map(info)),
    async write(reason: string, text: string): Promise<SnapshotInfo> {
      const bytes = await promisify(gzip)(text);
      const stamp = new Date(now()).toISOString().replace(/[-:.]/g, '');
      for (;;) {
        const id = `${stamp}-${reason}-${randomHex().slice(0, 6)}`;
        if (!(await createExclusive(getFile(id), bytes))) continue;
        const others = (await ids()).filter((each) => each !== id);
        const own = others.filter((each) => NAME.exec(each)?.[2] === OURS);
        const old = new Set([...others.slice(most - 1), ...own.slice(MOST_OURS - (reason === OURS ? 1 : 0))]);
        for (const each of old) await rm(getFile(each), { force: true });
        return info(id);
      }
    },
    /** @throws CometError `not_found` */
    async read(prefix: string): Promise<string> {
      const none = `no snapshot begins with "${prefix}"; comet-cc memory rollback lists them`;
      const matches = (await ids()).filter((id) => id.startsWith(prefix));
      return readSnapshot(getOnly(matches, none, `"${prefix}" fits ${matches.length} snapshots; give more of it`));
    },
    /** Passes each through `change`; what comes back takes its place, and nothing of what was there stays. */
    async rewrite(change: (text: string) => string | Promise<string>): Promise<void> {
      for (const id of await ids()) {
        const before = readSnapshot(id);
        // A record that cannot be read (of another version) cannot be cleaned, and might keep what was removed.
        const after = await before.then(change).catch(() => null);
        if (after === null) await rm(getFile(id), { force: true });
        else if (after !== (await before)) await writeFileAtomic(getFile(id), await promisify(gzip)(after));
      }
    },
  };
}
