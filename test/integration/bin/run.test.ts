import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { runningSessions } from '../../../bin/commands/run.ts';
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
