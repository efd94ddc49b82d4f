import { expect, test } from 'vitest';
import {
  getConcept,
  getValues,
  isAsking,
  isNoise,
  NEGATION,
  STANDING,
  split,
} from '../../../../memory/text/sentences.ts';
import { JUNK } from '../../../fixtures/junk.ts';

test.each([
  ['Die Frist ist der 3. Dezember. Danach kommt nichts.', ['Die Frist ist der 3. Dezember.', 'Danach kommt nichts.']],
  ['Es geht bis zum 4. Quartal weiter.', ['Es geht bis zum 4. Quartal weiter.']],
  ['The limit is 30. Then it fails.', ['The limit is 30.', 'Then it fails.']],
  ['It is 4310. December is far.', ['It is 4310.', 'December is far.']],
  [
    "is it up? keep 8080. don't ask (see main.ts). then go",
    ['is it up?', 'keep 8080.', "don't ask (see main.ts).", 'then go'],
  ],
  ['Prof. Aellig wants a GLMM, e.g. `glmer`. Refit.', ['Prof. Aellig wants a GLMM, e.g. `glmer`.', 'Refit.']],
  ['Redis bzw. der Cache läuft. ok.', ['Redis bzw. der Cache läuft.', 'ok.']],
  ['see v2. it has node.js. and e.g. deno, hm... no', ['see v2. it has node.js. and e.g. deno, hm... no']],
])('sentences end where the next begins, before a month they do not: %s', (text, sentences) =>
  expect(split(text)).toEqual(sentences),
);

test.each([
  ['how to fix the port', true],
  ['why not use redis', true],
  ['do the tests pass on windows', true],
  ['Do not use redis', false],
  ['should be 20 ms', false],
  ['do always run the linter', false],
])('%s asks: %s', (text, asks) => expect(isAsking(text)).toBe(asks));

test.each([
  'Ab jetzt immer Zod, nie Joi',
  'Désormais toujours pnpm, jamais npm',
  'Siempre usamos pnpm, nunca npm',
  'From now on always pnpm',
])('a rule is one in several languages: %s', (text) => {
  expect(STANDING.test(text)).toBe(true);
});

test.each([
  'The server is immersed in logs',
  'Niece and station are words',
  'It somehow always lists these under each branch',
])('no rule: %s', (text) => {
  expect(STANDING.test(text)).toBe(false);
});

test.each([
  'The service is running on port 7413 on my machine.',
  'Ping Marta about the release before Friday.',
  'The heartbeat interval must be 30 seconds.',
  'We currently use Postgres 14 and must not upgrade until July.',
  'The staging database currently listens on port 5433.',
  'The build is waiting for approval by Marta on Mondays.',
  'The assistant must never reveal prices to guests.',
  'I am a backend developer and I prefer tabs.',
  'The user table has 4 columns.',
  'Status: the migration 0057 is done, Tobias signed it off.',
  'We decided that a job which is still running after 90 s is killed.',
  'Retry at most 4 times with a pause of 250 ms.',
])('a user who says "%s" is remembered', (sentence) => {
  expect(isNoise(sentence, 'user')).toBe(false);
});

test('what an assistant reports of the work is no guess about the user', () => {
  for (const sentence of [
    'The user is logged out when a second tab opens.',
    'The config prefers IPv6 and listens on port 5433.',
    'Root cause: the pool holds 5 sockets.',
    'All 42 tests pass.',
    'The User model should have a unique constraint on the address.',
    "The timestamps are local because you're running an older build.",
    'Would you like me to add a test?',
    'The user profile page loads the avatar lazily now.',
    'User preferences are stored in localStorage.',
    "The user's name is shown in the header.",
    'When the user likes a post, the counter is incremented.',
    'Since you prefer the second option, the worker keeps its own pool.',
    'If the user is a manager, the export button is shown.',
    'The button is disabled while the form is uploading.',
    'Which of the two do you prefer?',
    'It stays as it is unless you prefer another name, and if you like we can rename it.',
  ]) {
    expect(isNoise(sentence, 'assistant')).toBe(false);
  }
});

test.each(['You seem to like short answers.', 'It looks like you prefer tabs.', 'The user likes lists.'])(
  'a guess about the user is empty: %s',
  (sentence) => {
    expect(isNoise(sentence, 'assistant')).toBe(true);
  },
);

test('instructions, guesses and progress are empty from any author', () => {
  const said = ['instructions', 'profile', 'transient'].flatMap((kind) => JUNK[kind]?.answers ?? []);
  const left = said
    .flatMap((text) => split(text.replaceAll('MARK', 'kestrel')))
    .filter((text) => !isNoise(text, 'assistant'));
  expect(left).toEqual([]);
});

test.each([
  ['The staging database listens on port 5433.', 'staging database'],
  ['Der Exportdienst läuft auf Port 7413.', 'Exportdienst'],
  ['La base de datos usa el puerto 5433.', 'base de datos'],
  ['缓存服务使用端口 6380。', '缓存服务'],
  ['It is 3.', null],
  ['Root Cause', null],
  ['Run it again: `npm test`', null],
])('%s is about %s', (text, concept) => expect(getConcept(text)).toBe(concept));

test.each(['We no longer use redis', 'Nie Joi', '不要用 npm', 'No usamos npm', '더 이상 쓰지 않는다'])(
  'a negation is seen: %s',
  (text) => expect(NEGATION.test(text)).toBe(true),
);

test.each(['The export notes the port', 'Notar läuft', '포트는 5433입니다'])('no negation: %s', (text) =>
  expect(NEGATION.test(text)).toBe(false),
);

test.each([
  [
    '1. `src/db.ts:12` - Best place, `poolSize` is known. The most are #1 and #2.',
    ['src/db.ts:12', 'poolSize', '1', '2'],
  ],
  ['Ask Mara on Friday; it must NOT be JSON, e.g. v1.2. Both fit.', ['Mara', 'Friday', 'JSON', 'v1.2']],
  [
    'Look at ~/.claude/projects, `.env`, ../lib/a.ts and /etc/hosts. and/or wait...',
    ['~/.claude/projects', '.env', '../lib/a.ts', '/etc/hosts', 'and/or'],
  ],
  ['- Added: Redis\n- **Summary**: 3 of 40 ms on the Postgres cluster', ['3', '40', 'Postgres']],
  ['It moved 10,000 rows, 4, 5 and 1,2', ['10,000', '4', '5', '1', '2']],
  ['minSdk가 19입니다. 每页50条，用DataStore。', ['minSdk', '19', '50', 'DataStore']],
  ['Der Neustart passiert beim nächsten Wartungsfenster, und die NAT bleibt für den Rest.', ['NAT']],
])('values are figures, names and paths, no capital that opens a sentence: %s', (text, values) => {
  expect(getValues(text)).toEqual(values);
});
