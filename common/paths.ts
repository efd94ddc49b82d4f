import os from 'node:os';
import path from 'node:path';
import { PLATFORM, type Platform } from './platform.ts';

/** Where everything lives below `COMET_CC_HOME`. Nothing is created here. */
export interface HomePaths {
  readonly home: string;
  readonly configFile: string;
  /** What `comet-cc pause` asked for. */
  readonly pausesFile: string;
  /** What was changed in the settings of editors. */
  readonly editorsFile: string;
  /** Folders that were made outside of the home. */
  readonly foldersFile: string;
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
    editorsFile: at('editors.json'),
    foldersFile: at('folders-made.json'),
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

/** Names directly below the home that are ours; whatever else lies there was put there by somebody else. */
export function homeEntries(paths: HomePaths): string[] {
  const named = Object.values(paths).filter((place) => place.startsWith(paths.home + path.sep));
  const ours = named.map((place) => path.relative(paths.home, place).split(path.sep)[0] as string);
  return [...new Set([...ours, 'schema.json', 'settings-edit.json', 'hooks-edit.json', 'trusted-roots.json'])];
}
