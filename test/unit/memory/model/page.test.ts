import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addLine,
  getLines,
  newPage,
  type PageHead,
  parsePage,
  parseStatement,
  renderPage,
  renderStatement,
  replaceLines,
  statementText,
  toSlug,
} from '../../../../memory/model/page.ts';
import { hostileText } from '../../../helpers/random-nodes.ts';

const ID = 'mem_20260301_101500_00000a';
const HEAD = {
  title: 'Database (shop)',
  scope: 'project',
  project: '/home/dev/shop',
  topic: 'database',
  updated: '2026-03-01',
  sources: [ID],
} satisfies PageHead;
const getLink = (): string => '../nodes/s-1.md';

function read(text: string) {
  const page = parsePage(text);
  if (typeof page === 'string') throw new Error(page);
  return page;
}

describe('a page', () => {
  it('comes back byte for byte, with the words and keys of a person', () => {
    const text = `---\r\ntitle: Database\r\ntags: [mine]\r\nscope: project\r\nupdated: 2026-03-01\r\n---\r\n\r\nmy words\t \r\n- [ ] open\r\nno end`;
    expect(renderPage(read(text))).toBe(text);
  });

  it('keeps a person’s lines and keys when it changes', () => {
    const text =
      '---\ntitle: Database\n# mine\naliases:\n  - db\nscope: project\nupdated: 2026-03-01\n---\n\nmy words  \n';
    const page = read(text);
    const changed = addLine({ ...page, head: { ...page.head, updated: '2026-03-02' } }, 'Values', '- a b');
    const again = read(renderPage(changed));
    expect(again.head.updated).toBe('2026-03-02');
    expect(renderPage(changed)).toContain('# mine\naliases:\n  - db\n');
    expect(renderPage(changed)).toContain('\nmy words  \n\n## Values\n\n- a b\n');
  });

  it.each([
    ['no front matter', '# hello\n', 'has no front matter'],
    ['half of one', '---\ntitle: x\nscope: us', 'has a front matter without an end'],
    ['no YAML', '---\ntitle: [\n---\n', 'has an unclear front matter: no keys'],
    ['a missing key', '---\ntitle: x\nscope: user\n---\n', 'has an unclear front matter: updated'],
    ['two megabytes', `---\n---\n${'x'.repeat(2_000_000)}`, 'is larger than 1 MB'],
    ['nothing', '', 'has no front matter'],
  ])('with %s is left alone', (_, text, message) => {
    expect(parsePage(text)).toBe(message);
  });

  it('puts sections in their order, and takes an empty one away', () => {
    let page = newPage(HEAD);
    for (const section of ['Before', 'Decisions', 'Values'] as const) page = addLine(page, section, `- ${section}`);
    const names = page.lines.filter((line) => line.startsWith('## ')).map((line) => line.trim());
    expect(names).toEqual(['## Decisions', '## Values', '## Before']);
    const at = getLines(page).find(({ section }) => section === 'Values')?.at ?? -1;
    expect(replaceLines(page, new Map([[at, null]])).lines.join('')).not.toContain('Values');
  });

  it('survives any text of a person', () => {
    fc.assert(
      fc.property(hostileText, (words) => {
        const text = `---\ntitle: x\nscope: user\nupdated: 2026-03-01\n---\n${words}`;
        const page = read(text);
        expect(renderPage(page)).toBe(text);
        const added = renderPage(addLine(page, 'Values', renderStatement({ text: 'a', nodes: [ID] }, getLink)));
        expect(added.startsWith(text.trimEnd())).toBe(true);
      }),
    );
  });
});

describe('a statement', () => {
  it('is read back as it was written', () => {
    fc.assert(
      fc.property(hostileText, (words) => {
        const text = statementText(words);
        fc.pre(text !== '');
        const statement = { text, nodes: [ID], validFrom: '2026-03-01', validTo: '2026-04-01' };
        expect(parseStatement(renderStatement(statement, getLink))).toEqual(statement);
      }),
    );
  });

  it.each([
    '- mine',
    '- mine (see [x](y))',
    'mine ([mem_x](y))',
    `- a ([${ID}](x)) and more`,
    `- a ([${ID}](x), [y](z))`,
  ])('of a person is not memory’s: %s', (line) => {
    expect(parseStatement(line)).toBeNull();
  });

  it('in code is a person’s', () => {
    const page = read(`---\ntitle: x\nscope: user\nupdated: 2026-03-01\n---\n\`\`\`\n- a ([${ID}](x))\n\`\`\`\n`);
    expect(getLines(page).every(({ statement }) => statement === null)).toBe(true);
  });
});

describe('a name', () => {
  it.each([
    ['../../x', 'x'],
    ['C:\\x', 'c-x'],
    ['CON', 'con-page'],
    ['...', ''],
    ['Zahlungen & Käufe', 'zahlungen-käufe'],
    ['user_profile', 'user_profile'],
    ['a'.repeat(300), 'a'.repeat(60)],
    [`a${'\u{20000}'.repeat(40)}`, `a${'\u{20000}'.repeat(29)}`],
  ])('of %s is safe', (text, slug) => {
    expect(toSlug(text)).toBe(slug);
  });
});
