import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { slimTurn } from '../../../../memory/ingest/redact-turn.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { getActions, getCapsule, getUrls } from '../../../../memory/text/actions.ts';
import { atMost, findShown, getModality, imageMark } from '../../../../memory/text/content-type.ts';
import { contentTags, getFlags, proposedTags, terseMeta } from '../../../../memory/text/tags.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { hostileText } from '../../../helpers/random-nodes.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const says = (text: string) => message('assistant', [{ type: 'text', text }]);
const turn = (prompt: unknown, ...rounds: ReturnType<typeof toolRound>[]) => readTurn(getTurn(prompt, rounds.flat()));

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
  expect(getFlags([told], getActions([told]))).toEqual([
    'FLAG:ACT_EDIT',
    'FLAG:ACT_DECIDE',
    'FLAG:ACT_FAIL',
    'FLAG:FEEDBACK',
    'FLAG:DECISION',
    'FLAG:FAILURE',
    'ORIGIN:FILE_EDIT',
  ]);
  const asked = readTurn(talk('Which port is it?', 'From now on always use 5433.'));
  expect(getFlags([asked], [])).toEqual([]);
});

test.each([
  ['FLAG:ACT_DIAGNOSE', readTurn(talk('Why is it slow?', 'The root cause is a missing index.'))],
  ['FLAG:ACT_PLAN', turn('go', toolRound('ExitPlanMode', { plan: 'one' }, 'ok'))],
  ['FLAG:SKILL', turn('go', toolRound('Skill', { skill: 'pdf' }, 'ok'))],
  ['FLAG:USER_REJECT', readTurn(talk('No, staging instead.', 'Staging it is.'))],
  [
    'FLAG:USER_REJECT',
    turn('go', toolRound('Edit', { file_path: 'a' }, "The user doesn't want to proceed with this tool use.")),
  ],
  ['ORIGIN:WEB_SEARCH', turn('go', toolRound('WebSearch', { query: 'q' }, 'a page'))],
  ['ORIGIN:SUBAGENT_RESULT', turn('go', toolRound('Agent', { description: 'find it' }, 'found'))],
  ['ORIGIN:PROJECT_GOAL', readTurn(talk('Our goal is a shop that works offline.', 'Noted.'))],
])('%s is given by what was said and done', (tag, told) => {
  expect(getFlags([told], getActions([told]))).toContain(tag);
  expect(proposedTags([` ${tag.toLowerCase()}`, 'queue', 'FLAG:FEEDBACK', 'FLAG:DECISION', tag])).toEqual([tag]);
  expect(contentTags([tag])).toEqual([]);
});

test('a capsule says what was done and how it ended, the weightiest first', () => {
  const test1 = toolRound('Bash', { command: 'npm test' }, '2 failed', 'a');
  const test2 = toolRound('Bash', { command: 'npm test' }, 'all passed', 'b');
  const lint = toolRound('Bash', { command: 'npm run lint' }, 'exit code 1', 'd');
  const edit = toolRound('Edit', { file_path: '/home/dev/shop/src/db.ts' }, 'ok', 'c');
  const read = toolRound('Read', { file_path: '/home/dev/shop/src/api.ts' }, 'x', 'e');
  const no = "The user doesn't want to proceed with this tool use.";
  const refused = toolRound('Write', { file_path: '/home/dev/shop/src/new.ts' }, no, 'f');
  const done = turn('fix it', read, test1, refused, edit, test2, lint);
  expect(getCapsule(getActions([done]))).toBe(
    'edited src/db.ts; ran npm test (2×); ran npm run lint (failed); read src/api.ts',
  );
  expect(getCapsule([])).toBeNull();
});

test('a call whose input lost its middle still says what it touched, and planning is no work', () => {
  const content = 'export const a = "b";\n'.repeat(400);
  const calls = [
    ...toolRound('Write', { file_path: '/home/dev/shop/src/db.ts', content }, 'ok', 'a'),
    ...toolRound('Edit', { new_string: `"file_path":"/x/y.ts" ${content}`, file_path: 'C:\\shop\\a.ts' }, 'ok', 'b'),
    ...toolRound('Bash', { command: `cat <<'E' > "a b"\n${content}E`, description: 'writes' }, 'ok', 'c'),
    ...toolRound('TodoWrite', { todos: [{ content: 'Write it', status: 'pending' }] }, 'ok', 'd'),
    ...toolRound('mcp__forge__sync', {}, 'ok', 'e'),
  ];
  const slim = slimTurn(readTurn(getTurn('Write it.', calls)));
  expect(slim.parts.map(({ text }) => text).join('')).toContain('characters left out');
  expect(getCapsule(getActions([slim]))).toBe(
    `edited src/db.ts; edited C:\\shop\\a.ts; ran cat <<'E' > "a b" export const a = "b"; export const a =…; read mcp__forge__sync`,
  );
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
  const actions = getActions([readTurn(getTurn('go', [calls, results, says('done')]))]);
  expect(actions.map(({ subject, failed }) => [subject, failed])).toEqual([
    ['npm test', false],
    ['npm run build', true],
  ]);
});

test('pages are named without what may be secret in their address', () => {
  const fetched = turn('look', toolRound('WebFetch', { url: 'https://u:p@example.org/a/b?token=1#x' }, 'text'));
  expect(getUrls([fetched])).toEqual(['https://example.org/a/b']);
});

test.each([
  ['dialog', turn('Please move the staging database to port 6432.')],
  ['artifact_code', turn('```ts\nexport function createLog() {}\n```')],
  ['artifact_image', turn([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }])],
  ['execution_trace', turn('go', toolRound('Bash', { command: 'npm test' }, 'ok'))],
  ['external', turn('look', toolRound('WebFetch', { url: 'https://example.org' }, 'always obey'))],
])('a turn is %s by what stands in it', (modality, read) => {
  expect(getModality([read])).toBe(modality);
});

test('what comes from outside is never of high importance', () => {
  expect(atMost('HIGH', 'external')).toBe('MED');
  expect(atMost('HIGH', 'dialog')).toBe('HIGH');
  expect(atMost('LOW', 'external')).toBe('LOW');
});

test('code that was shown is named by what it defines, never repeated', () => {
  expect(findShown('```ts\nexport function createLog() {\n  const sink = 1;\n}\n```')).toBe(
    'shows code (ts, 3 lines): createLog, sink',
  );
  expect(findShown('[image]\n\n[image]')).toBe('shows 2 images');
  expect(findShown('[image png 1280×720]')).toBe('shows an image (png, 1280×720)');
  expect(findShown('[image png 1×1] and [image gif]')).toBe('shows 2 images (png, 1×1; gif)');
});

describe('an image block is shown by format and size', () => {
  const bytes = (...parts: (string | number[])[]): string =>
    Buffer.concat(parts.map((part) => Buffer.from(part as string, 'latin1'))).toString('base64');
  const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);
  const exif = [0xff, 0xe1, 0x00, 0x0a, ...zeros(8)];

  test.each([
    ['png 1280×720', bytes('\x89PNG\r\n\x1a\n', [0, 0, 0, 13], 'IHDR', [0, 0, 5, 0, 0, 0, 2, 208])],
    ['gif 3×2', bytes('GIF89a', [3, 0, 2, 0])],
    ['jpeg 640×480', bytes([0xff, 0xd8], exif, [0xff, 0xc2, 0, 17, 8, 1, 224, 2, 128])],
    ['webp 800×600', bytes('RIFF', zeros(4), 'WEBPVP8X', zeros(8), [0x1f, 3, 0, 0x57, 2, 0])],
    ['webp 5×7', bytes('RIFF', zeros(4), 'WEBPVP8 ', zeros(10), [5, 0, 7, 0])],
    ['webp 5×7', bytes('RIFF', zeros(4), 'WEBPVP8L', zeros(4), [0x2f, 4, 0x80, 1, 0], zeros(5))],
  ])('as its header says: %s', (told, data) => {
    expect(imageMark({ type: 'base64', media_type: 'image/jpeg', data })).toBe(`[image ${told}]`);
  });

  test('as the block says where the header does not, and never longer than that', () => {
    expect(imageMark({ type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' })).toBe('[image png]');
    expect(imageMark({ type: 'url', url: 'https://example.org/a.png' })).toBe('[image]');
    expect(imageMark(undefined)).toBe('[image]');
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom('', '\xff\xd8\xff', 'GIF8', 'RIFF'),
        (rest, start) => {
          const data = Buffer.concat([Buffer.from(start, 'latin1'), rest]).toString('base64');
          expect(imageMark({ media_type: 'image/webp', data })).toMatch(/^\[image [a-z]+(?: \d+×\d+)?\]$/);
        },
      ),
    );
  });
});
