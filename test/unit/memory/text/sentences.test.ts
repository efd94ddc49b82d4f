import { expect, test } from 'vitest';
import { DECISION, STANDING, split } from '../../../../memory/text/sentences.ts';

test.each([
  ['Die Frist ist der 3. Dezember. Danach kommt nichts.', ['Die Frist ist der 3. Dezember.', 'Danach kommt nichts.']],
  ['Es geht bis zum 4. Quartal weiter.', ['Es geht bis zum 4. Quartal weiter.']],
  ['The limit is 30. Then it fails.', ['The limit is 30.', 'Then it fails.']],
  ['It is 4310. December is far.', ['It is 4310.', 'December is far.']],
])('a day before its month ends no sentence: %s', (text, sentences) => expect(split(text)).toEqual(sentences));

test.each([
  'Ab jetzt immer Zod, nie Joi',
  'Désormais toujours pnpm, jamais npm',
  'Siempre usamos pnpm, nunca npm',
  'From now on always pnpm',
])('a rule is one in several languages: %s', (text) => {
  expect(DECISION.test(text)).toBe(true);
  expect(STANDING.test(text)).toBe(true);
});

test.each(['The server is immersed in logs', 'Niece and station are words'])('no rule: %s', (text) => {
  expect([DECISION.test(text), STANDING.test(text)]).toEqual([false, false]);
});
