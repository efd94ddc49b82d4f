import { expect, test } from 'vitest';
import { extractProse, getSentences } from '../../../../bench/static-table/texts.ts';

test('prose is taken from comments, from JSON and from around code', () => {
  const declaration =
    '/**\n * Opens the file for reading.\n * @param path - where the file is\n */\nopen(path: string): void;';
  expect(extractProse('a.d.ts', declaration)).toEqual(['\nOpens the file for reading.\n\n\n where the file is\n ']);
  expect(extractProse('a.json', '{"a":"short","b":"A description that is longer than forty characters."}')).toEqual([
    'A description that is longer than forty characters.',
  ]);
  expect(extractProse('a.md', 'Before the code.\n```js\ncode();\n```\nAfter it.')).toEqual([
    'Before the code.\n',
    '\nAfter it.',
  ]);
});

test('a paragraph gives one, two and three sentences in turn, without links, markup and what is no prose', () => {
  const paragraph = [
    'The **first** sentence links [the docs](https://example.org/a).',
    'The second sentence follows the first one.',
    'The third sentence stands beside the second.',
    'X = 1; Y = 2; Z += 3; (a + b) * c.',
    'See.',
  ].join(' ');
  expect(getSentences(paragraph)).toEqual([
    'The first sentence links the docs.',
    'The second sentence follows the first one. The third sentence stands beside the second.',
  ]);
});
