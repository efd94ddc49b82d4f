import { expect, it } from 'vitest';
import { openCrashMarks } from '../../../../../memory/storage/fs/set-files.ts';
import { tempDirs } from '../../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const turn = (turnId: string) => ({ turnId, sessionId: 's1', atMs: 1 });
const never = () => new Promise<void>(() => {});

it('a turn is a suspect after one death and skipped after a second in the same work, by the same version', async () => {
  const dir = await tempDir();
  const open = (version = '1') => openCrashMarks({ dir, version });
  const states = async (version?: string) => {
    const marks = await open(version);
    return ['a', 'b', 'c'].map((id) => (marks.isSkipped(id) ? 'skipped' : marks.isSuspect(id) ? 'suspect' : 'free'));
  };
  let marks = await open();
  await marks.during('read', [turn('c')], async () => {});
  void marks.during('read', [turn('a')], never);
  void marks.during('compact', [turn('b')], never);
  expect(await states()).toEqual(['suspect', 'suspect', 'free']);

  marks = await open();
  // It lives through the same work now, so what comes later is another first time.
  await marks.during('compact', [turn('b')], async () => {});
  void marks.during('read', [turn('a'), turn('c')], never);
  expect(await states()).toEqual(['skipped', 'free', 'suspect']);
  expect((await open()).skipped()).toMatchObject([turn('a')]);
  expect(await states('2')).toEqual(['free', 'free', 'free']);
});

it('marks nothing where nothing can be written', async () => {
  const marks = await openCrashMarks({ dir: `${await tempDir()}/missing`, version: '1' });
  expect(await marks.during('read', [turn('a')], async () => 'done')).toBe('done');
});
