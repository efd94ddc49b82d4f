import { expect, it } from 'vitest';
import { type Page, parsePage } from '../../../../memory/model/page.ts';
import { lintPages } from '../../../../memory/pages/lint-pages.ts';

const HEAD = '---\ntitle: x\nscope: project\nproject: p\nupdated: 2026-03-01\n---\n';
const ID = 'mem_20260301_101500_00000a';
const GONE = 'mem_20260301_101500_00000b';

async function lint(files: Readonly<Record<string, string>>) {
  const texts = new Map(Object.entries(files));
  const pages = new Map(
    [...texts].flatMap(([name, text]): [string, Page][] => {
      const page = parsePage(text);
      return typeof page === 'string' ? [] : [[name.slice('topics/'.length, -'.md'.length), page]];
    }),
  );
  const found = await lintPages({ texts, pages, problems: [], isNode: (id) => id === ID });
  return found.map(({ file, line, kind }) => `${file}:${line ?? ''} ${kind}`);
}

it('finds each kind of problem, and none in a library in order', async () => {
  expect(
    await lint({
      'INDEX.md': `[a](topics/a.md) [b](topics/b.md)\n`,
      'topics/a.md': `${HEAD}- The API listens on port 8080 [valid_from:: 2026-03-01] ([${ID}](../x.md))\n[b](b.md)\n`,
      'topics/b.md': `${HEAD}my words\n`,
    }),
  ).toEqual([]);
  expect(
    await lint({
      'INDEX.md': `[a](topics/a.md) [none](topics/none.md)\n${'x\n'.repeat(200)}`,
      'topics/a.md': [
        HEAD,
        `- The API listens on port 8080 [valid_from:: 2026-03-01] ([${ID}](../x.md))\n`,
        `- The API now listens on port 9090 [valid_from:: 2026-03-02] ([${ID}](../x.md))\n`,
        `- The printer listens on port 1 ([${GONE}](../x.md))\n`,
      ].join(''),
      'topics/b.md': `${HEAD}${'x\n'.repeat(301)}`,
    }),
  ).toEqual([
    'INDEX.md: dead_link',
    'INDEX.md: too_long',
    'topics/a.md:9 source_gone',
    'topics/a.md:7 contradiction',
    'topics/b.md: orphan',
    'topics/b.md: too_long',
  ]);
});
