import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTask, patchTask, renderTask, type Task } from '../../../../memory/model/task.ts';
import { CODE_POINT } from '../../../helpers/code-point.ts';

const title = fc
  .string({ unit: 'grapheme', maxLength: 80 })
  .map((text) => text.replace(/[\s\p{C}]+/gu, ' ').trim())
  .filter((text) => text !== '');
const time = fc
  .date({ min: new Date(0), max: new Date('2999-01-01'), noInvalidDate: true })
  .map((at) => at.toISOString());
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const task: fc.Arbitrary<Task> = fc.record({
  title,
  created: time,
  status: fc.constantFrom('active', 'blocked', 'done'),
  priority: fc.constantFrom('low', 'medium', 'high'),
  trigger: maybe(title),
  scheduled: maybe(time),
  mode: fc.constantFrom('notify', 'question', 'review'),
  topic: maybe(fc.constantFrom('billing', 'user_profile', 'a-b-2')),
  depends_on: fc.array(title, { maxLength: 3 }),
  origin: fc.constantFrom('user', 'assistant', 'tool', 'external'),
  sources: fc.array(fc.constantFrom('mem_20260302_090000_7a61b5', 'mem_20260323_090000_aea921'), { maxLength: 2 }),
  project: fc.constantFrom('', '/home/me/shop', 'github.com/me/shop'),
  surfacing: maybe(time),
  fired: maybe(time),
  asked: maybe(fc.uuid()),
  name: fc.constant('2026-11-24-check'),
  body: fc.string({ maxLength: 200 }).map((text) => `\n## What\n\n${text}`),
}) as fc.Arbitrary<Task>;

const defined = (value: Task) => JSON.parse(JSON.stringify(value)) as Task;

describe('a task file', () => {
  test('reads back as it was written', () => {
    fc.assert(
      fc.property(task, (one) => {
        expect(parseTask(renderTask(one), one.name)).toEqual(defined(one));
      }),
    );
  });

  test('keeps everything that a patch does not name', () => {
    fc.assert(
      fc.property(task, task, (one, other) => {
        const patch = { title: other.title, fired: other.fired, status: other.status, depends_on: other.depends_on };
        const after = patchTask(renderTask(one), patch);
        expect(parseTask(after, one.name)).toEqual(defined({ ...one, ...patch }));
      }),
      { numRuns: 40 },
    );
  });

  test('survives any text, and a patch of it leaves the body alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: CODE_POINT, maxLength: 40 }), fc.string({ maxLength: 40 }), (head, body) => {
        const text = `---\n${head}\n---\n${body}`;
        const read = parseTask(text, 'x');
        if (typeof read === 'string') return;
        expect(parseTask(patchTask(text, { status: 'done' }), 'x')).toEqual({ ...read, status: 'done' });
      }),
      { numRuns: 40 },
    );
  });

  test('is read as people write it', () => {
    const text = [
      '---',
      '# mine',
      'title: Call 47',
      'depends_on:',
      '  - order-parts',
      'priority: high # soon',
      'fired:',
      'colour: red',
      '---',
      'No heading here',
    ].join('\r\n');
    const read = parseTask(text, '2026-11-24-call-47');
    expect(read).toMatchObject({
      ...{ title: 'Call 47', depends_on: ['order-parts'], priority: 'high', status: 'active', origin: 'user' },
      ...{ created: '2026-11-24T00:00:00.000Z', body: 'No heading here' },
    });
    const after = patchTask(text, { status: 'done' });
    expect(after).toContain('# mine');
    expect(after).toContain('high # soon');
    expect(after).toContain('colour: red');
    expect(after.split('---\r\n')[1]).not.toMatch(/[^\r]\n/);
    expect(parseTask(after, '2026-11-24-call-47')).toMatchObject({ status: 'done', title: 'Call 47' });
  });

  test.each([
    ['---\ntitle: Half', 'front matter: expected it between two lines of ---'],
    ['---\ntitle: [Half\n---\n', 'front matter: '],
    ['---\ncreated: 2026-11-24\n---\n', 'title: '],
    ['---\ntitle: x\n---\n', 'created: expected a date'],
    ['---\ntitle: x\ncreated: 2026-02-40\n---\n', 'created: expected a date'],
    ['---\ntitle: x\ncreated: 2026-11-24\ntopic: ../../x\n---\n', 'topic: expected the name of a topic'],
    ['---\ntitle: x\ncreated: 2026-11-24\nmode: shout\n---\n', 'mode: expected notify, question, review'],
  ])('says what is wrong with %j', (text, problem) => {
    const read = parseTask(text, 'half');
    expect(typeof read === 'string' && read.startsWith(problem), String(read)).toBe(true);
  });

  test('is refused where it is too long to be one', () => {
    const text = `---\ntitle: x\ncreated: 2026-11-24\n---\n${'a'.repeat(2_000_000)}`;
    expect(parseTask(text, 'x')).toBe('expected at most 256 KB');
    expect(parseTask(null, 'x')).toBe('is empty, no UTF-8 text, or not yours to read');
  });
});
