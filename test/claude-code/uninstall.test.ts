import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { CLAUDE_MISSING, findClaude, QUIET_CLAUDE } from '../helpers/claude.ts';
import { createHomeWithCerts } from '../helpers/cli.ts';

const claude = findClaude();
const NAME = `uninstall takes back what claude mcp add wrote in every scope${claude === null ? `: ${CLAUDE_MISSING}` : ''}`;

it.skipIf(claude === null)(NAME, async () => {
  const home = await createHomeWithCerts(QUIET_CLAUDE);
  try {
    const project = path.join(home.user, 'shop');
    await mkdir(project);
    const add = (scope: string, ...server: string[]): void => {
      const args = ['mcp', 'add', '--scope', scope, ...server];
      execFileSync(claude as string, args, { env: home.env, cwd: project });
    };
    const config = path.join(home.user, '.claude.json');
    const shared = path.join(project, '.mcp.json');
    for (const scope of ['user', 'local', 'project']) add(scope, 'comet-cc', '--', 'comet-cc', 'mcp');
    add('local', 'mine', '--', 'node', 'server.js');
    const read = async () => JSON.parse(await readFile(config, 'utf8'));
    const before = await read();
    expect(before).toMatchObject({ mcpServers: { 'comet-cc': { args: ['mcp'] } } });
    expect(Object.keys(before.projects[project].mcpServers)).toEqual(['comet-cc', 'mine']);
    expect(await readFile(shared, 'utf8')).toContain('comet-cc');

    const { code, stdout } = await home.run(['uninstall', '--yes']);
    expect(code).toBe(0);
    for (const file of [config, shared]) expect(stdout).toContain(`MCP server of comet-cc in ${file}`);
    expect(stdout).toContain('nothing of comet-cc is left');
    const after = await read();
    expect(JSON.stringify(after)).not.toContain('comet-cc');
    expect(Object.keys(after.projects[project].mcpServers)).toEqual(['mine']);
    expect(existsSync(shared)).toBe(false);
  } finally {
    await home.close();
  }
});
