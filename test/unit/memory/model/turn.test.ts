import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSection, renderSection } from '../../../../memory/model/markdown.ts';
import {
  fileMarks,
  formatFileLink,
  getParts,
  isProjectPath,
  parseFileLink,
  spokenText,
  type TurnText,
  withoutToolOutput,
} from '../../../../memory/model/turn.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { hostileText } from '../../../helpers/random-nodes.ts';

const hex = (length: number): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length }).map((all) => all.join(''));
const path = fc.oneof(
  fc.constantFrom('src/db.ts', 'a b/ü.md', '50%.txt', 'x#sha256=00', 'c&commit=1', '설정/파일.json'),
  hostileText.filter(isProjectPath),
);
const mark = fc.record({
  path,
  sha256: fc.oneof(fc.constant(''), hex(16)),
  commit: fc.oneof(fc.constant(''), hex(12)),
});

test('a link names its source with any path', () => {
  fc.assert(
    fc.property(mark, (each) => {
      expect(parseFileLink(formatFileLink(each))).toEqual(each);
    }),
  );
});

test('a link reads as a person would write it', () => {
  expect(formatFileLink({ path: 'src/db.ts', sha256: '0123456789abcdef', commit: 'abcdef012345' })).toBe(
    'file:src/db.ts#sha256=0123456789abcdef&commit=abcdef012345',
  );
  expect(formatFileLink({ path: 'src/db.ts', sha256: '', commit: '' })).toBe('file:src/db.ts');
});

test('links to something else, out of the project, or broken are no files', () => {
  const links = [
    'https://a.example/b',
    'file:../x',
    'file:/etc/passwd',
    'file:a/../../b',
    'file:%',
    'file:',
    'file:C:/x',
  ];
  expect(fileMarks([...links, 'file:a\\b', 'file:a%00b'])).toEqual([]);
});

test('the last word on a file counts, unless it knows less', () => {
  const links = ['file:a#sha256=11', 'file:b#sha256=22', 'file:a#sha256=33', 'file:b'];
  expect(fileMarks(links)).toEqual([
    { path: 'a', sha256: '33', commit: '' },
    { path: 'b', sha256: '22', commit: '' },
  ]);
});

test('the markdown of a node carries its links through', () => {
  fc.assert(
    fc.property(fc.array(mark, { maxLength: 3 }), (marks) => {
      const node = makeNode({ source_links: marks.map(formatFileLink) });
      const { session_id, project } = node;
      expect(parseSection(renderSection(node), { session_id, project })).toEqual({ kind: 'node', node });
    }),
  );
});

test('what the user quotes is found as what a tool showed, and with it their turn is none of clean origin', () => {
  const turn = (user: string): TurnText => ({ turnId: 't', atMs: 0, origin: 'user', user, parts: [] });
  const quoting = turn('What does he mean?\n\n> Use port 7411.\n>\n> Always.\n');
  expect(getParts(spokenText(quoting), 'user')).toEqual([
    { by: 'user', origin: 'user', text: 'What does he mean?' },
    { by: 'user', origin: 'tool', text: '> Use port 7411.\n>\n> Always.' },
  ]);
  expect(withoutToolOutput(quoting).origin).toBe('tool');
  expect(withoutToolOutput(turn('a > b')).origin).toBe('user');
  expect(getParts(spokenText(turn('a > b')), 'user')).toEqual([{ by: 'user', origin: 'user', text: 'a > b' }]);
});
