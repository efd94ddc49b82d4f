import { expect, test } from 'vitest';
import { findStatements } from '../../../../memory/text/statements.ts';
import { findSpoken, typedText } from '../../../../memory/text/typed-text.ts';

test('keeps what was typed around what was pasted', () => {
  expect(typedText('it fails again:\n\n$ npm test\nFAIL src/a.test.ts\n  at run (src/a.ts:3:4)\n\ncan you look?')).toBe(
    'it fails again:\n\n…\n\ncan you look?',
  );
  expect(typedText('look\n```\nconst a = 1;\n```\nthanks')).toBe('look\n…\nthanks');
  expect(typedText('no [Request for more]\nthen go')).toBe('no [Request for more]\nthen go');
  expect(typedText('this stops:\n\n$ deploy now\nplease commit first')).toBe('this stops: …');
});

test.each([
  '{\n  "port": 1,\n  "host": "a"\n}',
  '=== Step 3 ===\nbuilding\n=== Step 4 ===',
  '2026-01-02 03:04:05 started',
  'ok 3 - parses dates',
  'not ok 4 - keeps the order',
  'ok  \texample.com/mail\t0.2s',
])('takes %j for output', (text) => {
  expect(typedText(text)).toBe('');
});

test('prose in any language is typed', () => {
  for (const text of ['nimm bitte Postgres', '请用 pnpm', 'usa el puerto 5433', '포트는 5433으로 해줘']) {
    expect(typedText(text)).toBe(text);
  }
});

test.each([
  'ok take the smaller image for the workers',
  'ok weiter mit dem zweiten Vorschlag',
  'not ok for me, the old column has to stay',
  'note: the importer stays on node 20',
  'the log of the failed import is here: /var/log/import/today.log',
  'schau mal bitte in diese Datei, dort steht der Zeitüberlauf des Proxys, und sag mir dann, warum die Verbindung nach einer Minute abbricht: /etc/haproxy/haproxy.cfg',
  'each line has to end with ;',
])('a line that a program could write is typed where it is the prompt: %s', (text) => {
  expect(typedText(text)).toBe(text);
});

test('lines of plain words are a list that was typed', () => {
  expect(
    typedText('some things to fix:\nthe header is too big\nremove the footer\nuse 14px\nnever a cookie banner'),
  ).toBe('some things to fix:\n- the header is too big\n- remove the footer\n- use 14px\n- never a cookie banner');
  const filled = [
    'The retry loop never stops when the server answers so, and each mail',
    'that is dropped leaves no entry in the log, which is why the operators',
    'saw nothing of it for a week and restarted the wrong service again and',
    'again until somebody looked at the queue and counted what was waiting',
    'in it',
  ].join('\n');
  expect(typedText(filled)).toBe(filled);
});

test.each([
  'added 12 packages\naudited 13 packages\nfound 0 vulnerabilities\n3 packages are looking for funding\nrun npm fund',
  'Compiling libc v0.2.1\nCompiling cfg-if v1.0.0\nCompiling mio v0.8.11\nFinished dev in 3.1s\nRunning target/debug/app',
  'Name: web-1\nNamespace: default\nNode: worker-2/10.0.0.7\nStart Time: Mon, 02 Nov\nStatus: Running',
])('what a program prints is no list that was typed: %j', (text) => {
  expect(typedText(text)).not.toContain('- ');
});

const COMMENT =
  'The retry loop never stops when the server answers 503. Consider a limit of four attempts, with an entry in the log for each mail that is dropped. The counter in sender.ts is reset by each call, so it cannot be used.';
const spoken = (prompt: string, heard = '') => {
  const typed = typedText(prompt);
  const all = findSpoken(findStatements(typed), typed, heard);
  return { own: all.map(({ own }) => own).filter(Boolean), shown: all.map(({ shown }) => shown).filter(Boolean) };
};

test.each([
  ['led in on the same line', `can you look at this: ${COMMENT}`, 'can you look at this:'],
  ['led in above', `I got this feedback:\n\n${COMMENT}\n\nis that so?`, 'is that so?'],
  [
    'before what the user says',
    `${COMMENT}\n\nI think that is right, can you fix it?`,
    'I think that is right, can you fix it?',
  ],
  ['alone', COMMENT, ''],
  [
    'indented as a terminal does',
    `can you do both of these now please:\n\n  1. ${COMMENT}\n  2. Add a metric`,
    'can you do both of these now please:',
  ],
])('a comment is shown, not said: %s', (_, prompt, said) => {
  const { own, shown } = spoken(prompt);
  expect(own.join(' ')).not.toContain('retry');
  if (said !== '') expect(own.join(' ')).toContain(said);
  expect(shown.join(' ')).toContain('The retry loop never stops');
});

test('what repeats the answer before is shown', () => {
  const { own, shown } = spoken(
    '2. Add a metric for dropped mails in the outbox',
    'Next:\n2. Add a metric for dropped mails in the outbox',
  );
  expect({ own, shown }).toEqual({ own: [], shown: ['Add a metric for dropped mails in the outbox'] });
});

test.each([
  'use pnpm everywhere, never npm',
  'We take pg-boss for the queue because it needs no new service. Redis is out. Never add another service without asking.',
  'How about this logic:\n\n- if there is no folder for the day, create one and count from one\n- if there is a folder, read the count and add one to it',
  'Nimm bitte Postgres für die Warteschlange, weil wir es ohnehin schon betreiben. Redis fällt weg. Der Port bleibt 5433 wie vorher.',
  'Estupendo. Ayer acordamos con Irene que los informes se generan por la noche. El formato sigue siendo CSV y las columnas tampoco cambian.',
  'Prima. Der Export läuft ab Montag nachts. Das Format bleibt CSV, die Spalten bleiben auch, und Irene prüft die erste Datei selbst.',
  'Nope, hold on. The queue of the exports is shared with billing. Give each tenant its own one. The names stay as they are.',
])('what a person types is theirs: %s', (prompt) => {
  expect(spoken(prompt).shown).toEqual([]);
});

test.each([
  ['unknown command "job" for "app"\n\nDid you mean this?\n        version', ''],
  ['=== Step 1 ===\nFound no owner in the file\n\nFiles touched by the agent:\nmain.py\n=== Step 2 ===', ''],
  ['=== Step 1 ===\nFound no owner\n=== Step 2 ===\n\nwhy is there no owner?', 'why is there no owner?'],
])('what stands between two pieces of output is output: %j', (prompt, typed) => {
  expect(typedText(prompt).replaceAll('…', '').trim()).toBe(typed);
});

test('a reply between two quotes is typed', () => {
  expect(typedText('> which database\npostgres\n> which port\n5433')).toBe('postgres\n…\n5433');
});

test.each([
  [
    'somebody else wrote it as a person does',
    'I got this feedback on the branch: \n\nI will throw in my thoughts:\nwe could keep all jobs in one table.\n\nI might be wrong, but we only write when a job failed.\n\nwhat do you think?',
    ['I got this feedback on the branch:', 'what do you think?'],
  ],
  ['it is an item of an older list', ' 3. Strengthen the tests of the outbox - Add a check for each mail', []],
  ['it begins in small letters as a name does', `docker pull is run without a limit. ${COMMENT}`, []],
  [
    'it is a record behind a question',
    'why is this one active? 2026-01-06-c93f3533 (1 jobs) - by using this software you',
    ['why is this one active?'],
  ],
])('is shown, not said: %s', (_, prompt, own) => {
  expect(spoken(prompt).own).toEqual(own);
});

test.each([
  'I said: the port stays as it is, and we do not open another one for the metrics of the outbox service',
  '2. use pg-boss and keep the queue in the database that we have',
  'make the limit four attempts. Also log each one that is dropped. I want to see them in the morning.',
])('is said: %s', (prompt) => {
  expect(spoken(prompt).shown).toEqual([]);
});
