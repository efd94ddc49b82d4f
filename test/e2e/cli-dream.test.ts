import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { dreamNodes } from '../helpers/dream-nodes.ts';

let home: TestHome;
const exported = async (): Promise<string> => (await home.run(['memory', 'export', '--format', 'jsonl'])).stdout;

beforeAll(async () => {
  home = await createHomeWithCerts();
  await home.json(['start', '--json']);
  const nodes = dreamNodes().map((node) => JSON.stringify({ node: { ...node, project: home.user } }));
  await writeFile(path.join(home.user, 'in.jsonl'), ['{"comet-cc-export":1}', ...nodes].join('\n'));
  await home.json(['memory', 'import', 'in.jsonl', '--as', 'export', '--yes', '--json']);
  expect((await home.run(['flush'])).code).toBe(0);
});
afterAll(() => home.close());

it('dream tells what it would do, does it, does it once, and is taken back', async () => {
  const before = await exported();
  const dry = await home.json(['dream', '--dry-run', '--json']);
  expect(dry).toMatchObject({
    dry_run: true,
    snapshot: null,
    looked_at: 9,
    merged: [{ merged: [expect.any(String)] }, { merged: [expect.any(String), expect.any(String)] }],
  });
  expect((await home.run(['dream', '--dry-run'])).stdout).toMatch(
    /^(merged .*\n)+(grouped .*\n)+[\s\S]*would be 3 merged/,
  );
  expect(await exported()).toBe(before);

  const done = (await home.json(['dream', '--json', '--project', '.'])) as { snapshot: string; groups: unknown[] };
  expect(done).toMatchObject({ dry_run: false, snapshot: expect.any(String) });
  expect(done.groups.length).toBeGreaterThan(0);
  expect(await exported()).not.toBe(before);
  expect((await home.run(['status', '--long'])).stdout).toContain('dream');
  expect(await home.json(['dream', '--json'])).toMatchObject({ snapshot: null, looked_at: 0, merged: [], groups: [] });

  expect((await home.run(['memory', 'rollback', done.snapshot])).code).toBe(0);
  expect(await exported()).toBe(before);
});

it('dream names the pages that it skips, and inbox the day that it cannot read', async () => {
  const page = path.join(home.home, 'library', 'topics', 'half.md');
  await mkdir(path.dirname(page), { recursive: true });
  await writeFile(page, '---\ntitle: x');
  const dream = await home.run(['dream', '--dry-run']);
  expect(dream).toMatchObject({
    code: 0,
    stdout: expect.not.stringContaining('half.md'),
    stderr: expect.stringContaining('half.md: has a front matter without an end'),
  });
  const inbox = await home.run(['inbox', '--date', 'feb']);
  expect(inbox).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--date expects a day as 2026-11-24 (got "feb")'),
  });
});
