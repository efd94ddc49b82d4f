import { createHash } from 'node:crypto';
import { type BigIntStats, constants, realpathSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { unescape as decode } from 'node:querystring';
import { createSemaphore } from '../../../common/async.ts';
import { ensureDir, readFileIfPresent, readSmallFile, replaceFile } from '../../../common/files.ts';
import { LruMap } from '../../../common/map.ts';
import { isDirectoryName, resolveDirectory } from '../../../common/paths.ts';
import { parseJson, trimEnd } from '../../../common/text.ts';
import { EVERYWHERE } from '../../model/node.ts';
import { type FileMark, isProjectPath } from '../../model/turn.ts';
import type { Journal } from '../turn-log.ts';

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

/** What the disk says of a marked file; `unknown` where it cannot or must not be read. */
export type FileState = 'same' | 'changed' | 'deleted' | 'unknown';

/** The projects' own files: only looked at, never written, and never one outside the project or with secrets. */
export type SourceFiles = ReturnType<typeof createSourceFiles>;

/** Reads the user's source files to hash them, and remembers the digest for as long as the file's stamps stay. */
export function createSourceFiles({ now }: { readonly now: () => number }) {
  const read = createReader(now);
  const getCommit = createCommits(now);
  const places = createSemaphore(AT_ONCE);
  let waiting = 0;

  async function content(root: string, file: string): Promise<Content> {
    if (!isProjectPath(file) || waiting >= MOST_WAITING) return { kind: 'none' };
    waiting += 1;
    try {
      return await places.run(() => read(root, file), new AbortController().signal);
    } finally {
      waiting -= 1;
    }
  }

  return {
    /** The project's root for a working directory inside it; null where there is none. */
    getRoot(directory: string | null): string | null {
      if (directory === null || !path.isAbsolute(directory) || directory.includes('\0')) return null;
      const root = getRepository(directory)?.top ?? path.resolve(directory);
      return path.dirname(root) === root ? null : root;
    },
    /** The path inside `root`; null for one that leads out of it. Relative paths start from `directory`. */
    getPlace(file: string, root: string, directory: string): string | null {
      if (file.includes('\0')) return null;
      const place = path.relative(root, path.resolve(directory, file)).split(path.sep).join('/');
      return isProjectPath(place) && !FOREIGN.test(place) ? place : null;
    },
    /** Null where there is no such file now. May take as long as the disk does. */
    async mark(root: string, file: string): Promise<FileMark | null> {
      const loaded = await content(root, file);
      if (loaded.kind === 'missing' || loaded.kind === 'none') return null;
      return { path: file, sha256: loaded.kind === 'digest' ? loaded.sha256 : '', commit: getCommit(root) };
    },
    async compare(root: string, { path: file, sha256 }: FileMark): Promise<FileState> {
      if (sha256.length < 8) return 'unknown';
      const loaded = await content(root, file);
      if (loaded.kind === 'missing') return 'deleted';
      if (loaded.kind !== 'digest') return 'unknown';
      const length = Math.min(sha256.length, DIGEST_HEX);
      return loaded.sha256.slice(0, length) === sha256.slice(0, length) ? 'same' : 'changed';
    },
  };
}

/** The commit that is checked out; asked for each file of a turn. */
function createCommits(now: () => number): (root: string) => string {
  let last = { root: '', commit: '', atMs: Number.NEGATIVE_INFINITY };
  return (root) => {
    if (last.root !== root || Math.abs(now() - last.atMs) >= COMMIT_FRESH_MS) {
      const repository = getRepository(root);
      last = { root, commit: repository === null ? '' : checkedOut(repository).slice(0, COMMIT_HEX), atMs: now() };
    }
    return last.commit;
  };
}

function createReader(now: () => number): (root: string, file: string) => Promise<Content> {
  const cache = new LruMap<string, { readonly stamp: string; readonly sha256: string }>(CACHED);

  async function getDigest(real: string, stats: BigIntStats): Promise<Content> {
    if (!isReadable(stats)) return { kind: 'closed' };
    const entry = cache.get(real);
    if (entry?.stamp === getStamp(stats)) return { kind: 'digest', sha256: entry.sha256 };
    // A pipe that took the file's place meanwhile must not block, nor a link lead away.
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    await using handle = await open(real, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
    const opened = await handle.stat({ bigint: true });
    const sha256 = isReadable(opened) ? await hashed(handle) : null;
    if (sha256 === null) return { kind: 'closed' };
    cache.delete(real);
    if (now() - Number(opened.mtimeMs) >= SETTLED_MS) cache.set(real, { stamp: getStamp(opened), sha256 });
    return { kind: 'digest', sha256 };
  }

  return async (root, file) => {
    const realRoot = await realpath(root).catch(() => null);
    if (realRoot === null) return { kind: 'none' };
    try {
      const real = await realpath(path.join(realRoot, file));
      const inside = path.relative(realRoot, real).split(path.sep).join('/');
      if (!isProjectPath(inside)) return { kind: 'none' };
      const stats = await stat(real, { bigint: true });
      if (!stats.isFile()) return { kind: 'none' };
      return looksSecret(file) || looksSecret(inside) ? { kind: 'closed' } : await getDigest(real, stats);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return { kind: code === 'ENOENT' || code === 'ENOTDIR' ? 'missing' : 'closed' };
    }
  };
}

const isReadable = (stats: BigIntStats): boolean => stats.isFile() && stats.size <= MOST_BYTES;

const getStamp = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(':');

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

const SECRET_FOLDERS = new Set(
  '.ssh .gnupg .gpg .aws .azure .kube .docker .gcloud .password-store .git .comet-cc secrets .secrets'.split(' '),
);
const SECRET_NAMES = [
  /^\.env(?:\.|rc$|$)/,
  /\.env$/,
  /^\.?(?:netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials|dockercfg|vault-token|my\.cnf)$/,
  /^id_(?:rsa|dsa|ecdsa|ed25519)/,
  /\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|age|der|crt|cer|csr|tfstate|tfvars)(?:\.|$)/,
  /(?:^|[._-])(?:secrets?|credentials?|passwords?|passwd|shadow|service[_-]?account|tokens?)(?:[._-]|$)/,
];
/** `tokens.ts` is code about tokens, `tokens.json` may hold some. */
const CODE =
  /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|swift|c|cc|cpp|h|hpp|cs|php|scala|ex|exs|vue|svelte|md|rst|css|html)$/;
const EXAMPLE = /(?:^|[._-])(?:example|sample|template|dist)(?:\.|$)/;

/** Whether a file's place or name says that it may hold secrets: such a file is never opened, not even to hash it. */
export function looksSecret(path: string): boolean {
  const parts = path.toLowerCase().split('/');
  const name = parts.pop() ?? '';
  if (parts.some((part) => SECRET_FOLDERS.has(part))) return true;
  if (CODE.test(name) || EXAMPLE.test(name)) return false;
  return SECRET_NAMES.some((pattern) => pattern.test(name));
}

/**
 * `host/owner/repo` of a git remote, the same for ssh, https and scp-like forms, without credentials, port or
 * `.git`; null for a remote that is a path of this machine.
 */
export function normalizeRemote(url: string): string | null {
  const text = url.trim();
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  if (isUrl && (!URL.canParse(text) || /^file:/i.test(text))) return null;
  const { hostname, pathname } = isUrl ? new URL(text) : { hostname: '', pathname: '' };
  // `user@host:path`; a single letter before the colon is a Windows drive.
  const scp = /^(?:[^@/\s]+@)?([^:/\s]{2,}):(?!\/\/)(.+)$/.exec(isUrl ? '' : text);
  const [, host = hostname, place = decode(pathname)] = scp ?? [];
  const repo = trimEnd(place.replace(/^\/+/, ''), '/').replace(/\.git$/i, '');
  return host === '' || repo === '' ? null : `${host}/${repo}`.toLowerCase();
}

/** The url of `origin` in the text of a git config, else of the first remote, else null. */
export function remoteUrl(config: string): string | null {
  let remote: string | null = null;
  const remotes = new Map<string, string>();
  for (const line of config.split(/\r?\n/)) {
    const section = /^\s*\[([^\]]*)\]/.exec(line);
    if (section !== null) remote = /^remote\s+"(.+)"$/.exec((section[1] ?? '').trim())?.[1] ?? null;
    const url = /^url\s*=\s*(\S.*)$/.exec(line.trim())?.[1];
    if (remote !== null && url !== undefined && !remotes.has(remote))
      remotes.set(remote, url.replace(/^"(.*)"$/, '$1'));
  }
  return remotes.get('origin') ?? [...remotes.values()][0] ?? null;
}

const KEYS_CACHED = 500;
const FRESH_MS = 300_000;

/** Project key of a working directory; '' for null and for what is not an absolute path. */
export type ProjectOf = (directory: string | null) => string;

/** Git directories by the remote, folders by the absolute path, whose project they joined. */
type RemoteFolders = Readonly<Record<string, readonly string[]>>;

const parseFolders = (text: string | null): RemoteFolders => (parseJson(text ?? '') ?? {}) as RemoteFolders;

export type JoinedFolders = ReturnType<typeof openJoinedFolders>;

/**
 * Folders that the user let join the project of their remote, as a `.git` that came with an archive may name any remote,
 * or that of another folder, as after a move.
 */
export function openJoinedFolders(file: string) {
  let read: { readonly stamp: string; readonly joined: RemoteFolders } = { stamp: '', joined: {} };

  function load(): typeof read {
    const stats = getStat(file);
    const stamp = stats === null ? '' : `${stats.mtimeMs} ${stats.size}`;
    if (stamp !== read.stamp) read = { stamp, joined: parseFolders(readText(file)) };
    return read;
  }

  /** The project of a folder by its path: that of the folder which it was before, where the user said so. */
  function ofPath(folder: string): string {
    const entries = Object.entries(load().joined);
    return entries.findLast(([at, folders]) => path.isAbsolute(at) && folders.includes(folder))?.[0] ?? folder;
  }

  return {
    exists: (): boolean => getStat(file) !== null,
    /** Another one after each change. */
    stamp: (): string => load().stamp,
    /** Until the file is written for the first time, every folder: those in use are found meanwhile. */
    isJoined: ({ common }: Pick<Repository, 'common'>, remote: string): boolean =>
      load().stamp === '' || load().joined[remote]?.includes(common) === true,
    ofPath,
    /** To be added where `directory` was `before`, which may be gone: a folder above it is another project. */
    moved: (before: string, directory: string) => ({ remote: ofPath(before), common: getProjectFolder(directory) }),
    all: (): RemoteFolders => load().joined,
    /** All that a folder joined. */
    joinedBy(directory: string) {
      const own = [getRepository(directory)?.common, getProjectFolder(directory)];
      return Object.entries(load().joined).flatMap(([remote, folders]) =>
        folders.filter((common) => own.includes(common)).map((common) => ({ remote, common })),
      );
    },
    /** @param isJoined  false: they leave what they joined. @throws CometError `unsafe_file`, or the error of the disk */
    async add(repositories: readonly { readonly remote: string; readonly common: string }[], isJoined = true) {
      await ensureDir(path.dirname(file));
      for (;;) {
        const before = await readFileIfPresent(file);
        const joined: Record<string, readonly string[]> = { ...parseFolders(before) };
        for (const { remote, common } of repositories) {
          const others = joined[remote]?.filter((each) => each !== common) ?? [];
          // Of two that a folder joined by its path the last one counts.
          if (isJoined || others.length === 0) delete joined[remote];
          if (isJoined) joined[remote] = [...others, common];
          else if (others.length > 0) joined[remote] = others;
        }
        // Another command may have changed it meanwhile.
        if (await replaceFile(file, before, `${JSON.stringify(joined, null, 2)}\n`)) return;
      }
    },
  };
}

/** Folders in which an earlier version worked keep the project that it gave them. */
export async function joinEarlierFolders(journal: Journal, joined: JoinedFolders): Promise<void> {
  const repositories = new Map<string, { readonly remote: string; readonly common: string }>();
  for (const sessionId of await journal.sessions()) {
    for (const { projectDir, project } of await journal.read(sessionId)) {
      if (projectDir === null || !path.isAbsolute(projectDir) || repositories.has(projectDir)) continue;
      const own = getRemote(projectDir);
      if (own?.remote === project) repositories.set(projectDir, own);
    }
  }
  await joined.add([...repositories.values()]);
}

export function getRemote(directory: string): (Repository & { readonly remote: string }) | null {
  const repository = getRepository(directory);
  if (repository === null) return null;
  const remote = normalizeRemote(remoteUrl(readText(path.join(repository.shared, 'config')) ?? '') ?? '');
  return remote === null ? null : { ...repository, remote };
}

/**
 * Reads the git root by walking up to `.git` and the remote from its config; no git is run.
 * The key is `host/owner/repo` where there is a remote, else the root, else the directory itself. A directory of
 * another system is its own key.
 * @param joined  the folders that may have the project of their remote; all without it
 */
export function createProjectOf(now: () => number, joined: JoinedFolders | null = null): ProjectOf {
  const cache = new LruMap<string, { readonly key: string; readonly atMs: number; readonly stamp: string }>(
    KEYS_CACHED,
  );
  return (directory) => {
    if (directory === EVERYWHERE) return EVERYWHERE;
    if (directory === null || !isDirectoryName(directory) || directory.includes('\0')) return '';
    const cached = cache.get(directory);
    const stamp = joined?.stamp() ?? '';
    if (cached !== undefined && cached.stamp === stamp && now() - cached.atMs < FRESH_MS) return cached.key;
    const resolved = resolveDirectory(directory);
    const key = path.isAbsolute(resolved) ? readKey(resolved, joined) : resolved;
    cache.set(directory, { key, atMs: now(), stamp });
    return key;
  };
}

function readKey(directory: string, joined: JoinedFolders | null): string {
  const remote = getRemote(directory);
  if (remote !== null && (joined === null || joined.isJoined(remote, remote.remote))) return remote.remote;
  const folder = getProjectFolder(directory);
  return joined?.ofPath(folder) ?? folder;
}

/** The folder by whose path a project without a remote is known. */
function getProjectFolder(directory: string): string {
  const repository = getRepository(directory);
  if (repository === null) return directory;
  return path.basename(repository.common) === '.git' ? path.dirname(repository.common) : repository.top;
}

export interface Repository {
  /** The working tree's uppermost directory. */
  readonly top: string;
  /** Holds `HEAD`: `.git` itself, or where a worktree's or submodule's `.git` file leads. */
  readonly own: string;
  /** Holds `config` and the refs that worktrees share. */
  readonly shared: string;
  /** `shared`, by which the folder is known; a `.git` file where the directory that it names does not name it too. */
  readonly common: string;
}

/** The repository that an absolute path is in, by walking up to `.git`. */
export function getRepository(directory: string): Repository | null {
  for (let at = path.resolve(directory); ; at = path.dirname(at)) {
    const directories = gitDirectories(path.join(at, '.git'));
    if (directories !== null) return { top: at, ...directories };
    if (path.dirname(at) === at) return null;
  }
}

/** The commit that is checked out, 40 or 64 hex digits; '' where there is none or it cannot be read. */
export function checkedOut({ own, shared }: Repository): string {
  const head = readText(path.join(own, 'HEAD'))?.trim() ?? '';
  const ref = /^ref: (refs\/[\w./+@-]+)$/.exec(head)?.[1];
  if (ref === undefined) return asCommit(head);
  if (ref.split('/').includes('..')) return '';
  const loose = readText(path.join(own, ref)) ?? readText(path.join(shared, ref));
  if (loose !== null) return asCommit(loose.trim());
  const packed = readText(path.join(shared, 'packed-refs'))?.split('\n') ?? [];
  return asCommit(packed.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0] ?? '');
}

const asCommit = (text: string): string => (/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text) ? text : '');

function gitDirectories(dotGit: string): Omit<Repository, 'top'> | null {
  const stat = getStat(dotGit);
  if (stat?.isDirectory()) return { own: dotGit, shared: dotGit, common: dotGit };
  if (!stat?.isFile()) return null;
  const pointed = /^gitdir:(.+)$/m.exec(readText(dotGit) ?? '')?.[1]?.trim();
  if (pointed === undefined) return null;
  const own = path.resolve(path.dirname(dotGit), pointed);
  const common = readText(path.join(own, 'commondir'))?.trim();
  const shared = common === undefined ? own : path.resolve(own, common);
  return { own, shared, common: leadsBack(dotGit, own, shared) ? shared : dotGit };
}

/** A `.git` file that came with an archive may name the directory of any repository. */
function leadsBack(dotGit: string, own: string, shared: string): boolean {
  const isSame = (one: string, other: string): boolean => realpathSync(one) === realpathSync(other);
  try {
    if (own !== shared && !isSame(path.dirname(own), path.join(shared, 'worktrees'))) return false;
    const config = readText(path.join(own, 'config')) ?? '';
    const tree = own === shared ? /^[ \t]*worktree[ \t]*=(.+)$/m.exec(config)?.[1] : readText(path.join(own, 'gitdir'));
    return isSame(path.resolve(own, tree?.trim() ?? ''), own === shared ? path.dirname(dotGit) : dotGit);
  } catch {
    return false; // One of them is not there.
  }
}

const getStat = (file: string): Stats | null => orNull(() => statSync(file, { throwIfNoEntry: false }) ?? null);
const readText = (file: string): string | null => orNull(() => readSmallFile(file));

/** Unreadable and absent mean the same: no repository is there, and the directory itself is the project. */
function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
