import { access, constants, lstat, readFile, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { type HomePaths, PLATFORM } from '../../common/paths.ts';
import { isRecord, parseJson } from '../../common/text.ts';
import { homeProblem } from '../../engine/lifecycle/index.ts';

export interface Check {
  readonly id: string;
  /** False for a problem only. */
  readonly ok: boolean;
  readonly state: 'ok' | 'problem' | 'unknown';
  readonly detail: string;
  /** What to do; '' when nothing needs doing. */
  readonly fix: string;
}

export const good = (id: string, detail: string): Check => ({ id, ok: true, state: 'ok', detail, fix: '' });

export function bad(id: string, detail: string, fix: string): Check {
  return { id, ok: false, state: 'problem', detail, fix };
}

export const unknown = (id: string, detail: string): Check => ({ id, ok: true, state: 'unknown', detail, fix: '' });

const LEAST_NODE = [20, 19] as const;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const recent = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  if (recent) return good('node', `Node.js ${version}`);
  return bad('node', `Node.js ${version} is too old`, `install Node.js ${LEAST_NODE.join('.')} or newer`);
}

/** The store's native part is not published for Intel Macs. */
export function checkPlatform(platform: string, arch: string): Check {
  if (platform !== 'darwin' || arch !== 'x64') return good('platform', `${platform} ${arch}`);
  const fix = 'on an Apple silicon Mac install the arm64 build of Node; on an Intel Mac memory is not available';
  return bad('platform', 'LanceDB has no build for Intel Macs: requests pass through, nothing is remembered', fix);
}

/** The home and the directories directly below it must be private. */
export async function checkHome(paths: HomePaths): Promise<Check> {
  const home = await lstat(paths.home).catch(() => null);
  if (home !== null && !home.isDirectory() && !home.isSymbolicLink())
    return bad('home', `${paths.home} is no folder`, 'move it away, or set COMET_CC_HOME to a folder of your own');
  const refusal = home === null ? await getRefusal(path.dirname(paths.home)) : '';
  if (refusal !== '')
    return bad('home', `${paths.home} cannot be created: ${refusal}`, 'set COMET_CC_HOME to a folder of your own');
  const unfit = homeProblem(paths);
  if (unfit !== null) return bad('home', unfit.detail, unfit.fix);
  const folders = [paths.home, paths.certsDir, paths.journalDir, paths.indexDir, paths.logsDir, paths.runDir];
  const doubts: string[] = [];
  for (const folder of folders) {
    const stats = await lstat(folder).catch((error: NodeJS.ErrnoException) => error);
    if (stats instanceof Error && stats.code === 'ENOENT') continue;
    const doubt = folderDoubt(stats);
    const found = doubt === '' ? await getRefusal(folder) : `${folder} ${doubt}`;
    if (found !== '') doubts.push(found);
  }
  const fix = `chmod -R u+rwX,go= ${paths.home}; chown it to yourself if it belongs to another user`;
  if (doubts.length > 0) return bad('home', doubts.join('; '), fix);
  const disk = await statfs(paths.home).catch(() => null);
  if (disk !== null && disk.blocks > 0 && disk.bavail * disk.bsize < 2 ** 20)
    return bad('home', `${paths.home}: no space is left on its disk`, 'free some space, which new memories need');
  return good('home', `${paths.home}${await getUpgrade(paths)}`);
}

/** Why no folder can be made in `dir`, or in the first folder above it that exists; '' where one can. */
async function getRefusal(dir: string): Promise<string> {
  const stats = await stat(dir).catch((error: NodeJS.ErrnoException) => error);
  if (stats instanceof Error) {
    const isBelowOther = stats.code === 'ENOENT' || stats.code === 'ENOTDIR';
    return isBelowOther && dir !== path.dirname(dir) ? getRefusal(path.dirname(dir)) : `${dir}: ${stats.code}`;
  }
  if (!stats.isDirectory()) return `${dir} is no folder`;
  return await access(dir, constants.W_OK | constants.X_OK).then(
    () => '',
    (error: NodeJS.ErrnoException) => `${dir} cannot be written to (${error.code})`,
  );
}

function folderDoubt(stats: Awaited<ReturnType<typeof lstat>> | NodeJS.ErrnoException): string {
  if (stats instanceof Error) return `cannot be inspected (${stats.code})`;
  if (!PLATFORM.hasModes) return '';
  if (stats.isSymbolicLink() || !stats.isDirectory()) return stats.isSymbolicLink() ? '' : 'is no folder';
  if (process.getuid !== undefined && stats.uid !== process.getuid()) return 'belongs to another user';
  return (Number(stats.mode) & 0o077) === 0 ? '' : `is open to others (${(Number(stats.mode) & 0o777).toString(8)})`;
}

/** When the home was upgraded to a newer schema, and where the former files are. */
async function getUpgrade(paths: HomePaths): Promise<string> {
  // No stamp, or none that can be read: the store's check reports that.
  const stamp = parseJson(await readFile(path.join(paths.home, 'schema.json'), 'utf8').catch(() => ''));
  const upgrade = isRecord(stamp) ? stamp['upgrade'] : undefined;
  if (!isRecord(upgrade)) return '';
  return `; upgraded on ${String(upgrade['at']).slice(0, 10)}, former files in ${String(upgrade['backup'])}`;
}
