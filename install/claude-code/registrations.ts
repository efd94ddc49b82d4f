import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { JSONPath } from 'jsonc-parser';
import { readFileIfPresent, writeFileAtomic } from '../../common/files.ts';
import { isRecord, parseJson, toRecord } from '../../common/text.ts';
import { resolveFile } from '../edit-file.ts';
import { getValueAt, pruneAt, removeAt } from '../json-text.ts';
import { claudeDirectory } from './settings-file.ts';

/** Ends the command line of an MCP server of comet-cc, whatever starts it. */
const OWN_SERVER = /comet-cc(?:\.js|\.cmd|@\S{1,200})? mcp$/;

/** A file of Claude Code, and its text without what is comet-cc's in it. */
interface Registration {
  readonly what: string;
  readonly file: string;
  readonly after: string | null;
}

/**
 * What `claude mcp add` and `claude plugin` wrote for comet-cc; `after` null: all of it is of comet-cc. Without
 * the files that git tracks: they are others' too.
 */
export async function findRegistrations(env: NodeJS.ProcessEnv): Promise<Registration[]> {
  const config = configFile(env);
  const below = (await projectDirs(env)).map((dir): JSONPath => ['projects', dir]);
  const at = (...parts: string[]): string => path.join(claudeDirectory(env), 'plugins', ...parts);
  const [server, marketplace, plugin] = ['MCP server', 'marketplace', 'plugin'];
  const edits = [
    await planned(server, config, (text) => withoutServers(text, [[], ...below])),
    ...(await projectServers(env)).map((each) => (isTracked(each.file) ? null : each)),
    await planned(marketplace, at('known_marketplaces.json'), (text) => removeAt(text, ['comet-cc'])),
    await planned(plugin, at('installed_plugins.json'), (text) => removeAt(text, ['plugins', 'comet-cc@comet-cc'])),
    ...[at('cache', 'comet-cc'), at('data', 'comet-cc-comet-cc'), at('marketplaces', 'comet-cc')].flatMap((file) =>
      existsSync(file) ? [{ what: plugin, file, after: null }] : [],
    ),
  ];
  return edits.filter((each) => each !== null);
}

/** For each `.mcp.json` that git tracks and that starts comet-cc, the command that takes it out. */
export async function findTrackedServers(env: NodeJS.ProcessEnv): Promise<string[]> {
  const tracked = (await projectServers(env)).filter(({ file }) => isTracked(file));
  const commands = tracked.map(async ({ file }) => {
    const names = ownServers(await getText(file), ['mcpServers']);
    const remove = names.map((name) => `claude mcp remove --scope project ${name}`).join(' && ');
    return `${file}: (cd ${path.dirname(file)} && ${remove})`;
  });
  return await Promise.all(commands);
}

async function projectServers(env: NodeJS.ProcessEnv): Promise<Registration[]> {
  const edits = (await projectDirs(env)).map((dir) =>
    planned('MCP server', path.join(dir, '.mcp.json'), (text) => withoutServers(text, [[]])),
  );
  return (await Promise.all(edits)).flatMap((each) => {
    if (each === null) return [];
    // `claude mcp add` made a file that had nothing else in it.
    return Object.keys(toRecord(parseJson(each.after ?? ''))).length === 0 ? [{ ...each, after: null }] : [each];
  });
}

function configFile(env: NodeJS.ProcessEnv): string {
  return path.join(env['CLAUDE_CONFIG_DIR'] || env['HOME'] || os.homedir(), '.claude.json');
}

async function projectDirs(env: NodeJS.ProcessEnv): Promise<string[]> {
  return Object.keys(toRecord(toRecord(parseJson(await getText(configFile(env))))['projects']));
}

function isTracked(file: string): boolean {
  const listed = spawnSync('git', ['ls-files', '--error-unmatch', path.basename(file)], { cwd: path.dirname(file) });
  return listed.status === 0;
}

export async function removeRegistrations(env: NodeJS.ProcessEnv): Promise<void> {
  for (const { file, after } of await findRegistrations(env)) {
    if (after === null) await rm(file, { recursive: true });
    else await writeFileAtomic(file, after, { mode: (await stat(file)).mode & 0o777 });
  }
}

async function planned(what: string, name: string, edit: (text: string) => string): Promise<Registration | null> {
  const file = await resolveFile(name);
  const text = await getText(file);
  const after = isRecord(parseJson(text)) ? edit(text) : text;
  return after === text ? null : { what, file, after };
}

function withoutServers(text: string, places: readonly JSONPath[]): string {
  let edited = text;
  for (const place of places) {
    const servers = [...place, 'mcpServers'];
    for (const name of ownServers(edited, servers)) edited = removeAt(edited, [...servers, name]);
  }
  return edited === text ? text : pruneAt(edited, ['mcpServers'], '');
}

/** Names of the servers that start comet-cc. */
function ownServers(text: string, place: JSONPath): string[] {
  return Object.entries(toRecord(getValueAt(text, place))).flatMap(([name, server]) => {
    const { command = '', args } = toRecord(server);
    return OWN_SERVER.test([command, ...(Array.isArray(args) ? args : [])].join(' ')) ? [name] : [];
  });
}

async function getText(file: string): Promise<string> {
  return (await readFileIfPresent(file).catch(() => null)) ?? '';
}
