import { chmod, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { homeEntries, homePaths } from '../../common/paths.ts';
import { CLI, createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { createLiveRig, type LiveRig, longTalk, openTerminal } from '../helpers/live-rig.ts';
import { readFolder } from '../helpers/temp-dir.ts';
import { hasTmux, openTmux } from '../helpers/tmux.ts';

const EDITOR_SETTINGS = '{\n  // mine\n  "editor.fontSize": 13,\n}\n';
const SETTINGS = '{\n  "model": "opus",\n  "env": { "EDITOR": "vi" }\n}\n';

async function writeSettings(user: string): Promise<void> {
  await mkdir(path.join(user, '.claude'));
  await writeFile(path.join(user, '.claude', 'settings.json'), SETTINGS);
  await chmod(path.join(user, '.claude', 'settings.json'), 0o644);
  await mkdir(path.join(user, '.config', 'Code', 'User'), { recursive: true });
  await writeFile(path.join(user, '.config', 'Code', 'User', 'settings.json'), EDITOR_SETTINGS);
}

let rig: LiveRig;

/** A service manager that agrees to all it is asked. */
async function agreeableSystemctl(): Promise<Record<string, string>> {
  const bin = path.join(path.dirname(rig.home.user), 'bin');
  await mkdir(bin);
  await writeFile(path.join(bin, 'systemctl'), '#!/bin/sh\nexit 0\n', { mode: 0o700 });
  return { PATH: `${bin}:${process.env['PATH']}` };
}

const EDITS = [
  ['install-ca', '--settings', '--yes'],
  ['library', 'link'],
  ['hooks', 'install'],
  ['ontology', 'init'],
];

/** The user's, with nothing in them, and partly with more that is missing below them. */
const EMPTY = ['.claude', '.config/Code', '.config/systemd/user', '.local/share'];

async function installEverything(env: Record<string, string>, edits = EDITS): Promise<void> {
  await longTalk(rig, openTerminal(rig), { topic: 'the harbour', turns: 5 });
  await rig.flush();
  const commands = [
    ...edits,
    ['editor', 'install', 'vscode', '--yes'],
    ['service', 'install'],
    ['completion', 'bash', '--install'],
    ['completion', 'fish', '--install'],
    ['pause', '--private', '--project', '/home/ada/elsewhere'],
  ];
  for (const command of commands) {
    const { code, stderr } = await rig.home.run(command, { env });
    expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' });
  }
}

describe.skipIf(process.platform !== 'linux')('uninstall', () => {
  beforeEach(async () => {
    rig = await createLiveRig({ COMET_CC_LLM: 'local' });
    await writeSettings(rig.home.user);
  });
  afterEach(() => rig.close());

  it.each([
    ['hooks last', EDITS, []],
    ['hooks first, into folders that are empty', EDITS.toReversed(), EMPTY],
  ])('leaves the user’s home as it was, byte for byte, and nothing of its own: %s', async (_, edits, empty) => {
    for (const folder of empty) {
      await rm(path.join(rig.home.user, folder), { recursive: true, force: true });
      await mkdir(path.join(rig.home.user, folder), { recursive: true });
    }
    const before = await readFolder(rig.home.user);
    const env = await agreeableSystemctl();
    await installEverything(env, edits);
    expect(Object.keys(await readFolder(rig.home.user)).length).toBeGreaterThan(Object.keys(before).length);
    const ours = homeEntries(homePaths(rig.home.home));
    expect((await readdir(rig.home.home)).filter((name) => !ours.includes(name))).toEqual([]);

    const nodes = (await rig.home.json(['memory', 'ls', '--all', '--json'])) as unknown[];
    expect(nodes.length).toBeGreaterThan(1);
    const exported = path.join(path.dirname(rig.home.user), 'bin', 'memories.jsonl');
    const removed = path.join(rig.home.home, 'memory', 'memories.jsonl');
    for (const [file, told] of [
      [removed, { code: 2, stderr: expect.stringContaining('would be removed too') }],
      [
        '/nowhere/memories.jsonl',
        { code: 1, stderr: expect.stringMatching(/^.* cannot be written \(ENOENT\); name a .*\n$/) },
      ],
    ] as const)
      expect(await rig.home.run(['uninstall', '--yes', '--export', file], { env })).toMatchObject({
        stdout: '',
        ...told,
      });
    const { code, stdout, stderr } = await rig.home.run(['uninstall', '--yes', '--export', exported], { env });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    for (const step of ['service', 'hooks', 'settings', 'editors', 'completion', 'daemon', 'files'])
      expect(stdout).toMatch(new RegExp(`^${step} `, 'm'));
    expect(stdout).toMatch(new RegExp(`^memories +${nodes.length} memories\\nnothing of comet-cc is left$`, 'm'));
    expect(await readFile(exported, 'utf8')).toContain('the harbour');
    expect(await readFolder(rig.home.user)).toEqual(before);
    expect(await readdir(path.dirname(rig.home.home))).toEqual(['bin', 'u']);
    expect(await rig.home.json(['uninstall', '--yes', '--json'], { env })).toEqual({ removed: [], left: [] });
  });

  it('keeps the memories on request, and the files of other programs', async () => {
    const env = await agreeableSystemctl();
    await installEverything(env);
    const memory = await readFolder(path.join(rig.home.home, 'memory'));
    await writeFile(path.join(rig.home.home, 'mine.txt'), 'not yours');
    await rig.home.run(['config', 'set', 'share.url', 's3://bucket/memory']);
    await mkdir(path.join(rig.home.home, 'share'));
    const { code, stderr } = await rig.home.run(['uninstall', '--keep-memory', '--yes'], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('your memories are in it') });
    expect(stderr).toContain('published stays in s3://bucket/memory: comet-cc share leave first');
    expect((await readdir(rig.home.home)).sort()).toEqual([
      ...['journal', 'memory', 'mine.txt', 'ontology.json', 'ontology.schema.json', 'projects.json', 'schema.json'],
      'share',
    ]);
    expect(await readFolder(path.join(rig.home.home, 'memory'))).toEqual(memory);
    await rig.home.json(['start', '--json']);
    expect(((await rig.home.json(['memory', 'ls', '--json'])) as unknown[]).length).toBeGreaterThan(0);
  });

  it.skipIf(!hasTmux())('offers an export before the memories go', async () => {
    await longTalk(rig, openTerminal(rig), { topic: 'the harbour', turns: 5 });
    await rig.flush();
    const terminal = openTmux(rig.home.env, { cwd: rig.home.user, columns: 120 });
    try {
      await terminal.type(`${process.execPath} ${CLI} uninstall`);
      await terminal.shows(/Export the \d+ memor(y|ies) to \.\/comet-cc-memories\.jsonl first\? \[y\/N\]$/);
      await terminal.type('y');
      await terminal.shows(/Remove all of this, \d+ memor(y|ies) included\? \[y\/N\]$/);
      await terminal.type('y');
      await terminal.shows(/nothing of comet-cc is left/);
    } finally {
      terminal.close();
    }
    expect(await readFile(path.join(rig.home.user, 'comet-cc-memories.jsonl'), 'utf8')).toContain('the harbour');
  });

  it('leaves a link that the home is, and nothing behind it, also of commands that were killed', async () => {
    const { home } = rig.home;
    await mkdir(path.join(home, 'certs.0123456789ab.tmp'));
    await writeFile(path.join(home, 'installs.json.0123456789ab.tmp'), '{}');
    await rig.home.run(['stop', '--now']);
    await rename(home, `${home}-elsewhere`);
    await symlink(`${home}-elsewhere`, home);
    expect(await rig.home.run(['uninstall', '--yes'])).toMatchObject({ code: 0 });
    expect(await readdir(home)).toEqual([]);
  });

  it('changes nothing without confirmation', async () => {
    const before = await readFolder(rig.home.user);
    const { code, stderr } = await rig.home.run(['uninstall']);
    expect(code).toBe(2);
    expect(stderr).toContain('--yes');
    expect(await readFolder(rig.home.user)).toEqual(before);
    expect((await rig.status()).engine.state).toBe('healthy');
  });

  it('says what is left where something cannot be taken back, and keeps the notes of it', async () => {
    const env = await agreeableSystemctl();
    await installEverything(env);
    const file = path.join(rig.home.user, '.claude', 'settings.json');
    await writeFile(file, '{ "env": ');
    const { code, stderr } = await rig.home.run(['uninstall', '--yes'], { env });
    expect(code).toBe(1);
    expect(stderr).toContain(`${file} is not valid JSON`);
    await writeFile(file, SETTINGS);
    expect((await rig.home.run(['uninstall', '--yes'], { env })).code).toBe(0);
    expect(await readFile(file, 'utf8')).toBe(SETTINGS);
  });
});

describe.skipIf(process.platform !== 'linux')('uninstall where no daemon ran', () => {
  let home: TestHome;
  beforeEach(async () => {
    home = await createHomeWithCerts();
    await writeSettings(home.user);
  });
  afterEach(() => home.close());

  it.each(['uninstall', 'uninstall-ca'])(
    'takes the proxy out of settings that were moved since: %s',
    async (command) => {
      const [link, dir, moved] = ['.claude', 'dot', 'dotfiles'].map((name) => path.join(home.user, name)) as [
        string,
        string,
        string,
      ];
      await rename(link, dir);
      await symlink(dir, link);
      await home.json([...(EDITS[0] as string[]), '--json']);
      await rename(dir, moved);
      await rm(link);
      await symlink(moved, link);
      const { code, stdout } = await home.run([command, ...(command === 'uninstall' ? ['--yes'] : [])]);
      expect([code, stdout]).toEqual([0, expect.stringContaining(path.join(moved, 'settings.json'))]);
      expect(await readFile(path.join(moved, 'settings.json'), 'utf8')).toBe(SETTINGS);
    },
  );

  it('takes the proxy out of settings where the home is lost, also if another one was made since', async () => {
    const file = path.join(home.user, '.claude', 'settings.json');
    const install = () => home.json([...(EDITS[0] as string[]), '--json']);
    for (const again of [async () => undefined, install]) {
      await install();
      await rm(home.home, { recursive: true });
      await again();
      expect(await home.json(['uninstall', '--yes', '--json'])).toMatchObject({ left: [] });
      expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(JSON.parse(SETTINGS));
    }
  });
});
