import { existsSync, readFileSync, realpathSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CometError } from './errors.ts';
import { sha256 } from './text.ts';

/** Where operating systems differ in paths, pipes, signals and permissions. */
export interface Platform {
  /** Files have an owner and a mode; otherwise the permissions of the user's profile protect them. */
  readonly hasModes: boolean;
  /** A directory can be opened and fsynced; otherwise the file system journals names. */
  readonly syncsDirs: boolean;
  /** A connection can be handed to another process. */
  readonly handsOver: boolean;
  /** Maximum bytes of the address of a local listener; null without a limit. */
  readonly longestAddress: number | null;
  /** Address of a listener that only this user can reach: a socket in `dir`, or a pipe named after it. */
  localAddress(dir: string, name: string): string;
  /** How to end the leader of a process group together with its children. */
  endTree(pid: number): { readonly kill: number } | { readonly run: readonly [file: string, ...args: string[]] };
}

const POSIX: Platform = {
  hasModes: true,
  syncsDirs: true,
  handsOver: true,
  // `sun_path` has 104 bytes on macOS, including its terminator, and 108 on Linux.
  longestAddress: 103,
  localAddress: (dir, name) => path.join(dir, `${name}.sock`),
  endTree: (pid) => ({ kill: -pid }),
};

// Only its creator, administrators and the system can write to a pipe without a security descriptor. Windows has no
// signals: a process that is not asked to end over a pipe is terminated, and its children only with /T.
const WINDOWS: Platform = {
  hasModes: false,
  syncsDirs: false,
  handsOver: false,
  longestAddress: null,
  // Windows compares names without case.
  localAddress: (dir, name) => `${PIPES}comet-cc-${sha256(path.win32.resolve(dir).toLowerCase(), 24)}-${name}`,
  endTree: (pid) => ({ run: ['taskkill', '/pid', String(pid), '/T', '/F'] }),
};

const PIPES = '\\\\.\\pipe\\';

export const getPlatform = (name: NodeJS.Platform): Platform => (name === 'win32' ? WINDOWS : POSIX);

export const PLATFORM = getPlatform(process.platform);

/** A pipe is not a file: there is nothing to inspect, restrict or remove. */
export const isPipe = (address: string): boolean => address.startsWith(PIPES);

/** `COMET_CC_HOME`, with `~` where no shell replaced it, else `~/.comet-cc`; absolute. */
export function getHome(env: Readonly<Record<string, string | undefined>>): string {
  return resolveDirectory(env['COMET_CC_HOME'] || '~/.comet-cc');
}

export type HomePaths = Readonly<ReturnType<typeof homePaths>>;

/** Every path below `COMET_CC_HOME`. Nothing is created. */
export function homePaths(home: string, platform: Platform = PLATFORM) {
  const at = (...parts: string[]): string => path.join(home, ...parts);
  return {
    home,
    configFile: at('config.json'),
    pausesFile: at('paused.json'),
    projectsFile: at('projects.json'),
    installsFile: at('installs.json'),
    setupFile: at('setup.json'),
    certsDir: at('certs'),
    journalDir: at('journal'),
    nodesDir: at('memory', 'nodes'),
    briefsDir: at('memory', 'briefs'),
    memoryBackupDir: at('memory', 'backup'),
    snapshotsDir: at('memory', 'snapshots'),
    dreamDir: at('memory', 'dream'),
    factsDir: at('memory', 'facts'),
    ontologyFile: at('ontology.json'),
    ontologyConsentsFile: at('ontologies.json'),
    subagentConsentsFile: at('subagents.json'),
    /** Pages, tasks and the inbox, unless `library.dir` names another folder. */
    libraryDir: at('library'),
    /** What this machine publishes and has received of others; it holds its private key. */
    shareDir: at('share'),
    plansDir: at('plans'),
    ledgerDir: at('ledger'),
    indexDir: at('index'),
    modelsDir: at('models'),
    logsDir: at('logs'),
    runDir: at('run'),
    /** The guard's control socket and the engine's API socket, both 0600 in the 0700 `run/`; on Windows named pipes. */
    guardSocket: platform.localAddress(at('run'), 'guard'),
    engineSocket: platform.localAddress(at('run'), 'engine'),
    proxyTokenFile: at('run', 'proxy-token'),
    markKeyFile: at('run', 'mark-key'),
    /** HMAC key of the dashboard's cookies; it exists once the dashboard was used. */
    uiKeyFile: at('run', 'ui-key'),
    /** Its last port, after the one that was wanted. */
    uiPortFile: at('run', 'ui-port'),
    /** Memories that the dashboard forgets and can still bring back. */
    uiRemovalsFile: at('journal', 'removals.json'),
  };
}

/** Names that earlier versions gave to the records that `installsFile` replaces. */
const OLDER_RECORDS = ['editors.json', 'folders-made.json', 'hooks-edit.json', 'settings-edit.json'];

/** What `ontology init` writes beside the ontology, for editors. */
export const ONTOLOGY_SCHEMA = 'ontology.schema.json';

/** Names directly below the home that comet-cc creates; anything else there belongs to the user. */
export function homeEntries(paths: HomePaths): string[] {
  const named = Object.values(paths).filter((place) => place.startsWith(paths.home + path.sep));
  const ours = named.map((place) => path.relative(paths.home, place).split(path.sep)[0] as string);
  return [...new Set([...ours, 'schema.json', ONTOLOGY_SCHEMA, 'trusted-roots.json', ...OLDER_RECORDS])];
}

const PACKAGE = findPackage(import.meta.dirname);

export const { version: VERSION } = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8')) as {
  version: string;
};

/** A file of the build, also where sources run. */
export const builtFile = (...names: readonly string[]): string => path.join(PACKAGE, 'dist', ...names);

/** The bundler decides how deep below the package this code is. */
function findPackage(folder: string): string {
  const above = path.dirname(folder);
  return existsSync(path.join(folder, 'package.json')) || above === folder ? folder : findPackage(above);
}

/** The Node that runs this, by the name on PATH that an upgrade keeps: Homebrew removes the folder of the old version. */
export function nodeProgram(searchPath: string, node = process.execPath): string {
  const isReal = (dir: string): boolean => path.isAbsolute(dir) && existsSync(dir) && realpathSync(dir) === dir;
  // A folder that is a link may be that of one terminal, as of fnm.
  const dirs = searchPath.split(path.delimiter).filter(isReal);
  const names = dirs.map((dir) => path.join(dir, 'node'));
  return names.find((name) => existsSync(name) && realpathSync(name) === node) ?? node;
}

/** A folder or file, then every folder above it. */
export function ancestors(file: string): string[] {
  const above = [file];
  for (let at = file; path.dirname(at) !== at; at = path.dirname(at)) above.push(path.dirname(at));
  return above;
}

/** `C:\work`, `\\host\share`: absolute where it was written, though not on every system. */
const WINDOWS_PATH = /^(?:[A-Za-z]:[\\/]|\\\\[^\\])/;

/** Whether a directory may name a project: also one of another machine, as transcripts have them. */
export const isDirectoryName = (name: string): boolean => path.isAbsolute(name) || WINDOWS_PATH.test(name);

/** The absolute form of a directory's name; `~` is the user's home, and a path of another system is only tidied. */
export function resolveDirectory(name: string): string {
  // As of a variable of a script that is empty: it would name the current folder.
  if (name === '') throw new CometError('usage', 'expected a folder (got "")');
  if (name === '~' || /^~[\\/]/.test(name)) return path.resolve(os.homedir(), ...name.slice(1).split(/[\\/]/));
  if (path.isAbsolute(name) || !WINDOWS_PATH.test(name)) return path.resolve(name);
  const tidy = path.win32.resolve(name);
  return `${tidy.slice(0, 1).toUpperCase()}${tidy.slice(1)}`;
}
