import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { libraryPaths } from '../../../../memory/storage/paths.ts';
import { openTaskFiles } from '../../../../memory/tasks/fs/task-files.ts';
import { openTaskRig } from '../../../helpers/task-rig.ts';

const { disk } = await vi.hoisted(async () => {
  const { createMortalDisk } = await import('../../../helpers/crash-fs.ts');
  return { disk: createMortalDisk() };
});
vi.mock('node:fs/promises', async (original) => disk.mortal(await original()));

const out = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'comet-tasks-'));
afterAll(() => rmSync(out, { recursive: true, force: true }));

const HOUR = 3_600_000;
const START = new Date(2026, 10, 23, 10, 0).getTime();
const user = { origin: 'user', projectDir: '/home/me/shop' } as const;

async function openAt(dir: string, nowMs: number) {
  const files = await openTaskFiles(libraryPaths(dir, { libraryDir: '' }));
  return { ...openTaskRig(files, { clock: { nowMs } }), files };
}

/** A task becomes due, its question is given to a session, it is done, and another one is added. */
async function live(dir: string, moves: boolean): Promise<void> {
  const { tasks, surfacing, files } = await openAt(dir, START + HOUR);
  try {
    await surfacing.look();
    await tasks.questions('s1', user.projectDir);
    const [task] = (await files.load()).tasks;
    // The disk of these tests forgets both names of a move at a power cut, which no file system does.
    if (moves) await tasks.setStatus(task?.name ?? '', 'done');
    await tasks.add({ ...user, title: 'Next' });
    if (moves) await tasks.setStatus(task?.name ?? '', 'active');
  } finally {
    // The disk lives again for the next process: this one must not be writing then.
    await surfacing.close();
  }
}

test.each([false, true])(
  'killed at any write, a task surfaces once and is never lost; power cut: %s',
  async (isPowerCut) => {
    const base = path.join(out, `base-${isPowerCut}`);
    const { tasks } = await openAt(base, START);
    const { name } = await tasks.add({ ...user, title: 'Check', at: 'in 1 hour', mode: 'question' });
    const copy = (id: string): string => {
      const dir = path.join(out, `${id}-${isPowerCut}`);
      cpSync(base, dir, { recursive: true });
      return dir;
    };
    const whole = copy('whole');
    disk.live(null);
    await live(whole, !isPowerCut);
    const { steps } = disk.reborn();
    const seen = new Set<string>();
    for (let step = 1; step <= steps; step += 1) {
      const dir = copy(`step-${step}`);
      disk.live({ step, tear: 0.5, power: isPowerCut ? () => 0 : null });
      await live(dir, !isPowerCut).catch(() => undefined);
      expect(disk.reborn().died).toBe(true);
      const after = await openAt(dir, START + HOUR + 60_000);
      await after.surfacing.look();
      const { tasks: left, problems } = await after.files.load(true);
      const page = await after.files.readInbox('2026-11-23');
      const where = `killed at step ${step} of ${steps}`;
      expect(problems, where).toEqual([]);
      expect(
        left.filter((task) => task.name === name).map(({ title, fired }) => [title, fired !== undefined]),
        where,
      ).toEqual([['Check', true]]);
      expect(page.split('“Check”').length - 1, where).toBe(1);
      expect(left.length, where).toBeLessThanOrEqual(2);
      expect(
        readdirSync(dir, { recursive: true }).filter((file) => String(file).endsWith('.tmp')),
        where,
      ).toEqual([]);
      for (const session of ['s1', 's2']) {
        if ((await after.tasks.questions(session, user.projectDir)).length > 0) seen.add(session);
      }
      seen.add(left.find((task) => task.name === name)?.status ?? '');
      rmSync(dir, { recursive: true });
    }
    expect(steps).toBeGreaterThan(20);
    expect([...seen].sort()).toEqual(isPowerCut ? ['active', 's1'] : ['active', 'done', 's1']);
  },
);
