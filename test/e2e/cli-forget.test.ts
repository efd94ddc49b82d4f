import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';

let home: TestHome;
const list = async () => (await home.json(['memory', 'ls', '--json'])) as { node_id: string; summary: string }[];

beforeAll(async () => {
  home = await createHomeWithCerts();
  await home.json(['start', '--json']);
  await writeFile(path.join(home.user, 'birds.md'), '# Birds\n\nThe heron eats at dawn.\n');
  await writeFile(path.join(home.user, 'trees.md'), '# Trees\n\nThe larch is bare in winter.\n');
  for (const file of ['birds.md', 'trees.md']) await home.json(['memory', 'import', file, '--json']);
});
afterAll(() => home.close());

it('memory forget asks first, tells with --dry-run, and then leaves no trace', async () => {
  expect((await home.run(['memory', 'forget'])).code).toBe(2);
  expect((await home.run(['memory', 'forget', '--since', 'soon'])).code).toBe(2);
  expect(await home.run(['memory', 'forget', '--source', 'nowhere.example'])).toMatchObject({ code: 0, stdout: '' });
  const unasked = await home.run(['memory', 'forget', '--source', 'birds.md']);
  expect(unasked.code).toBe(2);
  expect(unasked.stderr).toContain('--yes');
  const dry = await home.run(['memory', 'forget', '--source', 'birds.md', '--dry-run']);
  expect(dry.stdout).toMatch(/heron[\s\S]*would be forgotten: 1 memory and 1 turn of 1 session\n$/);
  expect(await list()).toHaveLength(2);
  const last = ['memory', 'forget', '--since', '1d', '--last', '--dry-run', '--json'];
  expect(await home.json(last)).toMatchObject({ turns: 1, nodes: [{ summary: expect.stringContaining('larch') }] });

  const report = await home.json(['memory', 'forget', '--source', 'birds.md', '--yes', '--json']);
  expect(report).toMatchObject({ dry_run: false, turns: 1, nodes: [{ summary: expect.stringContaining('heron') }] });
  expect((await list()).map(({ summary }) => summary)).toEqual([expect.stringContaining('larch')]);
  const [kept] = (await home.json(['session', 'ls', '--json'])) as { session_id: string }[];
  expect((await home.run(['stop', '--now'])).code).toBe(0);
  const files = await readdir(home.home, { recursive: true, withFileTypes: true });
  for (const file of files.filter((each) => each.isFile())) {
    const name = path.join(file.parentPath, file.name);
    expect((await readFile(name, 'latin1')).includes('heron'), name).toBe(false);
  }
  await home.json(['start', '--json']);
  expect(
    await home.json(['memory', 'forget', '--session', kept?.session_id.slice(0, 8) as string, '--yes', '--json']),
  ).toMatchObject({ turns: 1 });
  expect(await list()).toEqual([]);
  expect(await home.json(['memory', 'forget', '--since', '1d', '--yes', '--json'])).toMatchObject({
    turns: 0,
    nodes: [],
  });
});
