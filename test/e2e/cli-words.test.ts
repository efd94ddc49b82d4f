import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createContext } from '../../bin/context.ts';
import { openProgram } from '../../bin/program.ts';
import { createTestHome, type TestHome } from '../helpers/cli.ts';
import { unpackHome } from '../helpers/earlier-homes.ts';
import { CODES, getProse, INSIDE } from '../helpers/inside-words.ts';

const SESSION = '5b0c7c52-6f5e-4c7e-9d55-000000000002';
/** Of a memory that a later one replaces, of an external one, and of one that links others. */
const [OLD, OUTSIDE, GROUP] = ['ce848a', '29a53c', '6e5943'];

/** Each prints what it has of a home with content. */
const SHOWN = [
  ...['config', 'config --all', 'env', 'explain', 'explain --list', 'savings', 'flush', 'completion bash'],
  ...[
    'config get llm',
    'service status',
    'hooks status',
    'editor status',
    'statusline',
    'project ls',
    'pause',
    'resume',
  ],
  ...['memory ls', 'memory ls --all', 'memory ls --quarantine', 'memory search staging cache port', 'memory about'],
  ...[`memory show ${OLD}`, `memory show ${OUTSIDE} --conversation`, `memory show ${GROUP} --links`],
  ...[`memory why ${OLD}`, `memory why ${OUTSIDE}`, 'memory why last', `memory related ${GROUP}`, 'memory stats'],
  ...['memory digest --all --since 900d', 'memory rollback'],
  ...[
    'memory reindex',
    'session ls',
    `session show ${SESSION}`,
    `session brief ${SESSION}`,
    `session close ${SESSION}`,
  ],
  ...[`session diff ${SESSION} ${SESSION.replace(/2$/, '3')}`, `memory restore ${SESSION}`, 'dream --dry-run', 'dream'],
  ...[
    'library build --dry-run',
    'library build --no-import',
    'library lint',
    'library open',
    'library link',
    'library unlink',
  ],
  ...['todo --all', 'todo add renew the key by Friday', 'todo', 'decisions --all', 'decisions add deploy on Fridays'],
  ...['todo done 1', 'decisions', 'decisions drop 1', 'todo drop 18df68', 'memory import notes.md'],
  ...['task add Ask Mara --at 2099-01-04', 'task add Renew', 'task ls', 'task show 1', 'task edit 1 --priority high'],
  ...['task block 1', 'task reopen 1', 'task done 1', 'task rm 1 --yes', 'inbox'],
  ...['facts ls --all', 'facts about me', 'facts why 1', 'facts forget 1 --yes', 'ontology show', 'ontology check'],
  ...['ontology init', 'ontology allow . --yes', 'facts allow . --yes', 'ontology propose --all'],
  ...['memory import claude --dry-run', `memory forget --session ${SESSION} --yes`, 'start', 'restart', 'run -- true'],
  ...['install-ca --settings --yes', 'uninstall-ca', 'hooks install', 'hooks uninstall', 'editor install vscode --yes'],
  ...['editor uninstall vscode', 'service install', 'service uninstall', 'setup --yes', 'setup --undo --yes'],
  ...[
    'statusline install',
    'statusline uninstall',
    'config set logLevel warn',
    'logs',
    'ui --no-open',
    'bench',
    'project leave .',
    'project join . --yes',
  ],
  ...['share init bucket --scope me --yes', 'share preview', 'share push', 'share pull'],
];
/** They print the whole id of what they changed, for a script, or of a broken section, as its file has it. */
const WITH_IDS = [
  ...[
    'status',
    'doctor',
    'share status',
    `memory pin ${OLD}`,
    `memory unpin ${OLD}`,
    `memory edit ${OLD} --set importance=HIGH`,
  ],
  ...[`memory rm ${GROUP} --yes`, 'share leave --yes', 'stop', 'uninstall --yes'],
];
/** MCP answers Claude and not a person; an export is data; the demo quotes what Claude is given; two need another machine. They have tests of their own. */
const ELSEWHERE = ['mcp', 'demo', 'memory export', 'share join', 'share trust'];

let home: TestHome;
let project: string;

beforeAll(async () => {
  home = await createTestHome({ COMET_CC_LLM: 'local', EDITOR: 'true' });
  unpackHome('d6206c7-rich', home.home);
  project = path.join(home.user, 'shop');
  mkdirSync(project);
  execFileSync('git', ['init', '-q', project]);
  execFileSync('git', ['-C', project, 'remote', 'add', 'origin', 'https://git.example/dana/shop.git']);
  writeFileSync(path.join(project, 'notes.md'), '# Notes\n\nThe port is 7411.\n');
  const ontology = {
    version: '0.2',
    concepts: { 'Shop.Ware': { label: 'goods', persistence_class: 'session', salience_weight: 1 } },
  };
  mkdirSync(path.join(project, '.comet-cc'));
  writeFileSync(path.join(project, '.comet-cc', 'ontology.json'), JSON.stringify(ontology));
  const bin = path.join(path.dirname(home.user), 'bin');
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'systemctl'), '#!/bin/sh\nexit 0\n', { mode: 0o700 });
  home.env['PATH'] = `${bin}:${process.env['PATH']}`;
  const agents = path.join(project, '.claude', 'agents');
  mkdirSync(agents, { recursive: true });
  writeFileSync(path.join(agents, 'keeper.md'), '---\nname: keeper\nmemory: [Project.]\n---\nYou keep the shop.\n');
  mkdirSync(path.join(home.user, '.config', 'Code', 'User'), { recursive: true });
  await home.run(['project', 'join', project, '--yes']);
  const factsDir = path.join(home.home, 'memory', 'facts');
  mkdirSync(factsDir, { recursive: true, mode: 0o700 });
  writeFileSync(path.join(factsDir, 'user.md'), '---\nscope: user\n---\n- Person.Language: Polish\n');
  await home.json(['start', '--json']);
  await home.run(['flush']);
});

afterAll(async () => {
  await home.close();
  rmSync(path.join(path.dirname(home.user), 'bin'), { recursive: true, force: true });
});

async function output(command: string): Promise<string> {
  const { stdout, stderr, code } = await home.run(command.split(' '), { cwd: project });
  expect({ command, code, text: stdout + stderr }).toMatchObject({ code: command === 'doctor' ? 1 : 0 });
  return getProse(stdout + stderr);
}

describe('what a command prints is in words that users know', () => {
  it.each(SHOWN)('%s', async (command) => {
    const text = await output(command);
    expect(text).not.toMatch(INSIDE);
    expect(text).not.toMatch(CODES);
  });

  it.each(WITH_IDS)('%s', async (command) => {
    expect(await output(command)).not.toMatch(INSIDE);
  });

  it('and no command is left out', async () => {
    const leaves = (command: Command, name: string): string[] =>
      command.commands.length === 0
        ? [name]
        : command.commands.flatMap((each) => leaves(each, `${name} ${each.name()}`.trim()));
    const run = [...SHOWN, ...WITH_IDS, ...ELSEWHERE];
    const missing = leaves(await openProgram(createContext()), '').filter(
      (name) => !run.some((each) => each === name || each.startsWith(`${name} `)),
    );
    expect(missing).toEqual([]);
  });
});
