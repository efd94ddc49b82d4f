import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { normalizeRemote, remoteUrl } from '../core/project.ts';

const CACHED = 500;
const FRESH_MS = 300_000;

/** Project key of a working directory; '' for null and for what is not an absolute path. */
export type ProjectOf = (directory: string | null) => string;

/**
 * Reads the git root by walking up to `.git` and the remote from its config; no git is run.
 * The key is `host/owner/repo` where there is a remote, else the root, else the directory itself.
 */
export function createProjectOf(now: () => number): ProjectOf {
  const cache = new Map<string, { readonly key: string; readonly atMs: number }>();
  return (directory) => {
    if (directory === null || !path.isAbsolute(directory) || directory.includes('\0')) return '';
    const cached = cache.get(directory);
    if (cached !== undefined && now() - cached.atMs < FRESH_MS) return cached.key;
    const key = readKey(path.resolve(directory));
    cache.delete(directory);
    cache.set(directory, { key, atMs: now() });
    if (cache.size > CACHED) cache.delete(cache.keys().next().value as string);
    return key;
  };
}

function readKey(directory: string): string {
  for (let at = directory; ; at = path.dirname(at)) {
    const common = gitDirectory(path.join(at, '.git'));
    if (common !== null) {
      const remote = normalizeRemote(remoteUrl(readText(path.join(common, 'config')) ?? '') ?? '');
      if (remote !== null) return remote;
      return path.basename(common) === '.git' ? path.dirname(common) : at;
    }
    if (path.dirname(at) === at) return directory;
  }
}

/** The directory that holds `config`: `.git` itself, or where a worktree's or submodule's `.git` file leads. */
function gitDirectory(dotGit: string): string | null {
  const stat = statSync(dotGit, { throwIfNoEntry: false });
  if (stat?.isDirectory()) return dotGit;
  if (!stat?.isFile()) return null;
  const pointed = /^gitdir:\s*(.+?)\s*$/m.exec(readText(dotGit) ?? '')?.[1];
  if (pointed === undefined) return null;
  const own = path.resolve(path.dirname(dotGit), pointed);
  const common = readText(path.join(own, 'commondir'))?.trim();
  return common === undefined ? own : path.resolve(own, common);
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Unreadable and absent mean the same here: the directory itself is the project.
    return null;
  }
}
