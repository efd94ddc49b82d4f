import { spawnSync } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { runCommand, runningSessions } from '../../../bin/commands/run.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const [RUNS, ENDED] = ['5f3a0000-0000-4000-8000-000000000000', '5f3a0000-0000-4000-8000-000000000001'];

it('knows which sessions other terminals run, by the list that Claude Code keeps of its processes', async () => {
  const home = await tempDir();
  expect(await runningSessions(home)).toEqual([]);
  const dir = path.join(home, 'sessions');
  await mkdir(dir);
  const { pid: ended } = spawnSync(process.execPath, ['-e', '']);
  const files = {
    [`${process.pid}.json`]: JSON.stringify({ pid: process.pid, sessionId: RUNS, kind: 'interactive' }),
    [`${process.pid}.6a.key`]: '{}',
    [`${ended}.json`]: JSON.stringify({ pid: ended, sessionId: ENDED }),
    [`${process.ppid}.json`]: '{"pid":',
    'notes.json': '{}',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(dir, name), text);
  expect(await runningSessions(home)).toEqual([RUNS]);
});

it('runs the program behind a script of its name that runs comet-cc, and says where there is none', async () => {
  const [own, real] = [await tempDir(), await tempDir()];
  const script = async (dir: string, text: string) => {
    const file = path.join(dir, 'claude');
    await writeFile(file, `#!/bin/sh\n${text}\n`);
    await chmod(file, 0o755);
  };
  const said: string[] = [];
  const runNamed = (command: string, dirs: readonly string[]) =>
    runCommand({ command, args: [], env: { PATH: dirs.join(':') } }, (line) => said.push(line));
  const run = (...dirs: string[]) => runNamed('claude', dirs);
  for (const line of ['exec comet-cc run claude "$@"', '"$HOME"/bin/comet-cc run --quiet -- claude "$@"']) {
    await script(own, line);
    expect(await run(own)).toBe(126);
    await script(real, 'exit 7');
    expect(await run(await tempDir(), own, real)).toBe(7);
    expect(await run(real, own)).toBe(7);
  }
  // A path is not looked for on PATH.
  expect(await runNamed('./claude', [own, real])).toBe(127);
  expect(said.splice(2)).toHaveLength(1);
  expect(said).toEqual(
    Array(2).fill('comet-cc: claude cannot be run (each on PATH is a script that runs comet-cc again)'),
  );
  await script(own, 'exit 8 # comet-cc run is for others');
  expect(await run(own, real)).toBe(8);
});
