import { appendFile, chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';

const PAGE = '---\ntitle: Printers\nscope: user\nupdated: 2026-03-01\n---\n\nAda has the key.\n';
let home: TestHome;
let dir: string;

beforeAll(async () => {
  home = await createHomeWithCerts({ COMET_CC_LLM: 'local' });
  dir = path.join(home.home, 'library');
  await mkdir(path.join(dir, 'topics'), { recursive: true });
  await writeFile(path.join(dir, 'topics', 'printers.md'), PAGE);
  await home.json(['start', '--json']);
});

afterAll(() => home.close());

describe('comet-cc library', () => {
  it('builds the index around pages that are there', async () => {
    const dry = await home.json(['library', 'build', '--dry-run', '--json']);
    expect(dry).toMatchObject({ dry_run: true, imported: { problems: [] }, pages: { changed: [], added: 0 } });
    await expect(readFile(path.join(dir, 'INDEX.md'))).rejects.toThrow('ENOENT');
    const { code, stdout } = await home.run(['library', 'build', '--no-import']);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('0 pages written') });
    expect(await readFile(path.join(dir, 'INDEX.md'), 'utf8')).toContain('[Printers](topics/printers.md)');
    expect(await readFile(path.join(dir, 'topics', 'printers.md'), 'utf8')).toBe(PAGE);
  });

  it('is searched beside the memories, as it is on disk now', async () => {
    const search = async (query: string) => (await home.json(['memory', 'search', query, '--json'])) as unknown[];
    const query = 'Where is the spare toner of the label printer?';
    expect(await search(query)).toEqual([]);
    const file = path.join(dir, 'topics', 'printers.md');
    await appendFile(file, '\n## Toner\n\nThe spare toner of the label printer is in locker 12.\n');
    const found = { kind: 'topic', node_id: 'topic:printers#toner', section: 'Toner', fits: true, origin: 'user' };
    const passage = 'The spare toner of the label printer is in locker 12.';
    expect(await search(query)).toMatchObject([{ ...found, passage }]);
    const { stdout } = await home.run(['memory', 'search', query]);
    expect(stdout).toBe(`${passage}\nPrinters, Toner  topic:printers#toner\n`);
    const shown = await home.run(['memory', 'show', 'topic:printers#toner']);
    expect(shown.stdout).toBe(`Printers\ntopics/printers.md\n\nToner\n${passage}\n`);
    const whole = (await home.json(['memory', 'show', 'topic:printers', '--json'])) as { lines: unknown };
    expect(whole.lines).toMatchObject([{ section: '', text: 'Ada has the key.' }, { section: 'Toner' }]);
    for (const id of ['topic:printers#ink', 'topic:none#toner', 'topic:../../x', 'topic:'])
      expect(await home.run(['memory', 'show', id])).toMatchObject({ code: 4, stdout: '' });
    await writeFile(file, PAGE);
    expect(await search(query)).toEqual([]);
  });

  it('is opened by the program of the desktop, and named where there is none', async () => {
    expect(await home.run(['library', 'open'])).toMatchObject({ code: 0, stdout: `${dir}\n` });
    const bin = path.join(home.user, 'bin');
    await mkdir(bin);
    for (const name of ['xdg-open', 'open'])
      await writeFile(path.join(bin, name), `#!/bin/sh\nprintf %s "$1" > '${bin}/opened'\n`, { mode: 0o755 });
    const env = { DISPLAY: ':0', PATH: `${bin}:${process.env['PATH']}` };
    expect(await home.json(['library', 'open', '--json'], { env })).toEqual({ dir, opened: true });
    expect(await readFile(path.join(bin, 'opened'), 'utf8')).toBe(dir);
  });

  it('is linked into CLAUDE.md and taken out again, the file as before', async () => {
    const file = path.join(home.user, '.claude', 'CLAUDE.md');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, 'Use pnpm.');
    const { stdout } = await home.run(['library', 'link']);
    expect(stdout).toContain(`${file} has the library now`);
    const linked = await readFile(file, 'utf8');
    expect(linked).toMatch(/^Use pnpm\.\n\n<!-- comet-cc library: begin[\s\S]*Printers[\s\S]*end -->\n$/);
    expect(await home.json(['library', 'link', '--json'])).toMatchObject({ changed: false });
    await home.run(['library', 'build']);
    const found = (await home.json(['memory', 'search', 'Printers pnpm', '--json'])) as { kind: string }[];
    expect(JSON.stringify(found.filter(({ kind }) => kind !== 'topic'))).not.toContain('Printers');
    const { id } = (await home.json(['task', 'add', 'Order spare toner', '--all', '--json'])) as { id: string };
    await expect.poll(() => readFile(file, 'utf8')).toContain('Order spare toner');
    await chmod(file, 0o444);
    await home.run(['task', 'done', id]);
    const named = `${file}: the library's part is out of date: the file is read-only`;
    await expect.poll(async () => (await home.run(['doctor'])).stdout).toContain(named);
    expect((await home.run(['status'])).stdout).toContain(named);
    await chmod(file, 0o644);
    await home.run(['task', 'rm', id, '--yes']);
    await expect.poll(() => readFile(file, 'utf8')).toBe(linked);
    expect((await home.run(['library', 'unlink'])).stdout).toContain('has no library now');
    expect(await readFile(file, 'utf8')).toBe('Use pnpm.');
  });

  it('lists what to look at, and says so in its exit code', async () => {
    const clean = await home.run(['library', 'lint']);
    expect(clean).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to look at') });
    const file = 'topics/printers.md';
    await appendFile(path.join(dir, file), '\nsee [this](none.md)\n');
    const { code, stdout } = await home.run(['library', 'lint', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual([
      { file, line: null, kind: 'dead_link', message: 'there is no topics/none.md' },
    ]);
    await writeFile(path.join(dir, 'topics', 'half.md'), '---\ntitle: Half');
    const message = 'has a front matter without an end';
    expect((await home.run(['dream'])).stderr).toContain(`skipped ${path.join(dir, 'topics', 'half.md')}: ${message}`);
    expect((await home.run(['library', 'lint'])).stdout).toContain(`topics/half.md  unreadable: ${message}\n`);
  });
});
