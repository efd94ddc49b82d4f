import { createHash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { createSemaphore } from '../../../common/async.ts';
import { LruMap } from '../../../common/lru.ts';
import { isProjectPath } from '../../model/file-link.ts';
import type { SourceFiles } from '../project-files.ts';
import { looksSecret } from '../secret-path.ts';
import { checkedOut, repositoryOf } from './git-project.ts';

/** Generated and recorded files of megabytes are no source that anybody reads. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Of the threads that all file work of the process shares: a disk that hangs must leave some to the journal. */
const AT_ONCE = 2;
/** With more than this under way the disk hangs, and nothing is asked of it until it has answered. */
const MOST_WAITING = 2_000;
const CACHED = 5_000;
/** A file written so lately may change again without its time stamp changing. */
const SETTLED_MS = 2_000;
const COMMIT_FRESH_MS = 500;
const DIGEST_HEX = 16;
const COMMIT_HEX = 12;
/** Directories inside a project that hold other people's files. */
const FOREIGN = /(^|\/)(node_modules|site-packages|\.venv|bower_components|\.git)(\/|$)/;

type Content =
  | { readonly kind: 'digest'; readonly sha256: string }
  /** A file, but a secret one, too large, or not to be read. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'missing' }
  /** No regular file, outside the project, or the disk does not say. */
  | { readonly kind: 'none' };

interface Cached {
  readonly stamp: string;
  readonly sha256: string;
}

export interface SourceFilesOptions {
  readonly now: () => number;
}

/** Reads the user's source files to hash them, and remembers the digest for as long as the file's stamps stay. */
export function createSourceFiles({ now }: SourceFilesOptions): SourceFiles {
  const read = createReader(now);
  const commitOf = createCommits(now);
  const places = createSemaphore(AT_ONCE);
  const never = new AbortController().signal;
  let waiting = 0;

  async function content(root: string, file: string): Promise<Content> {
    if (!isProjectPath(file) || waiting >= MOST_WAITING) return { kind: 'none' };
    waiting += 1;
    try {
      return await places.run(() => read(root, file), never);
    } finally {
      waiting -= 1;
    }
  }

  return {
    rootOf(directory) {
      if (directory === null || !path.isAbsolute(directory) || directory.includes('\0')) return null;
      const root = repositoryOf(directory)?.top ?? path.resolve(directory);
      return path.dirname(root) === root ? null : root;
    },
    placeOf(file, root, directory) {
      if (file.includes('\0')) return null;
      const place = path.relative(root, path.resolve(directory, file)).split(path.sep).join('/');
      return isProjectPath(place) && !FOREIGN.test(place) ? place : null;
    },
    async mark(root, file) {
      const found = await content(root, file);
      if (found.kind === 'missing' || found.kind === 'none') return null;
      return { path: file, sha256: found.kind === 'digest' ? found.sha256 : '', commit: commitOf(root) };
    },
    async compare(root, { path: file, sha256 }) {
      if (sha256.length < 8) return 'unknown';
      const found = await content(root, file);
      if (found.kind === 'missing') return 'deleted';
      if (found.kind !== 'digest') return 'unknown';
      const length = Math.min(sha256.length, DIGEST_HEX);
      return found.sha256.slice(0, length) === sha256.slice(0, length) ? 'same' : 'changed';
    },
  };
}

/** The commit that is checked out; asked for each file of a turn. */
function createCommits(now: () => number): (root: string) => string {
  let last = { root: '', commit: '', atMs: Number.NEGATIVE_INFINITY };
  return (root) => {
    if (last.root !== root || Math.abs(now() - last.atMs) >= COMMIT_FRESH_MS) {
      const repository = repositoryOf(root);
      const commit = repository === null ? '' : checkedOut(repository).slice(0, COMMIT_HEX);
      last = { root, commit, atMs: now() };
    }
    return last.commit;
  };
}

function createReader(now: () => number): (root: string, file: string) => Promise<Content> {
  const cache = new LruMap<string, Cached>(CACHED);

  async function read(root: string, file: string): Promise<Content> {
    const realRoot = await realpath(root).catch(() => null);
    if (realRoot === null) return { kind: 'none' };
    try {
      const real = await realpath(path.join(realRoot, file));
      const inside = path.relative(realRoot, real).split(path.sep).join('/');
      if (!isProjectPath(inside)) return { kind: 'none' };
      const found = await stat(real, { bigint: true });
      if (!found.isFile()) return { kind: 'none' };
      return looksSecret(file) || looksSecret(inside) ? { kind: 'closed' } : await digestOf(real, found);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return { kind: code === 'ENOENT' || code === 'ENOTDIR' ? 'missing' : 'closed' };
    }
  }

  async function digestOf(real: string, found: BigIntStats): Promise<Content> {
    if (!isReadable(found)) return { kind: 'closed' };
    const known = cache.get(real);
    if (known?.stamp === stampOf(found)) return { kind: 'digest', sha256: known.sha256 };
    // A pipe that took the file's place meanwhile must not block, nor a link lead away.
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    const handle = await open(real, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
    try {
      const opened = await handle.stat({ bigint: true });
      const sha256 = isReadable(opened) ? await hashed(handle) : null;
      if (sha256 === null) return { kind: 'closed' };
      remember(real, opened, sha256);
      return { kind: 'digest', sha256 };
    } finally {
      await handle.close();
    }
  }

  function remember(real: string, found: BigIntStats, sha256: string): void {
    cache.delete(real);
    if (now() - Number(found.mtimeMs) < SETTLED_MS) return;
    cache.set(real, { stamp: stampOf(found), sha256 });
  }

  return read;
}

function isReadable(found: BigIntStats): boolean {
  return found.isFile() && found.size <= MOST_BYTES;
}

function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(':');
}

/** Null for a file that grew beyond the cap while it was read. */
async function hashed(handle: FileHandle): Promise<string | null> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of handle.createReadStream({ autoClose: false, start: 0 }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return null;
    hash.update(chunk);
  }
  return hash.digest('hex').slice(0, DIGEST_HEX);
}
