import { once } from 'node:events';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TaskView } from '../../memory/index.ts';
import { CLI, createHomeWithCerts } from '../helpers/cli.ts';
import { createLiveRig, type LiveRig, openTerminal } from '../helpers/live-rig.ts';
import { openMcp } from '../helpers/mcp-client.ts';
import { CAN_MOVE, createMovingMachine } from '../helpers/time-zone.ts';

const SHOP = '/home/ada/shop';

let rig: LiveRig;

beforeAll(async () => {
  rig = await createLiveRig({ COMET_CC_LLM: 'off', COMET_CC_TASKS_QUIET_HOURS: '' });
});

afterAll(() => rig.close());

const task = async (...args: string[]): Promise<TaskView> =>
  (await rig.home.json(['task', ...args, '--json'])) as TaskView;
const list = async (...args: string[]): Promise<TaskView[]> =>
  (await rig.home.json(['task', 'ls', '--project', SHOP, ...args, '--json'])) as TaskView[];
const inbox = async (): Promise<string> => ((await rig.home.json(['inbox', '--json'])) as { text: string }).text;

async function inboxHas(text: string): Promise<void> {
  await expect.poll(inbox).toContain(text);
}

/** Without the client's first block, which differs in each request. */
const getSystem = ({ body }: { body: Record<string, unknown> | null }): string =>
  JSON.stringify((body?.['system'] as unknown[] | undefined)?.slice(1));
const lastSystem = (): string => getSystem(rig.standin.requests.at(-1) ?? { body: null });

describe('comet-cc task', () => {
  it('adds, lists, edits and finishes tasks of a project', async () => {
    const added = await task(
      'add',
      'Check dispenser 47',
      '--project',
      SHOP,
      '--at',
      'tomorrow 9:00',
      '--priority',
      'high',
    );
    expect(added).toMatchObject({ title: 'Check dispenser 47', mode: 'notify', priority: 'high', origin: 'user' });
    expect(added.next).toMatch(/T09:00:00/);
    const later = await task('add', 'Call back', '--project', SHOP, '--depends-on', added.id);
    expect((await list()).map(({ id, waits_for: waits }) => [id, waits])).toEqual([
      [added.id, []],
      [later.id, [added.name]],
    ]);
    const { stdout } = await rig.home.run(['task', 'ls', '--project', SHOP]);
    expect(stdout).toContain('! Check dispenser 47');
    expect(await task('edit', added.id, '--at', 'friday 14:00')).toMatchObject({ id: added.id, origin: 'user' });
    const file = path.join(rig.home.user, 'export.jsonl');
    await rig.home.run(['memory', 'export', '--format', 'jsonl', '--out', file]);
    await rm(later.file);
    const bringBack = async (...flags: string[]): Promise<string> =>
      (await rig.home.run(['memory', 'import', file, '--as', 'export', '--yes', ...flags])).stdout;
    expect(await bringBack()).toContain('0 added, 0 replaced, 0 as they were; 0 briefs, 0 pages, 1 task\n');
    await task('done', added.id.slice(0, 5));
    await task('rm', later.name, '--yes');
    expect(await bringBack()).toContain('0 tasks\n1 skipped because you removed them; --again imports them');
    expect(await list()).toEqual([]);
    expect(await bringBack('--again')).toContain(', 1 task\n');
    await task('rm', later.name, '--yes');
    expect((await list('--done')).map(({ id, status }) => [id, status])).toEqual([[added.id, 'done']]);
    expect(await readdir(path.join(rig.home.home, 'library/tasks/active'))).toEqual([]);
  });

  it('makes one of an open item, once, which is done with it', async () => {
    await rig.home.json(['todo', 'add', 'Send Anna the invoices of dispenser 52', '--project', SHOP, '--json']);
    const todo = async (): Promise<{ id: string }[]> =>
      ((await rig.home.json(['todo', '--project', SHOP, '--json'])) as { id: string; text: string }[]).filter(
        ({ text }) => text.includes('dispenser 52'),
      );
    const [item] = await todo();
    const { id } = await task('add', '--from', item?.id ?? '');
    expect(await task('show', id)).toMatchObject({ project: SHOP });
    const again = await rig.home.run(['task', 'add', '--from', item?.id ?? '']);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining(`task ${id}`) });
    await task('done', id);
    expect(await todo()).toEqual([]);
    await task('reopen', id);
    expect(await todo()).toEqual([item]);
    await task('done', id);
    await task('block', id);
    expect(await todo()).toEqual([item]);
    await rig.home.json(['todo', 'drop', String(item?.id), '--json']);
    await task('reopen', id);
    expect(await todo()).toEqual([]);
  });

  it('takes the sentence that a title was made of for the task', async () => {
    const statement = 'Remind me tomorrow to call Ines';
    await rig.home.json(['todo', 'add', statement, '--project', SHOP, '--json']);
    const todo = async (): Promise<{ id: string }[]> =>
      ((await rig.home.json(['todo', '--project', SHOP, '--json'])) as { id: string; text: string }[]).filter(
        ({ text }) => text === statement,
      );
    const [item] = await todo();
    const { id, file } = await task('add', 'Call Ines', '--project', SHOP);
    await writeFile(file, (await readFile(file, 'utf8')).replace('title:', `statement: ${statement}\ntitle:`));
    expect((await rig.home.run(['task', 'show', id])).stdout).toContain(`said: ${statement}\n`);
    expect(await rig.home.run(['task', 'add', '--from', item?.id ?? ''])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`task ${id}`),
    });
    await task('done', id);
    expect(await todo()).toEqual([]);
    await task('reopen', id);
    expect(await todo()).toEqual([item]);
  });

  it('refuses what it cannot read, by the usual exit codes', async () => {
    for (const [code, ...args] of [
      [2, 'add', 'x', '--at', 'feb 30'],
      [2, 'add', 'x', '--at', '1970-01-01'],
      [2, 'add', 'x', '--mode', 'shout'],
      [2, 'add', 'x', '--topic', '../../x'],
      [2, 'add'],
      [2, 'add', 'x', '--at', '2027-02-30T09:00:00+01:00'],
      [4, 'show', 'ffffff'],
      [4, 'done', '77'],
    ] as const) {
      expect(await rig.home.run(['task', ...args].map(String)), args.join(' ')).toMatchObject({ code, stdout: '' });
    }
    for (const args of [['add'], ['edit', 'ffffff', '--title']]) {
      const { code, stderr } = await rig.home.run(['task', ...args, 'x'.repeat(301)]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^.*title: expected at most 300 characters.*\n/);
    }
    for (const day of ['yesterday', '2026-02-30', '../../x']) {
      const { code, stderr } = await rig.home.run(['inbox', '--date', day]);
      expect({ code, stderr }, day).toEqual({ code: 2, stderr: expect.stringContaining('a day') });
    }
  });
});

describe('a due task', () => {
  it('stands in the inbox and the status line', async () => {
    const { id } = await task('add', 'Stand-up', '--project', SHOP, '--at', 'now');
    await inboxHas(`“Stand-up” (task ${id})`);
    const input = JSON.stringify({ session_id: 's', cwd: SHOP });
    const line = (
      await rig.home.run(['statusline'], { stdin: input, env: { NO_COLOR: '1', COMET_CC_HOOK_MS: '20000' } })
    ).stdout;
    expect(line).toContain('due: Stand-up');
    // What is forgotten leaves no trace, so the log names no words.
    expect((await rig.filesWith('stand-up')).filter((file) => file.includes('/logs/'))).toEqual([]);
    await task('done', id);
  });

  it('that is a question is in the first request of the next session, once, and changes no prefix', async () => {
    const first = openTerminal(rig, { cwd: SHOP });
    await first.say('Hello.');
    const before = lastSystem();
    expect(before).not.toContain('Is 47 fixed?');
    const { id } = await task('add', 'Is 47 fixed?', '--project', SHOP, '--at', 'now', '--mode', 'question');
    const claude = { env: { CLAUDECODE: '1' } };
    const tool = [
      'task',
      'add',
      'Run the script',
      '--project',
      SHOP,
      '--at',
      'now',
      '--mode',
      'question',
      '--priority',
      'high',
    ];
    expect((await rig.home.run(tool, claude)).code).toBe(0);
    await inboxHas('Is 47 fixed?');
    await inboxHas('“Run the script” (noted by a tool;');
    await first.say('Go on.');
    expect(lastSystem()).toBe(before);
    const next = openTerminal(rig, { cwd: SHOP });
    await next.say('Good morning.');
    const asked = lastSystem();
    expect(asked).toContain('“Is 47 fixed?”');
    expect(asked).toContain(`comet-cc task done ${id}`);
    await next.say('And then?');
    expect(lastSystem()).toBe(asked);
    await openTerminal(rig, { cwd: SHOP }).say('Good evening.');
    expect(lastSystem()).not.toContain('“Is 47 fixed?”');
    expect(rig.standin.requests.map(getSystem).join()).not.toContain('Run the script');
    expect(rig.standin.refused).toEqual([]);
  });

  it('that was missed while the engine was down surfaces once and late', async () => {
    const { id, file } = await task('add', 'Nightly', '--project', SHOP, '--at', 'in 1 hour');
    await rig.home.run(['stop', '--now']);
    const text = await readFile(file, 'utf8');
    const past = new Date(Date.now() - 3_600_000).toISOString();
    await writeFile(file, text.replace(/trigger: .*/, `trigger: ${past}`).replace(/created: .*/, `created: ${past}`));
    await rig.home.json(['start', '--json']);
    await inboxHas(`“Nightly” (task ${id}), late: was due`);
    await rig.home.run(['restart']);
    expect((await inbox()).split('Nightly')).toHaveLength(2);
  });
});

it.skipIf(!CAN_MOVE)('reads a time in the zone that the machine is in now', async () => {
  const machine = createMovingMachine('Europe/Lisbon');
  const home = await createHomeWithCerts({ COMET_CC_LLM: 'off' });
  try {
    const [code] = await once(machine.spawn([process.execPath, CLI, 'start'], home.env), 'exit');
    expect(code).toBe(0);
    const add = async (title: string): Promise<string | null> =>
      ((await home.json(['task', 'add', title, '--at', 'tomorrow 9:00', '--json'])) as TaskView).trigger;
    expect(await add('Call Ines')).toMatch(/T09:00:00\+0[01]:00$/);
    machine.moveTo('Asia/Tokyo');
    await expect.poll(() => add('Call Haruki')).toMatch(/T09:00:00\+09:00$/);
  } finally {
    await home.close();
    machine.close();
  }
});

it('MCP lists, adds and changes tasks of the project, marked as a tool’s', async () => {
  const mcp = await openMcp(rig.home, { cwd: rig.home.user, root: SHOP });
  try {
    const added = await mcp.call('add_task', { title: 'Rotate the key', at: 'tomorrow 9:00' });
    const [, id = ''] = /Added task ([0-9a-f]{6}), due /.exec(added) ?? [];
    expect(await mcp.call('list_tasks', {})).toContain(`- [${id}] Rotate the key (noted by a tool): active, notify`);
    expect(await mcp.call('update_task', { id, status: 'done' })).toContain(`Changed task ${id}`);
    expect(await mcp.call('add_task', { title: 'x', at: 'feb 30' })).toContain('ERROR');
    expect((await list('--done')).find((each) => each.id === id)).toMatchObject({ origin: 'tool', status: 'done' });
    const other = await task('add', 'Of another project', '--project', '/home/ada/other');
    expect(await mcp.call('update_task', { id: other.id, status: 'done' })).toContain('ERROR');
  } finally {
    await mcp.close();
  }
});
