import { existsSync } from 'node:fs';
import { appendFile, chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { homePaths } from '../../../common/paths.ts';
import {
  findEntries,
  installEntries,
  readLinkedBlock,
  refreshLinkedBlock,
  uninstallEntries,
} from '../../../install/claude-code/index.ts';
import { withoutMarkedBlock } from '../../../install/index.ts';
import { readFolder, tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

async function openAt(dir: string) {
  const paths = homePaths(path.join(dir, 'home'));
  const file = path.join(dir, 'claude', 'CLAUDE.md');
  return {
    file,
    paths,
    link: (block: string) => installEntries(paths, 'library', file, { block }),
    unlink: () => uninstallEntries(paths, 'library', [file]),
    found: () => findEntries(paths, 'library', [file]),
    text: () => readFile(file, 'utf8'),
  };
}

describe('the part of the library in CLAUDE.md', () => {
  it('is written, refreshed and removed, and the file is byte for byte as before', { timeout: 60_000 }, async () => {
    const texts = fc.oneof(
      fc.constantFrom(
        '',
        '\n',
        'Use pnpm.',
        'Use pnpm.\n',
        'a\r\nb\r\n',
        'a\n\n\n',
        '{"a":1}',
        '<!-- mine -->\n',
        '\uFEFFa',
      ),
      fc.string({ maxLength: 20 }),
    );
    const blocks = fc.uniqueArray(
      fc.constantFrom('one', '## Library\n- two', 'x -->\n<!-- comet-cc library: end -->', ' '),
      {
        minLength: 1,
        maxLength: 3,
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.option(texts), blocks, async (before, parts) => {
        const dir = await tempDir();
        for (const name of ['claude', 'home']) await mkdir(path.join(dir, name), { mode: 0o700 });
        const { file, link, unlink, found, text } = await openAt(dir);
        if (before !== null) await writeFile(file, before, { mode: 0o640 });
        const was = await readFolder(dir);
        for (const part of parts) {
          expect((await link(part)).changed).toBe(true);
          expect((await link(part)).changed).toBe(false);
          expect((await text()).match(/comet-cc library: begin/g)).toHaveLength(1);
        }
        expect(await found()).toEqual([file]);
        expect(await unlink()).toEqual([file]);
        expect(await readFolder(dir)).toEqual(was);
        if (before !== null) expect((await stat(file)).mode & 0o777).toBe(0o640);
        expect([await found(), await unlink()]).toEqual([[], []]);
      }),
      { numRuns: 40 },
    );
  });

  it('keeps what the user writes around it, and goes without a record too', async () => {
    const { file, link, unlink, text } = await openAt(await tempDir());
    await link('one');
    await appendFile(file, 'Mine, below.\n');
    await link('two');
    expect(await text()).toMatch(/^<!-- comet-cc library: begin .*-->\ntwo\n.*end -->\nMine, below\.\n$/);
    await unlink();
    expect(await text()).toBe('Mine, below.\n');
    const other = await openAt(await tempDir());
    await mkdir(path.dirname(other.file));
    await link('three');
    await writeFile(other.file, await text());
    expect(await other.unlink()).toEqual([other.file]);
    expect(await other.text()).toBe('Mine, below.\n');
  });

  it('is refreshed where it is, and is never made', async () => {
    const eols = fc.constantFrom('\n', '\r\n');
    const around = fc.tuple(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }), eols);
    await fc.assert(
      fc.asyncProperty(around, async ([above, below, eol]) => {
        const { file, paths, link, text } = await openAt(await tempDir());
        await link('one');
        const part = await text();
        const given = `${above}${eol}${part}${below}`;
        await writeFile(file, given, { mode: 0o640 });
        expect(await refreshLinkedBlock(paths, async () => 'two')).toEqual([]);
        const own = given.includes('\r\n') ? '\r\n' : '\n';
        expect(await text()).toBe(given.replace('-->\none\n<', `-->${own}two${own}<`));
        expect(await readLinkedBlock(paths)).toBe(`${own}two${own}`);
        await writeFile(file, above + below);
        expect(await refreshLinkedBlock(paths, async () => 'three')).toEqual([]);
        expect([await text(), await readLinkedBlock(paths)]).toEqual([above + below, '']);
        await rm(file);
        expect(await refreshLinkedBlock(paths, async () => 'three')).toEqual([]);
        expect(existsSync(file)).toBe(false);
      }),
      { numRuns: 20 },
    );
  });

  it('that is out of date in a read-only or damaged file is named', async () => {
    const { file, paths, link, text } = await openAt(await tempDir());
    const refresh = () => refreshLinkedBlock(paths, async () => 'two');
    expect(await refresh()).toEqual([]);
    await link('one');
    const linked = await text();
    await chmod(file, 0o444);
    expect(await refresh()).toEqual([{ file, message: expect.stringContaining('read-only') }]);
    expect(await text()).toBe(linked);
    await chmod(file, 0o644);
    expect(await refresh()).toEqual([]);
    await writeFile(file, linked.replace('<!-- comet-cc library: end -->', ''));
    expect(await refresh()).toEqual([{ file, message: expect.stringContaining('no end') }]);
  });

  it('that lost its end is left as it is', async () => {
    const { file, link, unlink, text } = await openAt(await tempDir());
    await link('one');
    const broken = (await text()).replace(/<!-- comet-cc library: end -->/, '');
    await writeFile(file, broken);
    await expect(link('two')).rejects.toThrow('has no end');
    await expect(unlink()).rejects.toThrow('has no end');
    expect(await text()).toBe(broken);
    expect(() => withoutMarkedBlock(broken, file)).toThrow('CLAUDE.md has no end');
    expect(existsSync(file)).toBe(true);
  });
});
