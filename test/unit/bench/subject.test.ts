import { describe, expect, test } from 'vitest';
import { cometConversation, holds } from '../../../bench/subject/conversation.ts';

test('a figure is found as a whole, and not in a longer one', () => {
  expect(holds('port 5433.', '5433')).toBe(true);
  expect(holds('port 15433, 54330 or 1.5433', '5433')).toBe(false);
});

describe.each([
  ['standard', 10],
  ['hard', 20],
] as const)('the %s conversation', (level, subjects) => {
  const { turns, texts, questions } = cometConversation(level, 3);

  test('is the same for the same seed, and another for another', () => {
    expect(cometConversation(level, 3)).toEqual({ turns, texts, questions });
    expect(cometConversation(level, 4).questions).not.toEqual(questions);
    expect(new Set(turns.map(({ turnId }) => turnId)).size).toBe(turns.length);
  });

  test('says each answer in one turn that names its subject, and asks in other words', () => {
    expect(questions).toHaveLength(3 * subjects);
    for (const { text, subject, answer } of questions) {
      const saying = texts.filter((each) => holds(each, answer));
      expect(saying, answer).toHaveLength(1);
      expect(saying[0]).toContain(subject);
      expect(text).toContain(subject);
      expect(saying[0]).not.toContain(text.replace('?', ''));
    }
  });

  test('has figures that are told apart', () => {
    const figures = questions.map(({ answer }) => answer);
    expect(new Set(figures).size).toBe(figures.length);
    for (const { answer, near } of questions) {
      expect(near).not.toContain(answer);
      if (level === 'hard') expect(near.some((other) => Math.abs(Number(other) - Number(answer)) === 1)).toBe(true);
    }
  });
});
