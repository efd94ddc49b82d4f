import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeTranscript } from '../helpers/claude-home.ts';
import { createTestHome, type TestHome } from '../helpers/cli.ts';

const DAY_MS = 86_400_000;
const TOOL = { name: 'Read', input: { file_path: '/a' }, result: 'line of a file\n'.repeat(2_000) };

let home: TestHome;
let file: string;

beforeAll(async () => {
  home = await createTestHome();
  const turns = Array.from({ length: 30 }, (_, at) => ({
    prompt: `Read part ${at}.`,
    answer: 'Read.',
    atMs: Date.now() - DAY_MS + at * 60_000,
    tool: TOOL,
  }));
  file = writeTranscript(path.join(home.user, '.claude'), { sessionId: 's1', cwd: '/home/ada/shop', turns });
});

afterAll(async () => {
  await home.close();
});

it('savings --simulate says what memory would have saved, and writes nothing', async () => {
  const before = readFileSync(file, 'utf8');
  const report = await home.json(['savings', '--simulate', '--json']);
  expect(report).toMatchObject({
    kind: 'simulation',
    transcripts: 1,
    all: { sessions: 1, requests: 60 },
    assumptions: { models: [{ model: 'claude-opus-4-8', usd_per_million: 5 }], cache: { otherwise: '5m' } },
    problems: [],
  });
  const { all } = report as { all: { direct_usd: number; sent_usd: number; cost: number } };
  expect(all.sent_usd).toBeLessThan(all.direct_usd);
  expect(all.cost).toBeCloseTo(all.sent_usd / all.direct_usd);
  const { stdout } = await home.run(['savings', '--simulate']);
  expect(stdout).toMatch(/^1 session, /);
  expect(stdout).toContain('at API prices; with memory $');
  expect(stdout).toContain('assumed: ');
  expect(existsSync(home.home)).toBe(false);
  expect(readFileSync(file, 'utf8')).toBe(before);
});

it('takes another folder, and requests since a time', async () => {
  const projects = path.join(home.user, '.claude', 'projects');
  const whole = await home.json(['savings', '--simulate', '--json', '--projects', projects, '--since', '2d']);
  expect(whole).toMatchObject({ all: { requests: 60 } });
  const since = new Date(Date.now() - DAY_MS + 14.5 * 60_000).toISOString();
  const half = await home.json(['savings', '--simulate', '--json', '--since', since]);
  expect(half).toMatchObject({ all: { requests: 30 } });
});

it.each([
  [4, ['--simulate', '--projects', '/nowhere'], 'no conversation in /nowhere'],
  [4, ['--simulate', '--since', '1m'], 'since 1m; name'],
  [2, ['--since', '2d'], '--since goes with --simulate'],
  [2, ['--simulate', '--since', 'soon'], '--since expects'],
  [3, [], 'comet-cc start'],
])('exits with %i for savings %j', async (code, args, message) => {
  const done = await home.run(['savings', ...args]);
  expect(done).toMatchObject({ code, stdout: '' });
  expect(done.stderr).toContain(message);
});
