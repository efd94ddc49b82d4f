import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type HomePaths, homeEntries, homePaths } from '../../../common/paths.ts';
import { hookCommands } from '../../../install/claude-code/entries.ts';
import {
  editSettings,
  findEntries,
  inspectSettings,
  installEntries,
  planSettings,
  uninstallEntries,
} from '../../../install/claude-code/index.ts';
import { inspectEditors } from '../../../install/editors/index.ts';
import recorded from '../../fixtures/installs-0.1.0.json' with { type: 'json' };
import { tempDirs } from '../../helpers/temp-dir.ts';

/** A file or directory of the tree that a version recorded; `{DIR}` stands for the place where it was. */
type Tree = Readonly<Record<string, { readonly mode: string; readonly text?: string }>>;
interface Scenario {
  readonly name: string;
  /** As 0.1.0 left it after its installs, records in `home` included. */
  readonly installed: Tree;
  /** As 0.1.0 left it after undoing them; an entry of the user keeps its spelling. */
  readonly undone: Tree;
}
const SCENARIOS = recorded as unknown as readonly Scenario[];

const tempDir = tempDirs();
const VARIABLES = { HTTPS_PROXY: 'http://comet-cc:NEW@127.0.0.1:9999', NODE_EXTRA_CA_CERTS: '/new/bundle.pem' };
const COMMANDS = hookCommands('/opt/node', '/srv/comet-cc/dist/hooks', (text) => `'${text}'`);

async function restore({ installed }: Scenario): Promise<{ dir: string; paths: HomePaths; settings: string }> {
  const dir = await tempDir();
  for (const [name, { mode, text }] of Object.entries(installed)) {
    const place = path.join(dir, name);
    if (text === undefined) await mkdir(place, { recursive: true });
    else await writeFile(place, text.replaceAll('{DIR}', dir));
    await chmod(place, Number.parseInt(mode, 8));
  }
  return { dir, paths: homePaths(path.join(dir, 'home')), settings: path.join(dir, '.claude', 'settings.json') };
}

async function readTree(dir: string): Promise<Tree> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const found = entries.map(async (entry) => {
    const place = path.join(entry.parentPath, entry.name);
    const mode = ((await stat(place)).mode & 0o777).toString(8);
    return [path.relative(dir, place), entry.isFile() ? { mode, text: await readFile(place, 'utf8') } : { mode }];
  });
  const { home: _, ...tree } = Object.fromEntries(await Promise.all(found)) as Tree;
  return tree;
}

describe.each(SCENARIOS)('an installation of 0.1.0: $name', (scenario) => {
  it.each([
    ['hooks first', true],
    ['variables first', false],
  ])('is undone to the same bytes and modes: %s', async (_, hooksFirst) => {
    const { dir, paths, settings } = await restore(scenario);
    if (hooksFirst) await uninstallEntries(paths, 'hooks', [settings]);
    await uninstallEntries(paths, 'env', []);
    await uninstallEntries(paths, 'hooks', [settings]);
    await uninstallEntries(paths, 'vscode', []);
    expect(await readTree(dir)).toEqual(scenario.undone);
    expect(await readdir(paths.home)).toEqual([]);
  });

  it('is updated by this version and then undone to the same bytes and modes', async () => {
    const { dir, paths, settings } = await restore(scenario);
    const before = { env: await inspectSettings(paths, {}), editors: await inspectEditors(paths, null) };
    const ours = homeEntries(paths);
    expect((await readdir(paths.home)).filter((name) => !ours.includes(name))).toEqual([]);
    if (before.env !== null) await editSettings(paths, await planSettings(settings, VARIABLES));
    for (const { editor, file } of before.editors) await installEntries(paths, editor, file, VARIABLES);
    if (before.editors.length === 0) await installEntries(paths, 'hooks', settings, COMMANDS);
    const backups = Object.keys(await readTree(dir)).filter((name) => name.includes('.before-comet-cc'));
    expect(backups.length).toBeLessThanOrEqual(1);
    await uninstallEntries(paths, 'hooks', [settings]);
    await uninstallEntries(paths, 'env', []);
    await uninstallEntries(paths, 'vscode', []);
    expect(await readTree(dir)).toEqual(scenario.undone);
    expect(await readdir(paths.home)).toEqual([]);
  });
});

it('loses nothing where several readers migrate at once', async () => {
  const { paths } = await restore(SCENARIOS.find(({ name }) => name === 'variables, then hooks') as Scenario);
  const found = await Promise.all([
    findEntries(paths, 'hooks', []),
    findEntries(paths, 'env', []),
    inspectEditors(paths, null),
    findEntries(paths, 'hooks', []),
    findEntries(paths, 'env', []),
  ]);
  expect(found.map((each) => (each ?? []).length > 0)).toEqual([true, true, false, true, true]);
  expect(await readdir(paths.home)).toEqual(['installs.json']);
});

it('leaves everything unchanged where a record of 0.1.0 is damaged', async () => {
  const { dir, paths } = await restore(SCENARIOS[0] as Scenario);
  await writeFile(path.join(paths.home, 'hooks-edit.json'), '[{');
  const before = await readTree(dir);
  await expect(uninstallEntries(paths, 'env', [])).rejects.toMatchObject({ code: 'config_invalid' });
  expect(await readTree(dir)).toEqual(before);
  expect(await readdir(paths.home)).toContain('settings-edit.json');
});
