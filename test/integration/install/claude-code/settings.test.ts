import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HomePaths, homePaths } from '../../../../common/paths.ts';
import {
  editSettings,
  inspectSettings,
  planSettings,
  uninstallEntries,
} from '../../../../install/claude-code/index.ts';

const OURS = { HTTPS_PROXY: 'http://comet-cc:TOKEN@127.0.0.1:8443', NODE_EXTRA_CA_CERTS: '/h/certs/bundle.pem' };

let dir: string;
let file: string;
let paths: HomePaths;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-settings-'));
  mkdirSync(path.join(dir, '.claude'));
  file = path.join(dir, '.claude', 'settings.json');
  paths = homePaths(path.join(dir, 'home'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const read = (): string => readFileSync(file, 'utf8');
const edit = async () => editSettings(paths, await planSettings(file, OURS));

describe('editing', () => {
  it('shows what it would change, and changes nothing before it is told', async () => {
    writeFileSync(file, '{"env":{"HTTPS_PROXY":"http://corp:3128"}}');
    const plan = await planSettings(file, OURS);
    expect(plan.changes).toEqual([
      { name: 'HTTPS_PROXY', from: 'http://corp:3128', to: OURS.HTTPS_PROXY },
      { name: 'NODE_EXTRA_CA_CERTS', from: undefined, to: OURS.NODE_EXTRA_CA_CERTS },
    ]);
    expect(read()).toBe('{"env":{"HTTPS_PROXY":"http://corp:3128"}}');
    expect(existsSync(paths.home)).toBe(false);
  });

  it('keeps order, indentation, line ends and everything else', async () => {
    writeFileSync(file, '{\r\n\t"model": "opus",\r\n\t"env": {\r\n\t\t"A": "1"\r\n\t},\r\n\t"hooks": {}\r\n}\r\n');
    await edit();
    expect(read()).toBe(
      `{\r\n\t"model": "opus",\r\n\t"env": {\r\n\t\t"A": "1",\r\n\t\t"HTTPS_PROXY": "${OURS.HTTPS_PROXY}",\r\n\t\t"NODE_EXTRA_CA_CERTS": "${OURS.NODE_EXTRA_CA_CERTS}"\r\n\t},\r\n\t"hooks": {}\r\n}\r\n`,
    );
  });

  it('keeps a private backup, and makes the token private', async () => {
    writeFileSync(file, '{}', { mode: 0o644 });
    chmodSync(file, 0o644);
    const { backup } = await edit();
    expect(readFileSync(backup ?? '', 'utf8')).toBe('{}');
    expect(statSync(backup ?? '').mode & 0o777).toBe(0o600);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await uninstallEntries(paths, 'env', []);
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });

  it('does not overwrite an older backup of that name', async () => {
    writeFileSync(file, '{}');
    writeFileSync(`${file}.before-comet-cc`, 'precious');
    expect((await edit()).backup).toBe(`${file}.before-comet-cc.1`);
    expect(readFileSync(`${file}.before-comet-cc`, 'utf8')).toBe('precious');
  });

  it.each(['{ // a comment\n}', '{"a":1,}', '[]', '"text"', '{"env":[]}', '{"env":"x"}'])(
    'leaves %j untouched and reports it',
    async (text) => {
      writeFileSync(file, text);
      await expect(planSettings(file, OURS)).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringContaining(file),
      });
      expect(read()).toBe(text);
      expect(readdirSync(path.dirname(file))).toEqual(['settings.json']);
    },
  );

  it('refuses when the file changed after the plan, or another one is edited', async () => {
    writeFileSync(file, '{}');
    const plan = await planSettings(file, OURS);
    writeFileSync(file, '{"a":1}');
    await expect(editSettings(paths, plan)).rejects.toMatchObject({ code: 'config_invalid' });
    expect(read()).toBe('{"a":1}');
    await edit();
    const other = await planSettings(path.join(dir, 'other.json'), OURS);
    await expect(editSettings(paths, other)).rejects.toMatchObject({ code: 'config_invalid' });
    expect(existsSync(path.join(dir, 'other.json'))).toBe(false);
  });
});

describe('editing again', () => {
  const MOVED = { ...OURS, HTTPS_PROXY: 'http://comet-cc:TOKEN@127.0.0.1:9000' };
  const editAgain = async () => editSettings(paths, await planSettings(file, MOVED));

  it('after the port moved keeps the first backup, and gives the first bytes back', async () => {
    const before = '{"env": { "HTTPS_PROXY" : "http://corp:3128" }}';
    writeFileSync(file, before);
    const { backup } = await edit();
    expect(await inspectSettings(paths, OURS)).toEqual({ file, astray: [] });
    expect(await inspectSettings(paths, MOVED)).toEqual({ file, astray: ['HTTPS_PROXY'] });
    expect((await editAgain()).backup).toBe(backup);
    expect(await inspectSettings(paths, MOVED)).toEqual({ file, astray: [] });
    await uninstallEntries(paths, 'env', []);
    expect(read()).toBe(before);
    expect(readdirSync(path.dirname(file))).toEqual(['settings.json']);
  });

  it('after changes by hand keeps these, and puts back the value that the user had last', async () => {
    writeFileSync(file, '{"env":{"HTTPS_PROXY":"http://first:1"}}');
    await edit();
    writeFileSync(file, '{"model":"opus","env":{"HTTPS_PROXY":"http://second:2"}}');
    expect((await inspectSettings(paths, OURS))?.astray).toEqual(['HTTPS_PROXY', 'NODE_EXTRA_CA_CERTS']);
    await editAgain();
    await uninstallEntries(paths, 'env', []);
    expect(JSON.parse(read())).toEqual({ model: 'opus', env: { HTTPS_PROXY: 'http://second:2' } });
    expect(await inspectSettings(paths, OURS)).toBeNull();
  });
});

describe('reverting', () => {
  it.each([
    '{"env": { "HTTPS_PROXY" : "http://corp:3128" },\n "numbers": [1.0, 2e3], "x": "\\u00e9"}',
    '{}',
    '{\n    "permissions": {"allow": ["a", "b"]}\n}\n',
    '{"env":{}}',
  ])('gives back %j byte for byte, with no trace', async (text) => {
    writeFileSync(file, text);
    await edit();
    expect(read()).not.toBe(text);
    expect(await uninstallEntries(paths, 'env', [])).toEqual([file]);
    expect(read()).toBe(text);
    expect(readdirSync(path.dirname(file))).toEqual(['settings.json']);
    expect(readdirSync(paths.home)).toEqual([]);
    expect(await uninstallEntries(paths, 'env', [])).toEqual([]);
  });

  it('removes a file that was not there before', async () => {
    await edit();
    expect(JSON.parse(read())).toEqual({ env: OURS });
    await uninstallEntries(paths, 'env', []);
    expect(existsSync(file)).toBe(false);
  });

  it("restores the user's values and keeps what was changed since", async () => {
    writeFileSync(file, '{"env":{"HTTPS_PROXY":"http://corp:3128"}}');
    await edit();
    const now = JSON.parse(read()) as { env: Record<string, string> };
    writeFileSync(file, JSON.stringify({ ...now, model: 'opus', env: { ...now.env, B: '2' } }));
    await uninstallEntries(paths, 'env', []);
    expect(JSON.parse(read())).toEqual({ env: { HTTPS_PROXY: 'http://corp:3128', B: '2' }, model: 'opus' });
  });

  it('leaves a variable alone that the user has set to something else', async () => {
    writeFileSync(file, '{}');
    await edit();
    writeFileSync(file, read().replace(OURS.HTTPS_PROXY, 'http://mine:1'));
    await uninstallEntries(paths, 'env', []);
    expect(JSON.parse(read())).toEqual({ env: { HTTPS_PROXY: 'http://mine:1' } });
  });

  it('takes an env away that it had added, and no other', async () => {
    writeFileSync(file, '{"a":1}');
    await edit();
    writeFileSync(file, `${read()}\n`);
    await uninstallEntries(paths, 'env', []);
    expect(JSON.parse(read())).toEqual({ a: 1 });
  });

  it('leaves a file alone that no longer parses, and can be asked again', async () => {
    writeFileSync(file, '{}');
    await edit();
    const edited = read();
    writeFileSync(file, `${edited}{`);
    await expect(uninstallEntries(paths, 'env', [])).rejects.toMatchObject({ code: 'config_invalid' });
    writeFileSync(file, edited);
    await uninstallEntries(paths, 'env', []);
    expect(read()).toBe('{}');
  });

  it.each(['', ' \n'])('is content with a file that holds %j, before or since', async (blank) => {
    const own = Object.fromEntries(Object.entries(OURS).map(([name, value]) => [name, [value]]));
    for (const before of [blank, '{}', '{"a":1}']) {
      writeFileSync(file, before);
      await edit();
      if (before !== blank) writeFileSync(file, blank);
      await uninstallEntries(paths, 'env', [file], own);
      expect(read()).toBe(before === '{}' ? before : blank);
      expect(await inspectSettings(paths, OURS)).toBeNull();
    }
  });

  it('is content with a file that is gone', async () => {
    writeFileSync(file, '{}');
    await edit();
    rmSync(file);
    expect(await uninstallEntries(paths, 'env', [])).toEqual([]);
    expect(readdirSync(path.dirname(file))).toEqual([]);
  });
});

it('follows a link to where the settings really are, and leaves the link', async () => {
  const real = path.join(dir, 'dotfiles.json');
  writeFileSync(real, '{}');
  symlinkSync(real, file);
  await edit();
  expect(lstatSync(file).isSymbolicLink()).toBe(true);
  expect(JSON.parse(readFileSync(real, 'utf8'))).toEqual({ env: OURS });
  await uninstallEntries(paths, 'env', []);
  expect(readFileSync(real, 'utf8')).toBe('{}');
});

it('makes the file that a link leads to, and leaves the link when it is gone again', async () => {
  symlinkSync(path.join('..', 'dotfiles', 'settings.json'), file);
  await edit();
  expect(JSON.parse(readFileSync(path.join(dir, 'dotfiles', 'settings.json'), 'utf8'))).toEqual({ env: OURS });
  await uninstallEntries(paths, 'env', [file]);
  expect([lstatSync(file).isSymbolicLink(), existsSync(path.join(dir, 'dotfiles'))]).toEqual([true, false]);
});
