import { expect, test } from 'vitest';
import { type JudgeInput, judge } from '../../../../memory/tasks/judge.ts';

const calm: JudgeInput = {
  task: { mode: 'notify', priority: 'medium', origin: 'user' },
  ...{ hour: 12, nowMs: 10_000_000, activity: { answering: 0, lastRequestMs: 0 }, quietHours: '22-7', acts: true },
};
const task = (over: Partial<JudgeInput['task']>): Partial<JudgeInput> => ({ task: { ...calm.task, ...over } });
const busy = { activity: { answering: 1, lastRequestMs: 9_999_000 } };
const active = { activity: { answering: 0, lastRequestMs: 9_999_000 } };

test.each<[string, Partial<JudgeInput>, boolean, string]>([
  ['an idle user', {}, true, 'notify'],
  ['a streaming answer', busy, false, 'notify'],
  ['a streaming answer and a high priority', { ...busy, ...task({ priority: 'high' }) }, true, 'notify'],
  ['an active session', active, true, 'notify'],
  ['an active session and a low priority', { ...active, ...task({ priority: 'low' }) }, false, 'notify'],
  ['the night', { hour: 23, ...task({ priority: 'high' }) }, false, 'notify'],
  ['the early morning', { hour: 6 }, false, 'notify'],
  ['the end of the night', { hour: 7 }, true, 'notify'],
  ['a nap', { hour: 14, quietHours: '13-15' }, false, 'notify'],
  ['no quiet hours', { hour: 3, quietHours: '' }, true, 'notify'],
  ['a question', task({ mode: 'question' }), false, 'question'],
  ['a review', task({ mode: 'review' }), false, 'review'],
  ['a review that may not act', { acts: false, ...task({ mode: 'review' }) }, true, 'notify'],
  ['a question of a tool', task({ mode: 'question', origin: 'tool' }), false, 'notify'],
  ['a review of a page', task({ mode: 'review', origin: 'external' }), false, 'notify'],
])('%s', (_, over, interrupt, mode) => {
  expect(judge({ ...calm, ...over })).toMatchObject({ interrupt, mode, reason: expect.stringMatching(/./) });
});

test('is in doubt of the user’s own tasks while they are busy, and of no other', () => {
  const isDoubtful = (over: Partial<JudgeInput>): boolean => judge({ ...calm, ...over }).isDoubtful === true;
  expect([busy, active, {}].map(isDoubtful)).toEqual([true, true, false]);
  const others = [task({ priority: 'high' }), task({ mode: 'question' }), task({ origin: 'tool' }), { hour: 23 }];
  for (const over of others) expect(isDoubtful({ ...busy, ...over })).toBe(false);
});
