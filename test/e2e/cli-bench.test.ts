import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeTranscript } from '../helpers/claude-home.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { bytesBelow } from '../helpers/disk-rig.ts';

const TURNS = [
  ['How are carts expired?', 'Expired carts are deleted by the nightly job after 30 days without an order.'],
  ['What about the lock?', 'The nightly importer takes a lock of its own because two runs once wrote the same ledger.'],
  ["let's drop the old balancer of the staging shop, it never worked", 'The balancer of staging is gone.'],
] as const;

let home: TestHome;
let temp: string;

beforeAll(async () => {
  home = await createHomeWithCerts();
  temp = path.join(home.user, 'tmp');
  await mkdir(temp);
});

afterAll(async () => {
  await home.close();
});

/** Size and content of every file that a command could have written. */
function contents(dir: string): string[] {
  return [...bytesBelow(dir)]
    .filter(([file]) => !/[\\/](?:run|logs)[\\/]/.test(file))
    .map(([file, bytes]) => `${file} ${createHash('sha256').update(bytes).digest('hex')}`);
}

it('measures recall on imported sessions, with and without a daemon, and writes nothing', async () => {
  const empty = await home.run(['bench', '--json']);
  expect(empty).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('memory import claude') });

  const claudeDir = path.join(home.user, 'claude');
  const turns = TURNS.map(([prompt, answer], at) => ({ prompt, answer, atMs: Date.UTC(2026, 0, 1, 8, at) }));
  writeTranscript(claudeDir, { sessionId: 'session-1', cwd: home.user, turns });
  await home.json(['start', '--json']);
  await home.json(['memory', 'import', 'claude', '--json'], { env: { CLAUDE_CONFIG_DIR: claudeDir } });
  await home.run(['flush']);

  // The engine folds its index in the background, so that part of the home is compared only when it is stopped.
  const written = () => contents(home.home).filter((line) => !line.startsWith(path.join(home.home, 'index')));
  const before = written();
  const report = await home.json(['bench', '--json'], { env: { TMPDIR: temp } });
  expect(report).toMatchObject({
    turns: 3,
    sessions: 1,
    projects: 1,
    questions: 3,
    recall: { right_in_5: 3, answered: 3 },
    bm25: { right_in_5: 3, answered: 3 },
    by_kind: { value: { questions: 1 }, reason: { questions: 1 }, decision: { questions: 1 } },
    misses: [],
  });
  expect(written()).toEqual(before);
  await home.run(['stop']);
  const stopped = contents(home.home);
  const shown = await home.run(['bench', '--limit', '2'], { env: { TMPDIR: temp } });
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toMatch(/turns 3, sessions 1, projects 1[\s\S]*BM25[\s\S]*all +2 +2/);
  expect(contents(home.home)).toEqual(stopped);
  expect(readdirSync(temp)).toEqual([]);

  const elsewhere = await home.run(['bench', '--project', '/'], { env: { TMPDIR: temp } });
  expect(elsewhere.code).toBe(4);
  expect((await home.run(['bench', '--budget', '3'])).code).toBe(2);
});

it.each(['SIGINT', 'SIGHUP'] as const)('leaves nothing in the temporary folder at %s', async (signal) => {
  const running = home.spawn(['bench', '--json'], { env: { TMPDIR: temp } });
  await expect.poll(() => readdirSync(temp), { interval: 5 }).not.toEqual([]);
  running.child.kill(signal);
  expect(await running.result).toMatchObject({ code: 130 });
  expect(readdirSync(temp)).toEqual([]);
});
