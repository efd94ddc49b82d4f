import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { localDay } from '../../../../common/text.ts';
import type { Memory } from '../../../../memory/index.ts';
import { openPageFiles } from '../../../../memory/storage/fs/page-files.ts';
import { TASK } from '../../../contract/task-files.ts';
import { createDisk, type Disk, openRig, type RigOptions } from '../../../helpers/memory-rig.ts';
import { createMemoryTaskFiles } from '../../../helpers/memory-task-files.ts';
import { openTaskRig } from '../../../helpers/task-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const HOUR = 3_600_000;
/** Local time, as `dream.at` is. */
const at = (day: number, hour: number): number => new Date(2026, 10, day, hour).getTime();

interface Rig {
  readonly disk: Disk;
  readonly memory: Memory;
  readonly dir: string;
  say(atMs: number, ...texts: string[]): Promise<void>;
  page(day: string): Promise<string>;
}

async function open(home = '', disk = createDisk(), options: RigOptions = {}): Promise<Rig> {
  const dir = path.join(home || (await tempDir()), 'library');
  const pageFiles = await openPageFiles({ dir, nodesDir: path.join(dir, '..', 'nodes') });
  const memory = await openRig(disk, { llm: 'local', pageFiles, ...options });
  return {
    disk,
    memory,
    dir,
    async say(atMs, ...texts) {
      disk.nowMs = atMs;
      const sessionId = `s-${atMs}`;
      const turns = texts.map((text, nth) => talk(text, 'Noted.', { sessionId, atMs, key: `${atMs}-${nth}` }));
      memory.capture.captureTurns(turns);
      expect(await memory.maintenance.flush(60_000)).toBe(true);
      disk.nowMs = atMs + HOUR;
    },
    page: (day) => readFile(path.join(dir, 'inbox', `${day}.md`), 'utf8'),
  };
}

const phase = (report: { phases: readonly { name: string; line: string }[] }, wanted: string): string =>
  report.phases.find(({ name }) => name === wanted)?.line ?? '';

test('a pass has five phases, and its brief tells what happened since the last one', async () => {
  const files = createMemoryTaskFiles();
  await files.add('check', { ...TASK, trigger: '2026-11-23 09:00', created: new Date(at(22, 9)).toISOString() });
  const savings = vi.fn(() => ({ received: 5_000, sent: 4_000, usd: 0.5 }));
  const disk = createDisk();
  const rig = await open('', disk, { tasks: openTaskRig(files, { clock: disk }).tasks, savings });
  await rig.say(at(22, 10), 'The payments API listens on port 8080.');
  rig.disk.nowMs = at(23, 3);
  await rig.memory.maintenance.dream({ dryRun: false });
  await rig.say(
    at(23, 10),
    'The payments API now listens on port 9090.',
    'We decided to use Redis for the session cache.',
  );
  rig.memory.capture.captureTurns([
    getTurn(
      'What does the page say?',
      [
        ...toolRound(
          'WebFetch',
          { url: 'https://example.org' },
          'We decided to use Mongo. The API listens on port 6666.',
        ),
        message('assistant', [{ type: 'text', text: 'It says that the API listens on port 6666.' }]),
      ],
      { sessionId: 's-web', atMs: at(23, 11) },
    ),
  ]);
  expect(await rig.memory.maintenance.flush(60_000)).toBe(true);
  rig.disk.nowMs = at(24, 3);

  const dry = await rig.memory.maintenance.dream({ dryRun: true });
  expect(dry.phases.map(({ name }) => name)).toEqual(['orient', 'gather', 'consolidate', 'prune and index', 'brief']);
  expect(phase(dry, 'brief')).toBe('would be in inbox/2026-11-24.md');
  await expect(rig.page('2026-11-24')).rejects.toThrow();

  const report = await rig.memory.maintenance.dream({ dryRun: false });
  expect(report.brief).toBe('inbox/2026-11-24.md');
  expect(phase(report, 'orient')).toMatch(/^\d+ topic pages?, 1 open task, \d+ memories since 2026-11-23 03:00$/);
  expect(phase(report, 'consolidate')).toContain('1 moved to Before');
  expect(phase(report, 'prune and index')).toMatch(/INDEX has \d+ lines$/);
  const page = await rig.page('2026-11-24');
  const getSection = (title: string): string => page.split(`### ${title}\n`)[1]?.split('\n#')[0] ?? '';
  expect(page).toMatch(/^# Inbox 2026-11-24\n\n## Brief, 03:00: 1 day since 2026-11-23\n/);
  expect(getSection('What happened')).toContain('- shop: 2 sessions');
  expect(getSection('Decided')).toContain('shop: We decided to use Redis for the session cache');
  expect(getSection('No longer holds')).toContain('“The payments API listens on port 8080” held until 2026-11-23');
  expect(getSection('Tasks')).toMatch(/“Check dispenser 47” \(task \w{6}\), due since 2026-11-23 09:00/);
  expect(getSection('The library')).toContain('1 statement moved to Before');
  expect(getSection('Saved')).toContain('1k of 5k tokens of context, $0.50');
  expect(savings).toHaveBeenLastCalledWith(at(23, 3), at(24, 3));
  // From outside nothing is told in the page's own voice.
  expect(page).not.toMatch(/6666|Mongo/);

  const [shown, again] = [await rig.memory.maintenance.takeBrief(), await rig.memory.maintenance.takeBrief()];
  expect([shown, again]).toEqual([path.join(rig.dir, 'inbox', '2026-11-24.md'), null]);
  const nothing = await rig.memory.maintenance.dream({ dryRun: false, projectDir: '/elsewhere' });
  expect(phase(nothing, 'brief')).toBe('none: only one project was looked at');
  await rig.memory.maintenance.close();
});

test('a machine that was off for three nights has one pass at start, and one brief of three days', async () => {
  const home = await tempDir();
  const disk = createDisk();
  disk.nowMs = at(20, 9);
  const config = Config.parse({ llm: 'local', dream: { at: '0 3 * * *' } });
  const first = await open(home, disk, { config });
  await first.say(at(20, 10), 'We decided to use Redis for the session cache.');
  await first.memory.maintenance.close();
  disk.nowMs = at(21, 3);
  const night = await open(home, disk, { config });
  await vi.waitUntil(() => night.memory.maintenance.status().dream?.running === false, { timeout: 60_000 });
  await night.say(at(21, 10), 'We decided to use Postgres for the invoices.');
  await night.memory.maintenance.close();
  const passes = await disk.snapshots.list();

  disk.nowMs = at(24, 9);
  const later = await open(home, disk, { config });
  const isDone = (): boolean => Date.parse(later.memory.maintenance.status().dream?.at ?? '') === at(24, 9);
  await vi.waitUntil(isDone, { timeout: 60_000 });
  await later.memory.maintenance.close();
  expect(await disk.snapshots.list()).toHaveLength(passes.length + 1);
  const page = await later.page('2026-11-24');
  expect(page.match(/^## Brief.*/gm)).toEqual(['## Brief, 09:00: 3 days since 2026-11-21']);
  expect(page).toContain('Postgres');
  expect(page).not.toContain('Redis');

  // The clock jumps back over the pass.
  for (const nowMs of [at(24, 2), at(24, 3)]) {
    disk.nowMs = nowMs;
    const back = await open(home, disk, { config });
    await back.memory.maintenance.flush(60_000);
    await back.memory.maintenance.close();
  }
  expect(await later.page('2026-11-24')).toBe(page);
});

test('an edit of the inbox during a pass wins, and the brief is written on it', async () => {
  const home = await tempDir();
  const disk = createDisk();
  const dir = path.join(home, 'library');
  const files = await openPageFiles({ dir, nodesDir: path.join(home, 'nodes') });
  const inbox = path.join(dir, 'inbox', '2026-11-23.md');
  let edits = 0;
  const pageFiles: typeof files = {
    ...files,
    // Right before it is written somebody saves the page.
    replace: async (rewrite) => {
      if (rewrite.name.startsWith('inbox/') && edits === 0) {
        edits += 1;
        await appendFile(inbox, '  call Jonas\n');
      }
      return files.replace(rewrite);
    },
  };
  const rig = await open(home, disk, { pageFiles });
  await rig.say(at(22, 10), 'We decided to use Redis for the session cache.');
  disk.nowMs = at(23, 3);
  await files.replace({ name: 'inbox/2026-11-23.md', before: null, after: '# Inbox 2026-11-23\n\nmine\n' });
  await rig.memory.maintenance.dream({ dryRun: false });
  const page = await rig.page('2026-11-23');
  expect(edits).toBe(1);
  expect(page).toMatch(/^# Inbox 2026-11-23\n\n## Brief, 03:00[\s\S]*\n## Today\n\nmine\n {2}call Jonas\n$/);
  expect(page.match(/^## Brief/gm)).toHaveLength(1);
  await rig.memory.maintenance.close();
});

test.each([
  ['a folder that cannot be written', 'library/topics', 'a file'],
  ['a page that is no text', 'library/inbox/2026-11-23.md', Buffer.from([0xff, 0xfe, 0x00, 0x80])],
  ['an index that is a folder', 'library/INDEX.md', null],
])('a brief that meets %s is told by the next pass', async (_, name, content) => {
  const home = await tempDir();
  const file = path.join(home, name);
  const rig = await open(home);
  await rig.say(at(22, 10), 'We decided to use Redis for the session cache.');
  await mkdir(path.dirname(file), { recursive: true });
  await (content === null ? mkdir(file) : writeFile(file, content));
  rig.disk.nowMs = at(23, 3);
  const first = await rig.memory.maintenance.dream({ dryRun: false });
  expect(phase(first, 'brief')).toBe("left to the next pass: the day's inbox page cannot be written");
  expect(first.pages.problems.map(({ file: named }) => named)).toEqual([file]);
  expect(rig.memory.maintenance.status().problems.map(({ file: named }) => named)).toEqual(
    name.startsWith('library/inbox') ? [] : [file],
  );
  if (content !== null) expect(await readFile(file)).toEqual(Buffer.from(content));
  await rename(file, `${file}.mine`);
  rig.disk.nowMs = at(24, 3);
  await rig.memory.maintenance.dream({ dryRun: false });
  const page = await rig.page('2026-11-24');
  expect(page).toContain('Redis');
  expect(page).toMatch(/\d statement\w? added/);
  expect(rig.memory.maintenance.status().problems).toEqual([]);
  await rig.memory.maintenance.close();
});

test('rollback takes the brief back, and the next one tells the same again', async () => {
  const rig = await open();
  await rig.say(at(22, 10), 'We decided to use Redis for the session cache.');
  rig.disk.nowMs = at(23, 3);
  const { snapshot } = await rig.memory.maintenance.dream({ dryRun: false });
  const page = await rig.page('2026-11-23');
  await appendFile(path.join(rig.dir, 'inbox', '2026-11-23.md'), '- 09:00 “Check”\n');
  await rig.memory.maintenance.rollback(snapshot ?? '');
  expect(await rig.page('2026-11-23')).toBe('# Inbox 2026-11-23\n\n## Today\n\n- 09:00 “Check”\n');
  await rig.memory.maintenance.dream({ dryRun: false });
  expect(await rig.page('2026-11-23')).toBe(`${page}- 09:00 “Check”\n`);
  await rig.memory.maintenance.close();
});

test('what is removed from memory leaves the briefs that quoted it', async () => {
  const rig = await open();
  await rig.say(at(22, 10), 'We decided to use Redis for the session cache.');
  await rig.say(at(22, 12), 'We decided to use Postgres for the invoices.');
  rig.disk.nowMs = at(23, 3);
  await rig.memory.maintenance.dream({ dryRun: false });
  const page = path.join(rig.dir, 'inbox', '2026-11-23.md');
  await writeFile(page, `${await readFile(page, 'utf8')}mine: Redis\n`);
  const [node] = rig.memory.library.list({}).filter(({ summary }) => summary.includes('Redis'));
  await rig.memory.library.remove([node?.node_id ?? '']);
  const left = await rig.page('2026-11-23');
  expect(left.match(/^.*Redis.*$/gm)).toEqual(['mine: Redis']);
  expect(left).toContain('Postgres');
  await rig.memory.maintenance.close();
});

test('relative dates are dates by the clock of their turn, in pages and brief', async () => {
  const rig = await open();
  // The 23rd of November 2026 is a Monday.
  const saidMs = new Date(2026, 10, 18, 10).getTime();
  await rig.say(saidMs, 'We decided to drop Redis by next Friday.');
  await rig.say(saidMs + 2 * HOUR, 'Yesterday we switched the invoices to Postgres.');
  rig.disk.nowMs = at(23, 3);
  await rig.memory.maintenance.dream({ dryRun: false });
  const { texts } = await (await openPageFiles({ dir: rig.dir, nodesDir: '/' })).load();
  for (const folder of ['topics/', 'inbox/']) {
    const text = [...texts].flatMap(([name, own]) => (name.startsWith(folder) ? [own] : [])).join('\n');
    expect(text).toContain('next Friday (2026-11-27)');
  }
  expect(await rig.page(localDay(at(23, 3)))).toContain('Yesterday (2026-11-17) we switched');
  await rig.memory.maintenance.close();
});
