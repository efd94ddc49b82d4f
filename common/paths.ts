import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Where systems differ in paths, pipes, signals and permissions, as their makers document it. */
export interface Platform {
  /** Files have an owner and a mode; elsewhere the rights of the user's profile are relied on. */
  readonly hasModes: boolean;
  /** A directory can be opened and fsynced; elsewhere the file system journals names by itself. */
  readonly syncsDirs: boolean;
  /** A connection can be handed to another process. */
  readonly handsOver: boolean;
  /** Bytes that the address of a local listener may have; null where a name is never too long. */
  readonly longestAddress: number | null;
  /** Address of a listener that only this user reaches: a socket in `dir`, or a pipe named after it. */
  localAddress(dir: string, name: string): string;
  /** How a process that leads a group ends with all it has started. */
  endTree(pid: number, signal: 'SIGTERM' | 'SIGKILL'): TreeEnd;
}

export type TreeEnd = { readonly kill: number } | { readonly run: readonly [file: string, ...args: string[]] };

const POSIX: Platform = {
  hasModes: true,
  syncsDirs: true,
  handsOver: true,
  // macOS keeps 104 bytes of `sun_path`, its end included; Linux 108.
  longestAddress: 103,
  localAddress: (dir, name) => path.join(dir, `${name}.sock`),
  endTree: (pid) => ({ kill: -pid }),
};

// A pipe without a security descriptor can be written to by its maker, administrators and the system only. Windows
// knows no signals: what is not asked to end over a pipe is ended, and its children only if they are ended with it.
const WINDOWS: Platform = {
  hasModes: false,
  syncsDirs: false,
  handsOver: false,
  longestAddress: null,
  localAddress: (dir, name) => `${PIPES}comet-cc-${digest(dir)}-${name}`,
  endTree: (pid) => ({ run: ['taskkill', '/pid', String(pid), '/T', '/F'] }),
};

const PIPES = '\\\\.\\pipe\\';

export function platformOf(name: NodeJS.Platform): Platform {
  return name === 'win32' ? WINDOWS : POSIX;
}

export const PLATFORM = platformOf(process.platform);

/** Not a name on disk: nothing to look at, to tighten or to remove. */
export function isPipe(address: string): boolean {
  return address.startsWith(PIPES);
}

/** Names are compared without case there. Loaded here: it would be a sixth of what a hook takes where no pipes are. */
function digest(dir: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  return createHash('sha256').update(path.win32.resolve(dir).toLowerCase()).digest('hex').slice(0, 24);
}

/** Where everything lives below `COMET_CC_HOME`. Nothing is created here. */
export interface HomePaths {
  readonly home: string;
  readonly configFile: string;
  /** What `comet-cc pause` asked for. */
  readonly pausesFile: string;
  /** Record of what was changed in files of other programs. */
  readonly installsFile: string;
  readonly certsDir: string;
  readonly journalDir: string;
  readonly nodesDir: string;
  readonly briefsDir: string;
  readonly snapshotsDir: string;
  /** What the last dream did, and a change of it under way. */
  readonly dreamDir: string;
  readonly plansDir: string;
  readonly ledgerDir: string;
  readonly indexDir: string;
  /** Packages that the user installs for an embedder, and the models they load. */
  readonly modelsDir: string;
  readonly logsDir: string;
  readonly runDir: string;
  /** The guard's control socket and the engine's API socket, both 0600 in the 0700 `run/`; on Windows named pipes. */
  readonly guardSocket: string;
  readonly engineSocket: string;
  readonly proxyTokenFile: string;
  /** HMAC key of the redaction marks. */
  readonly markKeyFile: string;
}

/** `COMET_CC_HOME`, else `~/.comet-cc`; absolute. */
export function homeOf(env: Readonly<Record<string, string | undefined>>): string {
  return path.resolve(env['COMET_CC_HOME'] || path.join(os.homedir(), '.comet-cc'));
}

export function homePaths(home: string, platform: Platform = PLATFORM): HomePaths {
  const at = (...parts: string[]): string => path.join(home, ...parts);
  return {
    home,
    configFile: at('config.json'),
    pausesFile: at('paused.json'),
    installsFile: at('installs.json'),
    certsDir: at('certs'),
    journalDir: at('journal'),
    nodesDir: at('memory', 'nodes'),
    briefsDir: at('memory', 'briefs'),
    snapshotsDir: at('memory', 'snapshots'),
    dreamDir: at('memory', 'dream'),
    plansDir: at('plans'),
    ledgerDir: at('ledger'),
    indexDir: at('index'),
    modelsDir: at('models'),
    logsDir: at('logs'),
    runDir: at('run'),
    guardSocket: platform.localAddress(at('run'), 'guard'),
    engineSocket: platform.localAddress(at('run'), 'engine'),
    proxyTokenFile: at('run', 'proxy-token'),
    markKeyFile: at('run', 'mark-key'),
  };
}

/** Names that earlier versions gave to the records that `installsFile` replaces. */
const OLDER_RECORDS = ['editors.json', 'folders-made.json', 'hooks-edit.json', 'settings-edit.json'];

/** Names directly below the home that are ours; whatever else lies there was put there by somebody else. */
export function homeEntries(paths: HomePaths): string[] {
  const named = Object.values(paths).filter((place) => place.startsWith(paths.home + path.sep));
  const ours = named.map((place) => path.relative(paths.home, place).split(path.sep)[0] as string);
  return [...new Set([...ours, 'schema.json', 'trusted-roots.json', ...OLDER_RECORDS])];
}

export const VERSION = readVersion(import.meta.dirname);

/** The package is found from `bin/` in a checkout and from `dist/bin/` once built. */
function readVersion(from: string): string {
  for (const up of ['..', '../..']) {
    try {
      const text = readFileSync(path.join(from, up, 'package.json'), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
