import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestHome, type TestHome } from '../helpers/cli.ts';

let home: TestHome;
let folder: string;

beforeAll(async () => {
  home = await createTestHome();
  folder = path.join(home.user, 'unpacked');
  await mkdir(home.home, { mode: 0o700 });
  await mkdir(path.join(folder, '.git'), { recursive: true });
  await writeFile(path.join(folder, '.git', 'config'), '[remote "origin"]\n\turl = git@example.org:ada/private.git\n');
});

afterAll(() => home.close());

it('project join is not for Claude, whatever it read', async () => {
  const env = { CLAUDECODE: '1' };
  const { code, stderr } = await home.run(['project', 'join', folder, '--yes'], { env });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('your own terminal') });
  expect(await home.json(['project', 'ls', '--json'])).toEqual({});
});

it('project join lets a folder share the memory of its remote', async () => {
  const remote = 'example.org/ada/private';
  const folders = [path.join(folder, '.git')];
  const joined = { project: remote, folders };
  expect(await home.json(['project', 'join', folder, '--yes', '--json'])).toEqual(joined);
  expect(await home.json(['project', 'ls', '--json'])).toEqual({ [remote]: folders });
});

it('project ls prints no control characters of a remote', async () => {
  const other = path.join(home.user, 'other');
  await mkdir(path.join(other, '.git'), { recursive: true });
  await writeFile(
    path.join(other, '.git', 'config'),
    '[remote "origin"]\n\turl = git@example.org:ada/\u001b[2Jx.git\n',
  );
  await home.json(['project', 'join', other, '--yes', '--json']);
  const { stdout } = await home.run(['project', 'ls']);
  expect(stdout).toContain('example.org/ada/[2jx\n');
  expect(stdout).not.toContain('\u001b');
});
