import { existsSync } from 'node:fs';
import { appendFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { homePaths } from '../../../common/paths.ts';
import { findEntries, installEntries, uninstallEntries } from '../../../install/claude-code/index.ts';
import { withoutMarkedBlock } from '../../../install/index.ts';
import { readFolder, tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

async function openAt(dir: string) {
  const paths = homePaths(path.join(dir, 'home'));
  const file = path.join(dir, 'claude', 'CLAUDE.md');
  return {
    file,
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
    expect(await text()).toMatch(/^Mine, below\.\n\n<!-- comet-cc library: begin .*-->\ntwo\n/);
    await unlink();
    expect(await text()).toBe('Mine, below.\n');
    const other = await openAt(await tempDir());
    await mkdir(path.dirname(other.file));
    await link('three');
    await writeFile(other.file, await text());
    expect(await other.unlink()).toEqual([other.file]);
    expect(await other.text()).toBe('Mine, below.\n');
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
