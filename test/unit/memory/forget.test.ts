import { describe, expect, test } from 'vitest';
import { isNodeFrom, isTurnFrom } from '../../../memory/forget.ts';
import type { TurnPart, TurnText } from '../../../memory/model/turn.ts';
import { makeNode } from '../../helpers/nodes.ts';

const call = (tool: string, input: unknown): TurnPart => ({
  kind: 'tool_use',
  origin: 'assistant',
  tool,
  text: JSON.stringify(input),
});
const turn = (...parts: TurnPart[]): TurnText => ({ turnId: 'e', atMs: 0, origin: 'tool', user: '', parts });

describe('a turn is from a source', () => {
  const page = turn(call('WebFetch', { url: 'https://docs.example.org/a/page?x=1', prompt: 'what does it say' }));
  test.each([
    ['example.org', true],
    ['DOCS.example.org', true],
    ['https://docs.example.org/a', true],
    ['https://docs.example.org/a/page', true],
    ['https://docs.example.org/a/pa', false],
    ['ample.org', false],
    ['example.com', false],
    ['WebFetch', true],
    ['Fetch', false],
    ['tool', true],
    ['external', false],
  ])('that was fetched: %s', (name, expected) => {
    expect(isTurnFrom(page, { name })).toBe(expected);
  });

  test('whose command names the address, not one whose text or result only quotes it', () => {
    expect(
      isTurnFrom(turn(call('Bash', { command: "curl -s 'https://example.org/x'" })), { name: 'example.org' }),
    ).toBe(true);
    const quoting = turn({ kind: 'assistant', origin: 'assistant', tool: '', text: 'see https://example.org/x' });
    expect(isTurnFrom(quoting, { name: 'example.org' })).toBe(false);
    const result = turn({ kind: 'tool_result', origin: 'tool', tool: 'Read', text: 'https://example.org/x' });
    expect(isTurnFrom(result, { name: 'example.org' })).toBe(false);
  });

  test('of an MCP server by its prefix', () => {
    const asked = turn(call('mcp__wiki__search', { query: 'x' }));
    expect(isTurnFrom(asked, { name: 'mcp__wiki' })).toBe(true);
    expect(isTurnFrom(asked, { name: 'mcp__wik' })).toBe(false);
    expect(isTurnFrom(asked, { name: 'mcp__' })).toBe(false);
  });

  test('that read a file, by its path, its path in the project, or a folder', () => {
    const read = turn(call('Read', { file_path: '/home/dev/shop/vendor/a "b".ts' }));
    const at = (name: string) => isTurnFrom(read, { name, file: `/home/dev/shop/${name}` });
    expect([at('vendor/a "b".ts'), at('vendor'), at('./vendor'), at('vend'), at('src')]).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    const marked = { ...turn(), files: [{ path: 'src/db.ts', sha256: '', commit: '' }] };
    expect(isTurnFrom(marked, { name: './src/db.ts' })).toBe(true);
    expect(isTurnFrom(marked, { name: 'src' })).toBe(true);
    expect(isTurnFrom(marked, { name: '.' })).toBe(false);
  });
});

test('a node is from what its links name', () => {
  const node = makeNode({ source_links: ['document:/home/dev/notes.md', 'https://example.org/a', 'file:src/db.ts'] });
  const is = (name: string, file?: string) => isNodeFrom(node, { name, ...(file === undefined ? {} : { file }) });
  expect(is('notes.md', '/home/dev/notes.md')).toBe(true);
  expect(is('notes.md', '/home/dev/other/notes.md')).toBe(false);
  expect(is('example.org')).toBe(true);
  expect(is('src/db.ts')).toBe(true);
  expect(is('nothing')).toBe(false);
  expect(isNodeFrom(makeNode({ origin: 'external' }), { name: 'external' })).toBe(true);
});
