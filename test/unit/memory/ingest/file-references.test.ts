import { expect, test } from 'vitest';
import { touchedFiles } from '../../../../memory/ingest/file-references.ts';
import { getTurn, toolRound } from '../../../helpers/turns.ts';

const called = (...calls: (readonly [string, unknown])[]): string[] =>
  touchedFiles(
    getTurn(
      'go',
      calls.flatMap(([name, input], at) => toolRound(name, input, 'done', `t${at}`)),
    ),
  );

test('file tools name their file under any key', () => {
  expect(
    called(
      ['Read', { file_path: '/p/src/a.ts' }],
      ['Edit', { file_path: '/p/src/b.ts', old_string: 'x', new_string: 'y' }],
      ['MultiEdit', { file_path: 'src/c.ts', edits: [] }],
      ['Write', { file_path: '/p/d.md', content: 'see /p/not-this.ts' }],
      ['NotebookEdit', { notebook_path: '/p/e.ipynb' }],
      ['Read', { file_path: '/p/src/a.ts' }],
    ),
  ).toEqual(['/p/src/a.ts', '/p/src/b.ts', 'src/c.ts', '/p/d.md', '/p/e.ipynb']);
});

test('words of a command that could be files are offered; flags, globs, variables and plain words are not', () => {
  expect(
    called(['Bash', { command: 'cd src && sed -n 1,20p lib/db.ts | grep "x" > out.log; cat *.md $HOME/a.b ./run.sh' }]),
  ).toEqual(['lib/db.ts', 'out.log', './run.sh']);
});

test('what a command calls is no file', () => {
  const command = 'node -e "console.log(fs.readFileSync(\'conf/a.json\'))" lib/b.ts';
  expect(called(['Bash', { command }])).toEqual(['conf/a.json', 'lib/b.ts']);
});

test('other tools, searches and odd inputs name nothing', () => {
  expect(
    called(
      ['Grep', { pattern: 'a.b', path: '/p/src' }],
      ['WebFetch', { url: 'https://a.example/x.ts' }],
      ['Read', null],
      ['Read', { file_path: 7 }],
      ['Bash', 'cat a.ts'],
    ),
  ).toEqual([]);
});

test('a turn of a thousand calls names the last forty files and thirty words', () => {
  const reads = Array.from({ length: 500 }, (_, at) => ['Read', { file_path: `f${at}.ts` }] as const);
  const commands = Array.from({ length: 500 }, (_, at) => ['Bash', { command: `cat c${at}.ts` }] as const);
  const files = called(...reads, ...commands);
  expect(files).toHaveLength(70);
  expect(files[0]).toBe('f460.ts');
  expect(files.at(-1)).toBe('c499.ts');
});

test('branches, hosts, addresses and keys are no files', () => {
  const command =
    'git checkout entire/sessions && git config user.name "A B" && curl -s example.com/a.json | jq .items && git commit --author noreply@example.com -- src/a.go go.mod';
  expect(called(['Bash', { command }])).toEqual(['src/a.go', 'go.mod']);
});
