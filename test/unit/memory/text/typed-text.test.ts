import { expect, test } from 'vitest';
import { typedText } from '../../../../memory/text/typed-text.ts';

test('keeps what was typed around what was pasted', () => {
  expect(typedText('it fails again:\n\n$ npm test\nFAIL src/a.test.ts\n  at run (src/a.ts:3:4)\n\ncan you look?')).toBe(
    'it fails again:\n\ncan you look?',
  );
  expect(typedText('look\n```\nconst a = 1;\n```\nthanks')).toBe('look\nthanks');
});

test.each([
  '{\n  "port": 1,\n  "host": "a"\n}',
  '=== Step 3 ===\nbuilding\n=== Step 4 ===',
  '2026-01-02 03:04:05 started',
])('takes %j for output', (text) => {
  expect(typedText(text)).toBe('');
});

test('prose in any language is typed', () => {
  for (const text of ['nimm bitte Postgres', '请用 pnpm', 'usa el puerto 5433', '포트는 5433으로 해줘']) {
    expect(typedText(text)).toBe(text);
  }
});
