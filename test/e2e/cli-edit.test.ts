import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { makeNode } from '../helpers/nodes.ts';

interface Node {
  readonly node_id: string;
  readonly summary: string;
  readonly recall_mode: string;
}

const renew = { text: 'Renew the key of the gateway', origin: 'user', turn: '' } as const;
const ended = { ...renew, closed: { at: '2026-03-01T11:15:00.000Z', as: 'done' } } as const;
const first = makeNode({ turns: [], written_by: 'claude', open: [renew] });
const deploy = { summary: 'deploy with make ship', open: [ended] };
const second = makeNode({ node_id: 'mem_20260301_111500_00000b', ...deploy, turns: [] });
const jsonl = ['{"comet-cc-export":1}', ...[first, second].map((node) => JSON.stringify({ node }))].join('\n');

let home: TestHome;

beforeAll(async () => {
  home = await createHomeWithCerts();
  await home.json(['start', '--json']);
  await writeFile(path.join(home.user, 'in.jsonl'), jsonl);
});

afterAll(() => home.close());

const show = async (id: string): Promise<Node> => (await home.json(['memory', 'show', id, '--json'])) as Node;

/** An editor that does what `script` says to the file it is given. */
async function editor(name: string, script: string): Promise<string> {
  const file = path.join(home.user, `${name}.mjs`);
  await writeFile(
    file,
    `import { readFileSync, writeFileSync } from 'node:fs';
\nconst file = process.argv[2];\n${script}`,
  );
  return `"${process.execPath}" '${file}'`;
}

async function nodeFile(): Promise<string> {
  const dir = path.join(home.home, 'memory', 'nodes');
  const [file] = (await readdir(dir, { recursive: true })).filter((name) => name.endsWith('.md'));
  return path.join(dir, file as string);
}

describe('memory by hand', () => {
  it('import, export and import again: the same memory, byte for byte', async () => {
    expect(await home.json(['memory', 'import', 'in.jsonl', '--as', 'export', '--yes', '--json'])).toMatchObject({
      added: 2,
      replaced: 0,
    });
    const { stdout: md } = await home.run(['memory', 'export']);
    await home.run(['memory', 'export', '--format', 'jsonl', '--out', 'out.jsonl']);
    expect(await home.run(['memory', 'export', '--out', '/nowhere/out.md'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^comet-cc: \/nowhere\/out\.md cannot be written \(ENOENT\); name a file .*\n$/),
    });
    expect(await readFile(path.join(home.user, 'out.jsonl'), 'utf8')).toContain(first.summary);
    await writeFile(path.join(home.user, 'in.md'), md);
    expect(await home.json(['memory', 'import', 'in.md', '--as', 'export', '--json'])).toMatchObject({
      added: 0,
      unchanged: 2,
    });
    for (const name of ['in.md', 'out.jsonl']) {
      const plain = await home.run(['memory', 'import', name]);
      expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining('import it with --as export') });
    }
    expect((await home.run(['memory', 'import', 'nowhere.md'])).code).toBe(4);
    await writeFile(path.join(home.user, 'bad.md'), md.replace(/\norigin: /, '\nimportance: HUGE$&'));
    const other = await createHomeWithCerts();
    await other.json(['start', '--json']);
    const file = path.join(home.user, 'in.md');
    const { stderr } = await other.run(['memory', 'import', file, '--as', 'export']);
    expect(stderr).toContain('nothing in it counts as said by you or Claude; if the file is yours: comet-cc memory');
    await other.close();
    const bad = await home.run(['memory', 'import', 'bad.md', '--as', 'export']);
    expect(bad).toMatchObject({ code: 1, stdout: '' });
    expect(bad.stderr).toMatch(/line \d+: mem_\w+: importance/);
  });

  it('edit opens the editor on the section, takes what validates, and keeps what does not', async () => {
    const EDITOR = await editor('good', "writeFileSync(file, readFileSync(file, 'utf8').replace('5433', '6001'));");
    const done = await home.run(['memory', 'edit', first.node_id], { env: { EDITOR } });
    expect(done).toMatchObject({ code: 0, stdout: `changed ${first.node_id}\n` });
    expect((await show(first.node_id)).summary).toContain('6001');
    const unchanged = await home.run(['memory', 'edit', first.node_id], { env: { EDITOR: await editor('idle', '') } });
    expect(unchanged).toMatchObject({ code: 0, stdout: '' });
    const broken = await editor(
      'broken',
      "writeFileSync(file, readFileSync(file, 'utf8').replace(/origin: .*/, 'origin: HUGE'));",
    );
    const failed = await home.run(['memory', 'edit', first.node_id], { env: { VISUAL: broken } });
    expect(failed.code).toBe(1);
    const [, kept] = /your text is in (\S+)/.exec(failed.stderr) ?? [];
    expect(await readFile(kept as string, 'utf8')).toContain('HUGE');
    await rm(path.dirname(kept as string), { recursive: true });
    const nobody = await home.run(['memory', 'edit', first.node_id]);
    expect(nobody.code).toBe(2);
    expect(nobody.stderr).toContain('--set');
    const crash = await home.run(['memory', 'edit', first.node_id], {
      env: { EDITOR: await editor('crash', 'process.exit(3);') },
    });
    expect(crash.stderr).toContain('ended with 3');
  });

  it('show tells an item as done that a later memory ended, and edit --set of the same changes nothing', async () => {
    expect((await home.run(['memory', 'show', first.node_id])).stdout).toMatch(
      /\nDone or dropped\n. Renew the key of the gateway \(done, 2026-03-01\)/,
    );
    expect((await home.run(['memory', 'edit', first.node_id, '--set', 'importance=MED'])).stdout).toBe('');
  });

  it('edit --set changes fields, pin and unpin change back, rollback undoes', async () => {
    expect((await home.run(['memory', 'edit', second.node_id, '--set', 'importance=HIGH'])).code).toBe(0);
    expect((await home.run(['memory', 'edit', second.node_id, '--set', 'importance=HUGE'])).code).toBe(2);
    expect((await home.run(['memory', 'edit', second.node_id, '--set', 'nothing'])).code).toBe(2);
    await home.run(['memory', 'pin', second.node_id]);
    expect((await show(second.node_id)).recall_mode).toBe('passive');
    expect((await home.run(['memory', 'unpin', second.node_id])).stdout).toContain('unpinned mem_');
    const [newest] = (await home.json(['memory', 'rollback', '--json'])) as { id: string; reason: string }[];
    expect(newest?.reason).toBe('edit');
    expect((await home.run(['memory', 'rollback'])).stdout).toContain(newest?.id);
    expect((await home.run(['memory', 'rollback', newest?.id as string])).code).toBe(0);
    expect(await show(second.node_id)).toMatchObject({ importance: 'MED' });
    expect((await home.run(['memory', 'rollback', '1999'])).code).toBe(4);
  });

  it('search shows the nearest where nothing fits', async () => {
    const query = 'the ship of the zebra museum in Antwerp';
    const hits = (await home.json(['memory', 'search', query, '--json'])) as { node_id: string; fits: boolean }[];
    expect(hits.map(({ node_id, fits }) => [node_id, fits])).toEqual([[second.node_id, false]]);
    const { stdout, stderr } = await home.run(['memory', 'search', query]);
    expect(stdout).toContain(second.node_id.slice(-6));
    expect(stderr).toBe('nothing fits well; the nearest:\n');
  });

  it('pause and pin say where a folder is not on this machine', async () => {
    const note = /^there is no folder \/no\/such here/;
    for (const args of [['pause'], ['memory', 'pin', second.node_id]]) {
      const { code, stderr } = await home.run([...args, '--project', '/no/such']);
      expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringMatching(note) });
    }
    expect((await home.run(['pause', '--project', home.user])).stderr).toBe('');
    await home.run(['memory', 'unpin', second.node_id]);
    expect(await show(second.node_id)).not.toHaveProperty('pinned_in');
    await home.run(['resume']);
  });

  it('a hand edit is followed, a broken one named by status and doctor', async () => {
    const file = await nodeFile();
    await writeFile(file, (await readFile(file, 'utf8')).replace('make ship', 'make fly'));
    await expect.poll(async () => (await show(second.node_id)).summary).toContain('make fly');
    const sound = await readFile(file, 'utf8');
    await writeFile(file, sound.replace(/\norigin: /, '\nimportance: HUGE$&'));
    await expect.poll(async () => (await home.run(['status'])).stdout).toContain('importance');
    const doctor = await home.run(['doctor']);
    expect(doctor.stdout).toMatch(new RegExp(`problem store.*${path.basename(file)}: line \\d+: mem_\\w+: importance`));
    await writeFile(file, sound);
    expect((await home.run(['flush'])).code).toBe(0);
    expect((await home.run(['doctor'])).stdout).toMatch(/ok {6}store/);
  });

  it('reindex, stats and why answer', async () => {
    expect(await home.json(['memory', 'reindex', '--json'])).toEqual({ nodes: 2 });
    expect((await home.run(['memory', 'search', 'make fly'])).stdout).toContain(second.node_id.slice(-6));
    expect(await home.json(['memory', 'stats', '--json'])).toMatchObject({
      nodes: 2,
      index: { nodes: 2 },
      bytes: { nodes: expect.any(Number), index: expect.any(Number) },
    });
    expect((await home.run(['memory', 'stats'])).stdout).toContain('2 (0 pinned');
    expect(await home.json(['memory', 'why', first.node_id, '--json'])).toMatchObject({ written_by: 'user' });
    expect((await home.run(['memory', 'why', 'mem_1999'])).code).toBe(4);
  });
});
