import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, createTestHome, type TestHome } from '../helpers/cli.ts';
import { mountSmallDisk } from '../helpers/small-disk.ts';

let home: TestHome;

beforeAll(async () => {
  home = await createTestHome();
  mkdirSync(path.join(home.user, 'p'));
  writeFileSync(path.join(home.user, 'p', 'notes.md'), '# Notes\n\nThe port is 7411.\n');
});

afterAll(async () => {
  await home.close();
});

/** What failed and what to do next; `status --json` says it in its document. */
const SAID = /^(?:comet-cc|error|Usage): |is not running/;

const words = (command: string): string[] => command.split(' ').filter((word) => word !== '');

async function expectCode(command: string, code: number): Promise<string> {
  const isTold = code === 0 || command === 'status --json';
  const done = await home.run(words(command), { cwd: path.join(home.user, 'p') });
  expect({ command, code: done.code, stderr: isTold ? '' : done.stderr }).toEqual({
    command,
    code,
    stderr: isTold ? '' : expect.stringMatching(SAID),
  });
  // Data alone stands on stdout: there is none where a command fails, but what `status` knows.
  if (code !== 0 && !command.startsWith('status')) expect(done.stdout).toBe('');
  if (words(command).includes('--json') && done.stdout !== '') expect(() => JSON.parse(done.stdout)).not.toThrow();
  return done.stdout;
}

describe('without a daemon', () => {
  it.each([
    ...[
      'status',
      'status --json',
      'memory ls',
      'memory ls --json',
      'memory show mem_1',
      'memory search x',
      'memory about',
    ],
    ...['memory why mem_1', 'memory edit mem_1 --set importance=HIGH', 'memory rm mem_1 --yes', 'memory pin mem_1'],
    ...[
      'memory unpin mem_1',
      'memory forget --session s --yes',
      'memory rollback',
      'memory rollback x',
      'memory export',
    ],
    ...[
      'memory import notes.md',
      'memory import claude --dry-run',
      'memory reindex',
      'memory stats',
      'memory restore s',
    ],
    ...['session ls', 'session show', 'session show s', 'session brief', 'session close', 'explain', 'explain --list'],
    ...['flush', 'dream', 'dream --dry-run', 'savings'],
  ])('%s: 3', async (command) => {
    await expectCode(command, 3);
  });

  it.each([
    ...['--version', '--help', 'stop', 'logs', 'env --shell json', 'service status', 'hooks status', 'editor status'],
    ...['hooks status --json', 'editor status --json', 'statusline', 'completion bash', 'editor uninstall cursor'],
    ...['pause --project . --for 1h', 'resume', 'hooks uninstall', 'editor uninstall vscode', 'uninstall-ca'],
  ])('%s: 0', async (command) => {
    await expectCode(command, 0);
  });
});

describe('wrong usage', () => {
  it.each([
    ...['', 'nonsense', 'memory', 'memory nonsense', 'memory ls --nonsense', 'memory ls extra', 'memory show'],
    ...['memory show mem_1 --depth 7', 'memory ls --since soon', 'memory ls --limit none', 'memory ls --importance x'],
    ...['memory search', 'memory search x --top 0', 'memory export --format pdf', 'memory forget', 'env --shell tcsh'],
    ...[
      'editor install emacs',
      'editor uninstall emacs',
      'hooks install --scope all',
      'pause --for ever',
      'flush --timeout x',
    ],
    ...['start --port 0x', 'explain a b', 'session show a b', 'completion tcsh'],
    ...['inbox --date 2026-02-30', 'share init foo://x --scope me', 'config set trim.mode none'],
    ...['savings --since 2d', 'install-ca --nonsense', 'memory edit mem_1 --set importance'],
  ])('%s: 2', async (command) => {
    await expectCode(command, 2);
  });
});

it('names what is wrong in the words of the command line', async () => {
  const said = async (command: string): Promise<string> => (await home.run(words(command))).stderr;
  expect(await said('memory ls --nonsense')).toContain('(comet-cc memory ls --help shows how to use it)');
  expect(await said('nonsense')).toContain('(comet-cc --help lists everything)');
  expect(await said('inbox --date 2026-02-30')).toContain('--date expects a day');
  expect(await said('share init foo://x --scope me')).toContain('foo://x: expected s3://');
  // As of a variable of a script that is empty.
  for (const command of ['memory show', 'session show', 'session close', 'memory restore', 'task done', 'todo done'])
    expect(await home.run([...words(command), ''])).toMatchObject({
      code: 2,
      stderr: 'comet-cc: expected an id (got "")\n',
    });
  for (const command of ['pause --project', 'project join --from', 'project join', 'share init --scope me --yes'])
    expect(await home.run([...words(command), ''])).toMatchObject({
      code: 2,
      stderr: 'comet-cc: expected a folder (got "")\n',
    });
  const blank = await home.run(['todo', 'add', ' ']);
  expect([blank.code, blank.stderr]).toEqual([2, expect.stringContaining('todo add expects a sentence')]);
});

describe('with a daemon', () => {
  beforeAll(async () => {
    await home.json(['start', '--json']);
  });

  it('says so where a session has no request', async () => {
    expect((await home.run(['explain', '--session', 's'])).stderr).toContain('no request of session s is kept');
  });

  it.each(['explain', 'explain --session', 'memory ls --session', 'memory rollback'])(
    '%s of an empty or endless id: in words of the command line',
    async (command) => {
      const said = async (id: string) => home.run([...words(command), id]);
      expect(await said('')).toMatchObject({ code: 2, stderr: expect.stringContaining(': expected an id (got "")\n') });
      expect(await said('x'.repeat(201))).toMatchObject({ code: 2, stderr: expect.stringContaining('no id is that') });
    },
  );

  it('fails where its own ontology file is there already', async () => {
    await expectCode('ontology init', 0);
    await expectCode('ontology init', 1);
  });

  it.each([
    ...['memory show mem_1', 'memory why mem_1', 'memory edit mem_1 --set importance=HIGH', 'memory rm mem_1 --yes'],
    ...['memory pin mem_1', 'memory restore s', 'memory rollback nothing', 'session show', 'session show s'],
    ...['session brief s', 'session close s', 'explain', 'explain r', 'explain --session s'],
  ])('%s: 4', async (command) => {
    await expectCode(command, 4);
  });

  it.each([
    ...['status --json', 'memory ls --json', 'memory search x --json', 'memory about --json', 'memory stats --json'],
    ...[
      'session ls --json',
      'explain --list --json',
      'memory export --format jsonl',
      'flush',
      'start --json',
      'memory ls',
    ],
    ...['dream --dry-run --json', 'memory reindex', 'memory rollback', 'doctor --json', 'memory about', 'statusline'],
  ])('%s: 0', async (command) => {
    const isBad = command.startsWith('doctor'); // It tells of this machine.
    if (isBad) expect([0, 1]).toContain((await home.run(words(command))).code);
    else await expectCode(command, 0);
  });

  it.each(['savings', 'explain --list', 'memory about'])('%s starts it again', async (command) => {
    await expectCode('stop --now', 0);
    await expectCode(command, 0);
  });
});

it('says what to do in a folder that was removed', () => {
  const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$1" todo';
  const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, CLI], {
    env: home.env,
    cwd: home.user,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/^comet-cc: .* was removed; .*\n$/) });
});

it('uninstall removes a home that nothing is left in', async () => {
  const env = { COMET_CC_HOME: path.join(home.user, 'empty') };
  for (const command of ['hooks install', 'hooks uninstall', 'uninstall --yes'])
    expect(await home.run(words(command), { env })).toMatchObject({ code: 0 });
  expect(existsSync(env.COMET_CC_HOME)).toBe(false);
});

it.skipIf(!existsSync('/dev/full')).each(['--help', 'config --all', 'config --json'])(
  '%s on a full disk: 1, in one line',
  (command) => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [CLI, ...words(command)], {
      env: home.env,
      cwd: home.user,
      encoding: 'utf8',
      stdio: ['ignore', full, 'pipe'],
    });
    closeSync(full);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(
        /^comet-cc: the output cannot be written: ENOSPC: .*; check space and permissions\n$/,
      ),
    });
  },
);

it('names a home that has no space left, and the file that had no room', async ({ skip }) => {
  const disk = mountSmallDisk(2) ?? skip('needs root');
  try {
    disk.fill();
    const run = (command: string) => home.run(words(command), { env: { COMET_CC_HOME: disk.dir } });
    expect((await run('doctor')).stdout).toContain(`problem home       ${disk.dir}: no space is left on its disk`);
    for (const [command, file] of [
      ['pause', 'paused.json'],
      ['config set inject.costShare 0.01', 'config.json'],
    ] as const)
      expect(await run(command)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(`ENOSPC: .* '${path.join(disk.dir, file)}'; check space and permissions`),
      });
  } finally {
    disk.close();
  }
});
