import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { findRegistrations, findTrackedServers, removeRegistrations } from '../../../../install/claude-code/index.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

it('takes comet-cc out of a file of the user, and says how to take it out of one that git tracks', async () => {
  const user = await tempDir();
  const [own, shared, added] = ['own', 'shared', 'added'].map((name) => path.join(user, name)) as [
    string,
    string,
    string,
  ];
  const env = { ...process.env, HOME: user, CLAUDE_CONFIG_DIR: undefined };
  const servers = JSON.stringify({ mcpServers: { memory: { command: 'comet-cc', args: ['mcp'] }, mine: {} } });
  for (const dir of [own, shared, added]) {
    mkdirSync(dir);
    writeFileSync(path.join(dir, '.mcp.json'), dir === added ? servers.replace(',"mine":{}', '') : servers);
    execFileSync('git', ['init', '-q', dir]);
  }
  execFileSync('git', ['-C', shared, 'add', '.mcp.json']);
  writeFileSync(
    path.join(user, '.claude.json'),
    JSON.stringify({ projects: { [own]: {}, [shared]: {}, [added]: {} } }),
  );
  expect((await findRegistrations(env)).map(({ file }) => path.dirname(file))).toEqual([own, added]);
  await removeRegistrations(env);
  expect(JSON.parse(readFileSync(path.join(own, '.mcp.json'), 'utf8'))).toEqual({ mcpServers: { mine: {} } });
  expect(existsSync(path.join(added, '.mcp.json'))).toBe(false);
  expect(readFileSync(path.join(shared, '.mcp.json'), 'utf8')).toBe(servers);
  expect(await findTrackedServers(env)).toEqual([
    `${path.join(shared, '.mcp.json')}: (cd ${shared} && claude mcp remove --scope project memory)`,
  ]);
});
