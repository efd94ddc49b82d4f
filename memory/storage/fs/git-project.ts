import { readFileSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { LruMap } from '../../../common/lru.ts';
import { isDirectoryName, resolveDirectory } from '../../../common/paths.ts';
import { normalizeRemote, remoteUrl } from '../../model/project.ts';

const CACHED = 500;
const FRESH_MS = 300_000;

/** Project key of a working directory; '' for null and for what is not an absolute path. */
export type ProjectOf = (directory: string | null) => string;

/**
 * Reads the git root by walking up to `.git` and the remote from its config; no git is run.
 * The key is `host/owner/repo` where there is a remote, else the root, else the directory itself. A directory of
 * another system is its own key.
 */
export function createProjectOf(now: () => number): ProjectOf {
  const cache = new LruMap<string, { readonly key: string; readonly atMs: number }>(CACHED);
  return (directory) => {
    if (directory === null || !isDirectoryName(directory) || directory.includes('\0')) return '';
    const cached = cache.get(directory);
    if (cached !== undefined && now() - cached.atMs < FRESH_MS) return cached.key;
    const resolved = resolveDirectory(directory);
    const key = path.isAbsolute(resolved) ? readKey(resolved) : resolved;
    cache.set(directory, { key, atMs: now() });
    return key;
  };
}

function readKey(directory: string): string {
  const found = repositoryOf(directory);
  if (found === null) return directory;
  const remote = normalizeRemote(remoteUrl(readText(path.join(found.common, 'config')) ?? '') ?? '');
  if (remote !== null) return remote;
  return path.basename(found.common) === '.git' ? path.dirname(found.common) : found.top;
}

export interface Repository {
  /** The working tree's uppermost directory. */
  readonly top: string;
  /** Holds `HEAD`: `.git` itself, or where a worktree's or submodule's `.git` file leads. */
  readonly own: string;
  /** Holds `config` and the refs that worktrees share. */
  readonly common: string;
}

/** The repository that an absolute path is in, by walking up to `.git`. */
export function repositoryOf(directory: string): Repository | null {
  for (let at = path.resolve(directory); ; at = path.dirname(at)) {
    const found = gitDirectories(path.join(at, '.git'));
    if (found !== null) return { top: at, ...found };
    if (path.dirname(at) === at) return null;
  }
}

/** The commit that is checked out, 40 or 64 hex digits; '' where there is none or it cannot be read. */
export function checkedOut({ own, common }: Repository): string {
  const head = readText(path.join(own, 'HEAD'))?.trim() ?? '';
  const ref = /^ref: (refs\/[\w./+@-]+)$/.exec(head)?.[1];
  if (ref === undefined) return asCommit(head);
  if (ref.split('/').includes('..')) return '';
  const loose = readText(path.join(own, ref)) ?? readText(path.join(common, ref));
  if (loose !== null) return asCommit(loose.trim());
  const packed = readText(path.join(common, 'packed-refs'))?.split('\n') ?? [];
  return asCommit(packed.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0] ?? '');
}

function asCommit(text: string): string {
  return /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text) ? text : '';
}

function gitDirectories(dotGit: string): Pick<Repository, 'own' | 'common'> | null {
  const stat = statOf(dotGit);
  if (stat?.isDirectory()) return { own: dotGit, common: dotGit };
  if (!stat?.isFile()) return null;
  const pointed = /^gitdir:\s*(.+?)\s*$/m.exec(readText(dotGit) ?? '')?.[1];
  if (pointed === undefined) return null;
  const own = path.resolve(path.dirname(dotGit), pointed);
  const common = readText(path.join(own, 'commondir'))?.trim();
  return { own, common: common === undefined ? own : path.resolve(own, common) };
}

function statOf(file: string): Stats | null {
  try {
    return statSync(file, { throwIfNoEntry: false }) ?? null;
  } catch {
    // An unreadable directory is treated as no repository.
    return null;
  }
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Unreadable and absent mean the same here: the directory itself is the project.
    return null;
  }
}
