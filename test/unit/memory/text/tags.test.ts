import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { actionsOf, capsuleOf, urlsOf } from '../../../../memory/text/actions.ts';
import { atMost, modalityOf, shownIn } from '../../../../memory/text/content-type.ts';
import { contentTags, flagsOf, terseMeta } from '../../../../memory/text/tags.ts';
import { hostileText, makeNode } from '../../../helpers/nodes.ts';
import { message, talk, toolRound, turnOf } from '../../../helpers/turns.ts';

const says = (text: string) => message('assistant', [{ type: 'text', text }]);
const turn = (prompt: unknown, ...rounds: ReturnType<typeof toolRound>[]) => readTurn(turnOf(prompt, rounds.flat()));

test('the weightiest tag of each axis is shown, origin and importance as the fields say', () => {
  const topic_tags = ['database', 'FLAG:ACT_READ', 'FLAG:ACT_EDIT', 'FLAG:DECISION', 'FLAG:FEEDBACK'];
  expect(terseMeta(makeNode({ topic_tags, importance: 'HIGH' }))).toBe('(O:USER A:EDIT F:FEEDBACK I:H)');
  expect(terseMeta(makeNode({ topic_tags: [], origin: 'user' }), { origin: 'external' })).toBe('(O:EXTERNAL I:M)');
  expect(contentTags(topic_tags)).toEqual(['database']);
});

test('with any tags the kind is short and names at most one of each axis', () => {
  const tag = fc.oneof(
    hostileText,
    hostileText.map((text) => `FLAG:${text}`),
    fc.constant('FLAG:ACT_RUN'),
  );
  fc.assert(
    fc.property(fc.array(tag, { maxLength: 6 }), (topic_tags) => {
      expect(terseMeta(makeNode({ topic_tags }))).toMatch(/^\(O:USER(?: A:[A-Z_]{1,20})?(?: F:[A-Z_]{1,20})? I:M\)$/);
    }),
  );
});

test('flags come from what the user said and what was done', () => {
  const edit = toolRound('Edit', { file_path: '/home/dev/shop/src/db.ts' }, 'ok', 'a');
  const failing = toolRound('Bash', { command: 'npm test' }, 'Error: exit code 1', 'b');
  const told = turn('From now on always run the linter first.', edit, failing);
  expect(flagsOf([told], actionsOf([told]))).toEqual([
    'FLAG:ACT_EDIT',
    'FLAG:FEEDBACK',
    'FLAG:DECISION',
    'FLAG:FAILURE',
  ]);
  const asked = readTurn(talk('Which port is it?', 'From now on always use 5433.'));
  expect(flagsOf([asked], [])).toEqual([]);
});

test('a capsule says what was done and how it ended, the weightiest first', () => {
  const test1 = toolRound('Bash', { command: 'npm test' }, '2 failed', 'a');
  const test2 = toolRound('Bash', { command: 'npm test' }, 'all passed', 'b');
  const lint = toolRound('Bash', { command: 'npm run lint' }, 'exit code 1', 'd');
  const edit = toolRound('Edit', { file_path: '/home/dev/shop/src/db.ts' }, 'ok', 'c');
  const read = toolRound('Read', { file_path: '/home/dev/shop/src/api.ts' }, 'x', 'e');
  const done = turn('fix it', read, test1, edit, test2, lint);
  expect(capsuleOf(actionsOf([done]))).toBe(
    'edited src/db.ts; ran npm test (2×); ran npm run lint (failed); read src/api.ts',
  );
  expect(capsuleOf([])).toBeNull();
});

test('calls and results in one round are paired by their tool', () => {
  const calls = message('assistant', [
    { type: 'tool_use', id: 'a', name: 'Bash', input: { command: 'npm test' } },
    { type: 'tool_use', id: 'b', name: 'Bash', input: { command: 'npm run build' } },
  ]);
  const results = message('user', [
    { type: 'tool_result', tool_use_id: 'a', content: 'ok' },
    { type: 'tool_result', tool_use_id: 'b', content: 'exit code 2' },
  ]);
  const actions = actionsOf([readTurn(turnOf('go', [calls, results, says('done')]))]);
  expect(actions.map(({ subject, failed }) => [subject, failed])).toEqual([
    ['npm test', false],
    ['npm run build', true],
  ]);
});

test('pages are named without what may be secret in their address', () => {
  const fetched = turn('look', toolRound('WebFetch', { url: 'https://u:p@example.org/a/b?token=1#x' }, 'text'));
  expect(urlsOf([fetched])).toEqual(['https://example.org/a/b']);
});

test.each([
  ['dialog', turn('Please move the staging database to port 6432.')],
  ['artifact_code', turn('```ts\nexport function createLog() {}\n```')],
  ['artifact_image', turn([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }])],
  ['execution_trace', turn('go', toolRound('Bash', { command: 'npm test' }, 'ok'))],
  ['external', turn('look', toolRound('WebFetch', { url: 'https://example.org' }, 'always obey'))],
])('a turn is %s by what stands in it', (modality, read) => {
  expect(modalityOf([read])).toBe(modality);
});

test('what comes from outside is never of high importance', () => {
  expect(atMost('HIGH', 'external')).toBe('MED');
  expect(atMost('HIGH', 'dialog')).toBe('HIGH');
  expect(atMost('LOW', 'external')).toBe('LOW');
});

test('code that was shown is named by what it defines, never repeated', () => {
  expect(shownIn('```ts\nexport function createLog() {\n  const sink = 1;\n}\n```')).toBe(
    'shows code (ts, 3 lines): createLog, sink',
  );
  expect(shownIn('[image]\n\n[image]')).toBe('shows 2 images');
});
