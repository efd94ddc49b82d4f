import { describe, expect, test } from 'vitest';
import type { Origin } from '../../../../common/turn.ts';
import { readTurnState, repeatsMemory } from '../../../../memory/compaction/turn-state.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import type { TurnPart } from '../../../../memory/model/turn.ts';
import { talk } from '../../../helpers/turns.ts';

const say = (prompt: string, answer: string) => readTurn(talk(prompt, answer));

describe('the state that a turn leaves behind', () => {
  test('says what was asked and how it ended, without steps and offers', () => {
    const state = readTurnState(
      say(
        'Can you please find out why the nightly export of the billing service fails?',
        'Let me look at the logs first.\n\nThe export fails because `report.csv` is opened twice.\n\nI closed the first handle in src/export.ts. All 14 tests pass.\n\nWant me to open a pull request?',
      ),
    );
    expect(state.title).toBe('find out why the nightly export of the billing service fails?');
    expect(state.outcome).toBe(
      'The export fails because `report.csv` is opened twice. I closed the first handle in src/export.ts. All 14 tests pass.',
    );
    expect(state).toMatchObject({ skip: null, decisions: [], open: [] });
    expect(state.values).toContain('src/export.ts');
  });

  test('tells the list of changes beside the cause', () => {
    const told = `Fixed.\n\nThe issue was that the lock was taken twice.\n\n### Changes made:\n\n1. \`queue.ts\` - Takes the lock once\n2. \`worker.ts\` - Waits for it\n\n${'The order of pages stays as it was before, in each of the readers. '.repeat(7)}`;
    expect(readTurnState(say('Why does it hang?', told)).outcome).toMatch(
      /^The issue was that the lock was taken twice\. Changes made: 1\. `queue\.ts` - Takes the lock once; 2\. `worker\.ts` - Waits for it\. /,
    );
    expect(readTurnState(say('Fix it.', 'Both pages pass.\n\nBoth pages pass.')).outcome).toBe('Both pages pass.');
  });

  test.each([
    [
      'The lock is taken twice, so we could take it in `begin`. This keeps the order. Want me to do that?',
      'The lock is taken twice, so we could take it in `begin`. Want me to do that?',
    ],
    [
      'Options:\n1. Take the lock in `begin`\n2. Drop it\n\nOption 1 is cleaner. Want me to make that change?',
      'Option 1 (“Take the lock in `begin`”) is cleaner. Want me to make that change?',
    ],
    ['The order stays.\n\nWant me to raise the limit to 40 s?', 'The order stays. Want me to raise the limit to 40 s?'],
    ['## Fix\n\nTake the lock once. Want me to implement it?', 'Take the lock once. Want me to implement it?'],
    [
      '## The Fix\n\nThe lock should be taken in `begin`. Callers should not know it. Want me to implement the fix?',
      'The lock should be taken in `begin`. Want me to implement the fix?',
    ],
    [
      'The lock is taken twice. That should change.\n\nWant me to do it? I would:\n\n1. Take the lock in `begin`\n2. Drop the other one',
      'Want me to do it? I would: 1. Take the lock in `begin`; 2. Drop the other one',
    ],
    [
      'Quick fix: delete the lock file.\n\nWant me to also change the worker to name its lock files after the day, so that they expire with it?',
      'Want me to also change the worker to name its lock files after the day, so that they expire with it?',
    ],
  ])('a yes stands with what is proposed: %s', (told, proposal) => {
    const state = readTurnState(say('yes', 'Done, it is in.'), say('Why does it hang?', told));
    expect(state.accepts).toBe(`“yes” to “${proposal}”`);
  });

  test.each(['Now it reads as `checkpoint.Pattern` everywhere.', 'Now installs need no network.'])(
    'an answer that begins with Now is told: %s',
    (told) => expect(readTurnState(say('Import the package by its name.', `Done. ${told}`)).outcome).toContain(told),
  );

  test('what to remember to do by a day is left to do, and any other way of working is a rule', () => {
    const read = (prompt: string) => readTurnState(say(prompt, 'Noted.'));
    for (const prompt of ['Remember to renew the domain by June.', 'Also remember to send Ada the invoice tomorrow.']) {
      const { open, decisions, rules } = read(prompt);
      expect([open[0]?.text, decisions, rules]).toEqual([expect.stringContaining(prompt.slice(0, -1)), [], []]);
    }
    for (const prompt of ['Please remember to use tabs.', 'Remember to always review on Friday.'])
      expect(read(prompt)).toMatchObject({ open: [], rules: [prompt] });
  });

  test('leaves out commands that Claude Code runs itself, typed before the prompt', () => {
    const before = say('Which font for the headings?', 'I recommend Libertinus.');
    const said = (prompt: string) => readTurnState(say(prompt, 'The headings use Libertinus.'), before);
    for (const commands of ['/model opus\n\n', '/btw Which port is it?\n\n', '/clear\n\n/effort high\n\n']) {
      expect(said(`${commands}yep`).decisions).toMatchObject([{ text: '“yep” to “I recommend Libertinus.”' }]);
      const asked = 'Set the headings in small capitals.';
      expect(said(commands + asked)).toMatchObject({ asked, title: asked, skip: null });
    }
    expect(said('/review the headings').asked).toBe('/review the headings');
  });

  test('takes a shell command that was typed for neither a decision nor a request', () => {
    const state = readTurnState(say('! git commit -m "We decided to drop Redis"', 'The commit is on the branch.'));
    expect(state).toMatchObject({ decisions: [], asked: '', title: 'The commit is on the branch.' });
  });

  test('reads “let us use” as “let’s use”', () => {
    const text = 'Let us use 7500 for the billing API.';
    expect(readTurnState(say(text, 'It is 7500.')).decisions).toMatchObject([{ text }]);
    expect(readTurnState(say('Let us know when it works.', 'I will.')).decisions).toEqual([]);
  });

  test.each([
    ['Where were we, and what is left?', 0],
    ['What is left of the quick start? Add the remaining part.', 1],
  ])('an answer to "%s" that names %i to-dos of its own', (prompt, open) => {
    const state = readTurnState(say(prompt, 'The push job is still manual. Remaining: Tobias has to renew the key.'));
    expect(state.open).toHaveLength(open);
  });

  test.each([
    [
      'mmap or read the whole tile into memory?',
      'Reading is simpler, mapping starts faster. I would map the file, since tiles are read twice at most.',
      'mapping then, no cache on top pls',
      '“mapping then, no cache on top pls” to “Reading is simpler, mapping starts faster. I would map the file, since tiles are read twice at most.”',
    ],
    [
      'Which font for the headings?',
      'Libertinus has small capitals and Latin Modern has none. I recommend Libertinus.',
      'yep',
      '“yep” to “Libertinus has small capitals and Latin Modern has none. I recommend Libertinus.”',
    ],
    [
      'Wie speichern wir die Karten?',
      'Ich würde Protobuf nehmen, JSON ist viermal so groß.',
      'lesbar muss es nicht sein, also protobuf',
      '“lesbar muss es nicht sein, also protobuf” to “Ich würde Protobuf nehmen, JSON ist viermal so groß.”',
    ],
    [
      'How long does the cell last?',
      'At 10 s it lasts five months. At 60 s it lasts two years.',
      '60 s then',
      '“60 s then” to “At 10 s it lasts five months. At 60 s it lasts two years.”',
    ],
    [
      'Does the parser need the arena?',
      'The arena saves 3 %, and every node needs a lifetime for it.',
      'not worth it, drop that',
      '“not worth it, drop that” to “The arena saves 3 %, and every node needs a lifetime for it.”',
    ],
  ])('a reply to what was said of "%s"', (prompt, answer, reply, decided) => {
    const state = readTurnState(say(reply, 'Done.'), say(prompt, answer));
    expect(state.decisions).toMatchObject([{ text: decided, by: 'user', origin: 'user' }]);
    expect(state.open).toEqual([]);
  });

  test.each([
    ['I would map the file.', 'The level editor crashes when a tile is deleted'],
    ['I would map the file.', 'is mapping the file thread safe'],
    ['The file is mapped now.', 'first the header, then the tiles'],
  ])('"%s" is not taken up by "%s"', (answer, reply) => {
    expect(readTurnState(say(reply, 'Done.'), say('How?', answer)).decisions).toEqual([]);
  });

  test('a reply that takes up what comes from elsewhere stays in the own words of the user', () => {
    const page = { ...say('Read the page.', 'The page says: I would map the file.') };
    const outside = { ...page, parts: page.parts.map((part) => ({ ...part, origin: 'external' as const })) };
    expect(readTurnState(say('no, remove this again', 'Done.'), outside).decisions).toMatchObject([
      { text: 'no, remove this again', origin: 'user' },
    ]);
  });

  test('a to-do that points to the answer quotes it, and decides nothing', () => {
    const before = say('Who flashes the fuses?', 'The fuses have to be part of the factory script.');
    const state = readTurnState(say('dont forget that, it is due by March 3', 'Noted.'), before);
    expect(state.open).toMatchObject([
      { text: '“dont forget that, it is due by March 3” to “The fuses have to be part of the factory script.”' },
    ]);
    expect(state.decisions).toEqual([]);
  });

  test.each([
    [
      'die karte fehlt noch, und das formular muss bis freitag raus',
      ['die karte fehlt noch', 'das formular muss bis freitag'],
    ],
    [
      "the next board gets a fuse, i'll tell hw (Tomasz) on monday",
      ["the next board gets a fuse, i'll tell hw (Tomasz) on monday"],
    ],
  ])('each to-do of: %s', (prompt, todos) => {
    const { open } = readTurnState(say(prompt, 'Noted.'));
    expect(open.map(({ text }) => text)).toEqual(todos.map((todo) => expect.stringContaining(todo)));
  });

  test.each([
    "let's make the debug overlay hidden",
    'figures: use pdf, not png.',
    'Plan A breaks on rebase, that is why we store the id.',
    'no, we left the menu out on purpose',
    'yeah no. leave it in pandas until the demo',
    'das minimum heben wir auf Version 16 an',
  ])('%s decides', (prompt) => {
    expect(readTurnState(say(prompt, 'Done.')).decisions).toHaveLength(1);
  });

  test('a decision that is taken back is named by the one that replaces it', () => {
    const before = say("let's use a ring buffer for the samples", 'The samples are in a ring buffer.');
    for (const [prompt, text] of [
      [
        'no wait, a plain list for the samples',
        "“no wait, a plain list for the samples” instead of “let's use a ring buffer for the samples”",
      ],
      [
        'hm ne warte, lieber eine Liste',
        "“hm ne warte, lieber eine Liste” instead of “let's use a ring buffer for the samples”",
      ],
    ] as const)
      expect(readTurnState(say(prompt, 'Done.'), before).decisions).toMatchObject([{ text }]);
  });

  test('options in one sentence are options, and a letter may end a sentence', () => {
    const before = say(
      'Shorter?',
      'Options: a) margins of 2 cm, b) a smaller font, c) no appendix. What do you prefer?',
    );
    const [decision] = readTurnState(say('b y c. los márgenes no', 'Hecho.'), before).decisions;
    expect(decision?.text).toBe('“b y c. los márgenes no”, that is “a smaller font”, “no appendix.”');
  });

  test('a short title takes what follows', () => {
    expect(readTurnState(say('jump height. its 3.2 tiles rn, make it 4', 'Done.')).title).toBe(
      'jump height. its 3.2 tiles rn, make it 4',
    );
  });

  test('of an answer, what is not done is open: action items of a table, boxes without a cross, failures', () => {
    const table = '| # | Action | Owner | Due |\n|---|---|---|---|\n| 1 | Alert on lag | Dana | Nov 9 |';
    const boxes = 'Test plan:\n- [ ] Upload a large file\n- [x] Run the tests';
    const answer = `Action items:\n\n${table}\n\n${boxes}\n\n3 tests still fail. If it still fails later, look at the log. The banner is not done yet. Il reste à prévenir Chloé.`;
    expect(readTurnState(say('Write it up.', answer)).open.map(({ text }) => text)).toEqual([
      'Action Alert on lag, Owner Dana, Due Nov 9',
      '[ ] Upload a large file',
      '3 tests still fail.',
      'The banner is not done yet.',
      'Il reste à prévenir Chloé.',
    ]);
  });

  test('what is not done stands with its subject', () => {
    const { open } = readTurnState(say('Und?', 'Die Endpunkte sind angelegt. Noch nicht angewendet.'));
    expect(open.map(({ text }) => text)).toEqual(['Die Endpunkte sind angelegt. Noch nicht angewendet.']);
  });

  test('a list of questions that wait is not open once more as a whole', () => {
    const { open } = readTurnState(
      say('Plan it.', 'It takes a week.\n\n## Open questions\n- Who owns it?\n- Is Tuesday fine?'),
    );
    expect(open.map(({ text }) => text)).toEqual(['Who owns it?', 'Is Tuesday fine?']);
  });

  test('an apology is no outcome, and a short correction takes its title from the outcome', () => {
    const state = readTurnState(say('no. do it in the app', 'Sorry about that. The app sets the timer now.'));
    expect(state).toMatchObject({ title: 'The app sets the timer now.', outcome: 'The app sets the timer now.' });
  });

  test('binds a short reply to the question that it answers', () => {
    const before = say(
      'Which queue?',
      'pg-boss needs no new service, SQS scales further.\n\nShould we take pg-boss or SQS?',
    );
    const state = readTurnState(say('ok, pg-boss it is', 'Installed pg-boss 9.0.3.'), before);
    expect(state.decisions).toEqual([
      {
        text: '“ok, pg-boss it is” to “pg-boss needs no new service, SQS scales further. Should we take pg-boss or SQS?”',
        by: 'user',
        origin: 'user',
        turn: expect.any(String),
      },
    ]);
  });

  test.each([
    [
      "what happens on port 8080? we decided to use redis. don't touch the tests. also remind me to ask Ines",
      ['we decided to use redis.', "don't touch the tests."],
      ['also remind me to ask Ines'],
    ],
    [
      "tobias is fine with one approver. so that's decided. a second one for the owner may help. I'll ask him.",
      ["tobias is fine with one approver. so that's decided."],
      ["a second one for the owner may help. I'll ask him."],
    ],
    [
      "I do the icons tomorrow; don't let me forget the art for Mia.",
      [],
      [expect.stringMatching(/^I do the icons tomorrow \(.{10}\); don't let me forget the art for Mia\.$/)],
    ],
    ['Der Restore-Test fehlt noch.', [], ['Der Restore-Test fehlt noch.']],
    ['I need to send her the draft by the 24th.', [], ['I need to send her the draft by the 24th.']],
    ['The timeout should be 6 in act 1, and energy 4 is too generous later.', [], []],
    ['We agreed with legal that postal codes stay out.', ['We agreed with legal that postal codes stay out.'], []],
    [
      'One thing: saves. Never write saves during combat, only between rooms; people reload otherwise. JSON, version field, in the folder of the user.',
      ['Never write saves during combat, only between rooms; people reload otherwise.'],
      [],
    ],
  ])('reads each sentence of a prompt, with its subject: %s', (prompt, decided, left) => {
    const { decisions, open } = readTurnState(say(prompt, 'Ok.'));
    expect(decisions.map(({ text }) => text)).toEqual(decided);
    expect(open.map(({ text }) => text)).toEqual(left);
  });

  test('names to-dos with person and date, and questions that wait', () => {
    const state = readTurnState(
      say(
        'Anna has to rotate the mail key by Friday. Add the retry now.',
        'The retry is in.\n\n## Next steps\n- Add a metric for dropped mails\n\nWhich timeout should the retry use?',
      ),
    );
    expect(state.open.map(({ text }) => text)).toEqual([
      'Anna has to rotate the mail key by Friday (2027-01-22).',
      'Add a metric for dropped mails',
      'Which timeout should the retry use?',
    ]);
  });

  test.each([
    [
      '**Option A: nightly job** – cheap.\n\n**Option B: a trigger** – always fresh.',
      'option B, but not for audit',
      'nightly job',
    ],
    [
      'A) Tabelle sperren\nB) Warteschlange einführen\nC) Nichts tun',
      'nimm C',
      'Tabelle sperren, Warteschlange einführen',
    ],
    ['A. Mover el índice\n\nB. Rehacer la tabla', 'vale, b', 'Mover el índice'],
    ['### Option 1: Poll\nSlow.\n\n### Option 2: Push\nFast.', '2', 'Poll'],
  ])('binds a letter or a number to its option: %s, %s', (options, prompt, rejected) => {
    const before = say('How?', `There are these ways:\n\n${options}\n\nWhich one?`);
    const [decision] = readTurnState(say(prompt, 'Done.'), before).decisions;
    expect(decision).toMatchObject({ by: 'user', origin: 'user' });
    expect(decision?.text).toMatch(new RegExp(`^“${prompt}”, that is “.*; rejected: ${rejected}$`));
  });

  test.each([
    ['C, B needs a new service', '“C) Keep it”; rejected: lock the table, add a queue'],
    ['A und B bitte, C später', '“A) lock the table”, “B) add a queue”'],
    ['B looks wrong, leave it out', ''],
  ])('%s takes no other option than it says', (prompt, taken) => {
    const before = say('How?', 'A) lock the table\nB) add a queue\nC) Keep it\n\nWhich one?');
    const texts = readTurnState(say(prompt, 'Done.'), before).decisions.map(({ text }) => text);
    expect(texts).toEqual(taken === '' ? [] : [`“${prompt}”, that is ${taken}`]);
  });

  test.each([
    ['take 1. and 3. but not 2', '1: “Index the mails”, 3: “Drop the drafts”, 2: “Split the table”'],
    ['1 is too slow, drop it', '1: “Index the mails”'],
    ['1 is too slow. 2 then, with a backup', '1: “Index the mails”, 2: “Split the table”'],
    ['2 takes 3 times as long', '2: “Split the table”, 3: “Drop the drafts”'],
    ['2, pero sin la tabla nueva', '“Split the table”; rejected: Index the mails, Drop the drafts'],
  ])('%s rejects nothing that it does not', (prompt, taken) => {
    const before = say('How?', '1. Index the mails\n2. Split the table\n3. Drop the drafts\n\nWhich?');
    const [decision] = readTurnState(say(prompt, 'Done.'), before).decisions;
    expect(decision?.text).toBe(`“${prompt}”, that is ${taken}`);
  });

  test.each([
    ['skip 2', '2'],
    ['not 3', '3'],
    ['all but the second', '2'],
    ['yes but leave out the third for now', '3'],
    ['tackle 2 first', '2'],
    ['alles außer 3', '3'],
    ['sí pero sin la 3', '3'],
    ['第三个先不做，其他都做', '3'],
    ['2번은 빼고 진행해줘', '2'],
  ])('%s says what it names, taken or not', (prompt, label) => {
    const options = ['Index the mails', 'Split the table', 'Drop the drafts'];
    const before = say(
      'What next?',
      `Ideas:\n${options.map((text, at) => `${at + 1}. ${text}`).join('\n')}\n\nShall I?`,
    );
    const [decision] = readTurnState(say(prompt, 'Done.'), before).decisions;
    expect(decision?.text).toBe(`“${prompt}”, that is ${label}: “${options[Number(label) - 1]}”`);
  });

  test.each(['wait 2 minutes', 'set the limit to 2', 'not 2 replicas please'])('%s names no option', (prompt) => {
    const before = say('What next?', 'Ideas:\n1. Index the mails\n2. Split the table');
    expect(
      readTurnState(say(prompt, 'Done.'), before)
        .decisions.map(({ text }) => text)
        .join(),
    ).not.toContain('Split');
  });

  test.each([
    [
      'option 3',
      '**Scenario 1**: one database\n\n**Scenario 2**: files\n\n**Scenario 3**: both of them',
      'both of them',
    ],
    ['plan b please', '### Plan A: all at once\nQuick.\n\n### Plan B: by region\nSafe.', 'by region'],
    ['do phase 2 now', 'Phase 1: schema\n\nPhase 2: backfill\n\nPhase 3: switch reads', 'backfill'],
  ])('%s is found below the word that the answer has for it', (prompt, answer, taken) => {
    const [decision] = readTurnState(say(prompt, 'Ok.'), say('How?', answer)).decisions;
    expect(decision?.text).toContain(taken);
  });

  test('what the user decides in reply to words from elsewhere stands for itself too', () => {
    const page = say('Read the page.', 'The page names three parsers. Should we use the second?');
    const outside = { ...page, parts: page.parts.map((part) => ({ ...part, origin: 'external' as const })) };
    const state = readTurnState(say("no, let's keep ours and remind me to ask Ida", 'Ok.'), outside);
    expect(state.decisions).toMatchObject([
      { by: 'user', origin: 'external' },
      { by: 'user', origin: 'user', text: "no, let's keep ours and remind me to ask Ida" },
    ]);
    expect(state.open.filter(({ text }) => text.includes('page names'))).toEqual([]);
  });

  test.each([
    [
      "Tenants must not see each other's invoices. Where is that checked?",
      "Tenants must not see each other's invoices.",
    ],
    [
      'Write the migration. It adds one column, and the index must not lock the table.',
      'the index must not lock the table.',
    ],
    [
      'Das Skript darf die Produktion nicht anfassen. Schreib es bitte.',
      'Das Skript darf die Produktion nicht anfassen.',
    ],
  ])('%s bans something', (prompt, ban) => {
    expect(readTurnState(say(prompt, 'Done.')).decisions.map(({ text }) => text)).toEqual([ban]);
  });

  test.each(['no wait', 'Actually, scratch that.', '等等'])('%s alone decides nothing', (prompt) => {
    expect(readTurnState(say(prompt, 'Ok.'), say('Add a retry.', 'Done.')).decisions).toEqual([]);
  });

  test.each(['a new table would be easier', 'd', 'before that, rename the column'])('%s picks no letter', (prompt) => {
    const before = say('How?', 'A) lock the table\nB) add a queue\n\nWhich one?');
    const texts = readTurnState(say(prompt, 'Done.'), before).decisions.map(({ text }) => text);
    expect(texts.filter((text) => text.includes('that is'))).toEqual([]);
  });

  test.each([
    [
      'I suggest our own server, theirs costs 29 $. OK?',
      "hmm. theirs, I don't like to be paged for a search box",
      true,
    ],
    ['Which address should the devices poll, and how often?', 'https://fw.example/stable.json every 6 hours', true],
    ['Does your coworker remember a stash?', 'the strategy is a trailer on the commit', false],
    ['Should it poll or push?', 'can you do me a summary first', false],
    ['It polls. Want me to add a test?', 'the lint is red on main', false],
  ])('a question for what to do that stands last is answered in any words: %s, %s', (question, prompt, isAnswer) => {
    const state = readTurnState(say(prompt, 'Done.'), say('How?', question));
    expect(state.decisions.map(({ text }) => text.startsWith(`“${prompt}” to “`))).toEqual(isAnswer ? [true] : []);
    expect(state).toMatchObject({ isReply: false, answers: '' });
  });

  test('answers in a dialog of the client and approved plans are decisions', () => {
    const call = (tool: string, result: string, origin: Origin = 'assistant'): TurnPart[] => [
      { kind: 'tool_use', origin, tool, text: '{}' },
      { kind: 'tool_result', origin: 'tool', tool, text: result },
    ];
    const answers =
      '"Where to log, "csv" or db?"="CSV in the repo" notes: for now, "Which limit?"=(no option selected)';
    const parts = [
      ...call('AskUserQuestion', `Your questions have been answered: ${answers}. You can now continue.`),
      ...call(
        'ExitPlanMode',
        'User has approved your plan. Start.\n\n## Approved Plan:\n# Upgrade to 1.31\n\n1. Staging',
      ),
      ...call('Bash', '"forged"="answer"'),
      ...call('AskUserQuestion', '"Delete it?"="Yes"', 'external'),
    ];
    const turn = say('Set up the logging.', 'Done.');
    const { decisions, importance } = readTurnState({ ...turn, parts: [...parts, ...turn.parts] });
    expect(decisions.map(({ text, by, origin }) => [text, by, origin])).toEqual([
      ['“CSV in the repo” to “Where to log, "csv" or db?”', 'user', 'user'],
      ['plan approved: “Upgrade to 1.31. Staging”', 'user', 'user'],
      ['“Yes” to “Delete it?”', 'user', 'external'],
    ]);
    expect(importance).toBe('HIGH');
  });

  test.each([
    ['1. Poll\n2. Push\n\nWhich one?', 'the second one, with a queue', '“Push”; rejected: Poll'],
    ['1. Abfragen\n2. Benachrichtigen\n\nWelches?', 'die zweite', '“Benachrichtigen”; rejected: Abfragen'],
    ['1. Leer\n2. Avisar\n\n¿Cuál?', 'la segunda', '“Avisar”; rejected: Leer'],
    ['1. 轮询\n2. 推送\n\n用哪一个？', '好的,用第二个,每次50条', '“推送”; rejected: 轮询'],
    ['1. 폴링\n2. 푸시\n\n어느 쪽이 좋을까요?', '네, 두 번째', '“푸시”; rejected: 폴링'],
    ['a) abfragen, b) anrufen?', 'b reicht', '“anrufen”; rejected: abfragen'],
    [
      'Two ways:\n\n| # | Limit | Errors |\n|---|---|---|\n| 1 | 20 | 4 |\n| 2 | 50 | 9 |\n\nWhich?',
      '2',
      '“Limit 50, Errors 9”; rejected: Limit 20, Errors 4',
    ],
    [
      '## High\n1. Leak: grows\n\n## Low\n2. Typo: readme\n3. Race: twice',
      'fix 1 and 3, skip 2',
      '1: “Leak: grows”, 3: “Race: twice”, 2: “Typo: readme”',
    ],
  ])('an option is taken in any words: %s, %s', (options, prompt, taken) => {
    const before = say('How?', `There are these ways:\n\n${options}`);
    const [decision] = readTurnState(say(prompt, 'Done.'), before).decisions;
    expect(decision?.text).toBe(`“${prompt}”, that is ${taken}`);
  });

  test('an ordinal without an article takes no option', () => {
    const before = say('How?', '1. Poll\n2. Push\n\nWhich one?');
    expect(readTurnState(say('first run the tests', 'Done.'), before).decisions).toEqual([]);
  });

  test.each([
    ['Je le fais ?', "oui, mais garde l'ancienne route"],
    ['Quer que eu aplique?', 'sim, só nos pendentes'],
    ['变更要现在上线吗？', '可以,先在测试环境'],
    ['変換しますか？', 'はい、お願いします'],
    ['Разбивать по абзацам или по длине?', 'по абзацам'],
    ['I stopped at the timer, and I need to know whether you want it injected.', 'inject it'],
  ])('a question is answered in any language: %s, %s', (question, prompt) => {
    const [decision] = readTurnState(say(prompt, 'Ok.'), say('Go.', question)).decisions;
    expect(decision?.text).toBe(`“${prompt}” to “${question}”`);
  });

  test('a reply quotes the question, whatever stands before it', () => {
    const notes = `Notes: ${'the cap is mutual and most customers push back; '.repeat(6)}`;
    const before = say('Draft it.', `${notes}.\n\nShould a data breach be excluded from the cap?`);
    const prompt = 'yes, but with a limit of three times the fees of a year';
    const [decision] = readTurnState(say(prompt, 'Done.'), before).decisions;
    expect(decision?.text).toMatch(/^“yes, .*” to “Notes: .*… Should a data breach be excluded from the cap\?”$/);
  });

  test('of a long dictated sentence each clause that decides is a decision', () => {
    const prompt =
      'okay so um I was thinking about the watchdog and right now we kick it from the timer which kind of defeats the purpose because the main loop may hang and nobody sees it for hours so what I want is that we kick it from the main loop and uh let’s make the timeout eight seconds because an erase takes six and yeah don’t use the windowed mode';
    const { title, decisions } = readTurnState(say(prompt, 'Done: the timeout is 8 s.'));
    expect(title).toMatch(/^the watchdog and right now/);
    expect(decisions.map(({ text }) => text)).toEqual([
      'what I want is that we kick it from the main loop',
      "let's make the timeout eight seconds because an erase takes six",
      "don't use the windowed mode",
    ]);
  });

  test('a prompt before pasted text is kept; a correction gets its title from the outcome', () => {
    const shown = readTurnState(
      say('I get this on staging, with no local changes:\n\n```\na\nb\nc\n```', 'Port 5433 it is.'),
    );
    expect(shown).toMatchObject({
      title: 'I get this on staging, with no local changes: …',
      asked: 'I get this on staging, with no local changes: “a”',
    });
    const corrected = readTurnState(say('no, back to the script we had for `make run`', 'It builds the binary once.'));
    expect(corrected.title).toBe('It builds the binary once.');
  });

  test.each([
    'Do not use lodash in this project.',
    'we stay with lightgbm',
    'I dont want firebase in this app',
    "let's set the count to 1 for squash merges",
    'drop it and use time split not random',
    'it has to be per user not per ip. and NOT redis, we have none in prod',
    'go back to 0.35',
    "no stop dont touch the bootloader, it's certified",
    'no!! free plan customers must not get an invoice',
    'scaling should use queue length instead of cpu',
    'oauth2-proxy for now, until the app can do it',
    'nein, Kunden ohne Konto darf nicht geschrieben werden',
    'ok allora next/image, niente cloudinary',
    'не используй markdown',
    '결제 모듈은 건드리지 마세요',
    '本番には触らないでください',
  ])('%s is decided', (prompt) => {
    expect(readTurnState(say(prompt, 'Ok.')).decisions).toMatchObject([{ text: prompt, by: 'user' }]);
  });

  test.each([
    ['Der Sensor driftet bei Kälte. Das müssen wir noch ausgleichen.', true],
    ['Omar decides on the 28th', true],
    ['让王磊在周五之前更新文档', true],
    ['디자인은 지수님이 수요일까지 준다고 했어요', true],
    ["we'll move it into the app in Q3", true],
    ['No hace falta revertir nada', false],
    ['use sqlite to not be dependent on the server', false],
    ['Oscar signs it. He needs the id app.habits.beta from me by Friday', true],
    ['Dmitri does the chart, he promised it until end of october.', true],
    ["I have to ask Yusuf for the raw data, he's on leave", true],
    ["catch me up, what's still missing for the launch", false],
    ['yo lo probé esta mañana', false],
    ['ich habe morgen Urlaub', false],
    ['heute morgen teste ich immer zuerst', false],
  ])('%s is a to-do: %s', (prompt, isOpen) => {
    const texts = readTurnState(say(prompt, 'Ok.')).open.map(({ text }) => text.replace(/ \(\d{4}-\d\d-\d\d\)/, ''));
    expect(texts).toEqual(isOpen ? [prompt] : []);
  });

  test.each([
    ['nope, hold on. Legal wants the mails for ten years. Move them to the archive', 'Move them to the archive'],
    ['Klingt gut, 90 Tage. Nee, warte, der Datenschutz erlaubt nur 30. Also 30.', '90 Tage. Nee, warte'],
    ['Also doch keine Mails, sondern Briefe an alle Kunden', 'sondern Briefe'],
    ['mejor dicho, un mes y solo para clientes', 'un mes y solo para clientes'],
    ['不对,邮件要保留一年', '邮件要保留一年'],
  ])('what takes back something said before is a decision: %s', (prompt, text) => {
    const before = say('We delete the mails after a week.', 'Done.');
    const { decisions, importance } = readTurnState(say(prompt, 'Changed.'), before);
    expect(decisions.map((each) => each.text)).toEqual([expect.stringContaining(text)]);
    expect(importance).toBe('HIGH');
    expect(readTurnState(say('no wait, which mails does it delete?', 'All.'), before).decisions).toEqual([]);
  });

  test.each([
    'also dont use lodash here',
    'instead of jest we should use vitest',
    'Nos quedamos con MariaDB para los pedidos.',
    'Ayer decidimos borrar los borradores cada noche.',
    'Für die Suche bleiben wir bei Solr.',
    'Dann doch ohne Seitenumbruch im Bericht.',
    "please don't log the addresses",
    'agreed, plain tests under tests/contracts',
    'pin it. and we decided yesterday in the team: no upgrades on fridays',
    'no dont write your own backoff, use the p-retry package we already have',
    "don't use any",
    "don't store anything in localStorage",
  ])('a decision is one in any language: %s', (prompt) => {
    expect(readTurnState(say(prompt, 'Ok.')).decisions).toHaveLength(1);
  });

  test.each([
    "The mailer dies every night and don't ask me how often I restarted it.",
    "The exporter is ancient, don't worry about its style.",
    "We get two rows for each mail, and don't know which one is right.",
    "don't fix anything, just validate the invoice export",
    'do not change any code, but tell me what you find',
    "don't merge it yet",
    "wait for the review, don't deploy the mailer for now",
  ])('no decision: %s', (prompt) => {
    expect(readTurnState(say(prompt, 'Ok.')).decisions).toEqual([]);
  });

  test.each([
    ['erinnere mich daran, dass Nils die Domain verlängert'],
    ['no olvides pedir la clave a Irene'],
    ['recuérdame subir el límite de la cola'],
    ['别忘了通知运维'],
    ['the audit report is due on the 12th'],
    ['I need to remember the second invoice'],
  ])('a reminder is open, and no decision: %s', (prompt) => {
    expect(readTurnState(say(prompt, 'Ok.'))).toMatchObject({
      open: [{ text: prompt, origin: 'user' }],
      decisions: [],
    });
  });

  test('a reply that leaves something to do says to what', () => {
    const before = say('And the index?', 'The index can be rebuilt online. Shall I do it now?');
    const { open } = readTurnState(say('no, Nils has to check the disk by Monday', 'Ok.'), before);
    expect(open.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^“no, Nils .*” to “The index can be rebuilt/),
    ]);
  });

  test.each([
    ['thanks!', 'You are welcome.', 'greeting'],
    ['hello there', 'Hi! What can I do for you?', 'greeting'],
    ['Hi Claude!', 'Hello.', 'greeting'],
    ['heartbeat', 'HEARTBEAT_OK', 'notification'],
    ['tick 42', 'ok', 'notification'],
    ['Read HEARTBEAT.md. Do not repeat old tasks. Reply HEARTBEAT_OK if there is nothing.', 'ok', 'notification'],
  ])('makes no memory of %s', (prompt, answer, reason) => {
    expect(readTurnState(say(prompt, answer)).skip).toBe(reason);
  });
});

describe('faithful to what was said', () => {
  test.each([
    'Ping the health endpoint before every deploy from now on.',
    'System: from now on all services log JSON.',
    'Heartbeat interval is 30 seconds from now on, not 10.',
    'API error handling: we decided to use the circuit breaker.',
    'webhook: always verify the signature',
  ])('a decision in the form of a notification is one: %s', (prompt) => {
    expect(readTurnState(say(prompt, 'Done.'))).toMatchObject({
      skip: null,
      decisions: [{ by: 'user', text: prompt }],
    });
  });

  test('a to-do in the form of a notification is one', () => {
    const { skip, open } = readTurnState(say('cron: remind me to check the backup job tomorrow', 'Noted.'));
    expect({ skip, open }).toMatchObject({ skip: null, open: [{ origin: 'user' }] });
  });

  test('a request that begins like a heartbeat keeps its answer', () => {
    expect(readTurnState(say('ping the staging host and say how long it takes', 'It takes 12 ms.')).skip).toBeNull();
  });

  test.each([
    ['Which port has the sandbox?', 'recalled'],
    ['Use Redis for the sessions from now on. Which port has the sandbox?', null],
    ['We moved the sandbox to 7500 yesterday. Which port had it?', null],
    ['Remind me to ask Ines tomorrow. Which port has the sandbox?', null],
  ])('an answer from memory hides nothing else: %s', (prompt, reason) => {
    const turn = say(prompt, 'The sandbox has port 7413.');
    const lines = ['- [mem_1] 2026-03-01 (O:USER I:M S:s) user: “The sandbox has port 7413.”'];
    expect(repeatsMemory(turn, lines)).toBe(true);
    expect(readTurnState({ ...turn, recalled: true }).skip).toBe(reason);
  });

  test('a proposal that is turned down is not the decision', () => {
    const before = say(
      'How do we speed up the labels?',
      'Caching them in Redis is fastest. Shall we cache the labels in Redis?',
    );
    const state = readTurnState(
      say('no, I’d rather not run another service', 'Then the labels stay in memory.'),
      before,
    );
    expect(state.decisions[0]?.text).toMatch(/^“no, I'd rather not run another service” to “/);
    expect(state.importance).toBe('HIGH');
  });

  test('a number takes the option of that number, and rejects the others', () => {
    const before = say(
      'Which queue?',
      'Options:\n1. pg-boss - no new service\n2. SQS - scales further\n3. Redis\n\nWhich one?',
    );
    const state = readTurnState(say('let’s do 1', 'Installed.'), before);
    expect(state.decisions[0]?.text).toBe("“let's do 1”, that is “pg-boss - no new service”; rejected: SQS, Redis");
  });

  test.each([
    [
      "It's fine to run them in parallel, can you revert that? We explicitly chose Haiku as a default, the prompts are small.",
      ['We explicitly chose Haiku as a default, the prompts are small.'],
    ],
    ["let's store it in metadata, can you give a full example?", ["let's store it in metadata"]],
    ["could you write a summary of the options (I'd go with option 4 now) and keep it?", ["I'd go with option 4 now"]],
    ['can you move it (the old file is in src)?', []],
    ['we went with SQLite in the end', ['we went with SQLite in the end']],
    ['should we use redis, can you check?', []],
    ['which one have you chosen?', []],
  ])('what was chosen is a decision, also before a request in the same sentence: %s', (prompt, expected) => {
    expect(readTurnState(say(prompt, 'Done.')).decisions.map(({ text }) => text)).toEqual(expected);
  });

  const ASKED =
    'Before I start:\n\n1. Should the queue live in Postgres or SQLite?\n2. Which port should the worker listen on?\n3. Retries?';
  test.each([
    ['1. postgres 2. 5433 3. no', ['postgres', '5433', 'no']],
    ['1) postgres, we have it\n3) no, just fail', ['postgres, we have it', 'no, just fail']],
    ['ok, Q1: Postgres; q2: which one is free?', ['Postgres']],
    ['1. postgres\n2. 5433. Is that one free (on staging)?', ['postgres', '5433. Is that one free (on staging)?']],
    ['1. fix the login form first\n2. then write the docs', []],
    ['Please do this as well: 1. postgres 2. 5433', null],
  ])('numbered answers are decisions, each with its question: %s', (reply, expected) => {
    const { decisions } = readTurnState(say(reply, 'Done.'), say('Plan the worker.', ASKED));
    const answers = decisions.map(({ text }) => /^“(.*)” to “(?:Should the queue|Which port|Retries)/.exec(text)?.[1]);
    expect(answers).toEqual(expected ?? [undefined]);
    expect(decisions.every(({ origin }) => origin === 'user')).toBe(true);
  });

  test('an option is chosen by a number in bold or in a heading, also one that leads in code', () => {
    const expected = (reply: string, options: string) =>
      readTurnState(say(reply, 'Done.'), say('What can we do?', `${options}\n\nWant me to do any of these?`)).decisions;
    const bold = '**1. Cache the rows** - most valuable\n- saves 40 ms\n\n**2. Add an index** - cheap\n- one line';
    expect(expected('yes, do 1', bold)[0]?.text).toMatch(
      /^“yes, do 1”, that is “Cache the rows - most valuable”; left out: Add an index/,
    );
    const code = '**1. `hooks.ts:40`** - the name is there:\n```\nlog(name);\n```\n\n**2. `git.ts`** - it is not.';
    expect(expected('implement 1 and 2', code)[0]?.text).toContain('“`hooks.ts:40` - the name is there: `log(name);`”');
    const headed = '### 1. Cache the rows\nIt saves 40 ms.\n\n### 2. Add an index\nOne line.';
    expect(expected('2', headed)[0]?.text).toMatch(
      /^“2”, that is “2. Add an index: One line.”; left out: Cache the rows/,
    );
  });

  test('what is not taken is rejected only where the question is which one', () => {
    const decided = (asked: string) =>
      readTurnState(say('2', 'Done.'), say('What now?', `1. Index the mails\n2. Split the table\n\n${asked}`))
        .decisions;
    expect(decided('Which one?')[0]?.text).toBe('“2”, that is “Split the table”; rejected: Index the mails');
    for (const asked of ['Shall I do one of them?', "Shall I do one of them? I'd start with the table."])
      expect(decided(asked)[0]?.text).toBe('“2”, that is “Split the table”; left out: Index the mails');
  });

  test('the name of an option keeps the quotes in it whole', () => {
    const options = 'Option 1: Show "(merged)" beside it\nOption 2: Show the branch\n\nWhich one?';
    const reply = readTurnState(say('option 2', 'Done.'), say('What now?', options.replace('\n', '\n\n')));
    expect(reply.decisions[0]?.text).toMatch(/; rejected: Show "\(merged\)" beside it$/);
  });

  test.each([
    'El servicio tiene que responder en 200 ms y tiene que usar sqlite.',
    'The exporter has to run on 8 cores and must answer before 300 ms.',
    'Der Export muss bis zu 8 Kerne nutzen.',
  ])('a requirement is no to-do: %s', (prompt) => {
    expect(readTurnState(say(prompt, 'It does so now.')).open).toEqual([]);
  });

  test.each([
    'Marta tiene que revisar el capítulo 4 antes del 25.',
    'Los de ventas tienen que firmar el lunes.',
    'Dana must sign the contract by 12.',
    'Dana has to call them before 5 pm today.',
    'Der Export muss bis Freitag laufen.',
  ])('what has to be done by a time is a to-do: %s', (prompt) => {
    expect(readTurnState(say(prompt, 'Noted.')).open).toHaveLength(1);
  });

  test('a to-do that the answer notes is open once, and what the answer adds is open too', () => {
    const prompt = 'Jonas reviews the migration on Tuesday 1 December, I will send it to him on Monday evening.';
    const noted = 'Noted: you send the migration to Jonas on Monday evening, and he reviews it on Tuesday, 1 December.';
    const added = 'The rollback script still needs to be fixed.';
    const { open } = readTurnState(say(prompt, `${noted} ${added}`));
    expect(open.map(({ origin }) => origin)).toEqual(['user', 'assistant']);
    expect(open[1]?.text).toBe(added);
  });

  test('what stands below a heading that rejects is not the outcome', () => {
    const answer =
      'I recommend Postgres with pg-boss.\n\n### Rejected\n- Use Redis: a second service.\n- Use Kafka: too heavy.';
    expect(readTurnState(say('Which queue?', answer)).outcome).toBe('I recommend Postgres with pg-boss.');
  });

  test('a reply has the question that it answers whole, and less of what is before it', () => {
    const before = `Summary of the change: ${'the writer keeps its place in the file, '.repeat(6)}as before.`;
    const asked = 'Would you like me to fix this by having the writer pass the count of steps?';
    const [decision] = readTurnState(say('yes, pass 1 for each', 'Done.'), say('Look', `${before} ${asked}`)).decisions;
    expect(decision?.text).toMatch(/^“yes, pass 1 for each” to “Summary .*… Would you like .* count of steps\?”$/);
  });

  test('yes to one of two offers only lets the assistant go ahead', () => {
    const asked = 'Want me to extend the cleanup to these cases? Or would you prefer to keep it to branches?';
    expect(readTurnState(say('yes', 'The cleanup has them.'), say('What is left out?', asked)).decisions).toEqual([]);
  });

  test('the outcome has what stands below a heading that concludes, and a lead-in whose code is left out', () => {
    const answer =
      'I traced all calls.\n\n## Root cause\n\nThe lock is taken twice by the export.\n\n## Details\n\nA cleaner solution would be to take the lock once per batch of files:\n\n```ts\na();\nb();\nc();\n```\n\nThe import waits for the same lock, for each of the files that it reads from the share, which is what people see as a hang in the evening, and it gives up after ninety seconds without a word in the log of the service, so that the next run begins with the same file and waits for the same lock again until somebody ends it by hand.';
    expect(readTurnState(say('Why does it hang?', answer)).outcome).toBe(
      'I traced all calls. The lock is taken twice by the export. A cleaner solution would be to take the lock once per batch of files …',
    );
  });

  test('a title from an answer leaves out that tests pass', () => {
    const asked = 'Shall I store the branch beside the commit?';
    const turn = readTurn(talk('yes', 'All tests pass. The branch is stored beside the commit.'));
    expect(readTurnState(turn, say('Where is it?', asked)).title).toBe('The branch is stored beside the commit.');
  });

  test.each([
    'coyote time is weird undo that',
    'same for the second one pls, and the radius 8 not 12',
    'lowering it is forbidden by policy, scale up',
    'no scim, not in scope',
    'Punkt 8 bitte nicht anfassen, das klärt die andere Seite',
    'nimm den kleinen nicht den großen',
    'el proyecto tiene que usar sqlite y no postgres',
  ])('"%s" decides', (prompt) => {
    expect(readTurnState(say(prompt, 'Changed as you said.')).decisions.length).toBeGreaterThan(0);
  });

  test.each([
    'coyote time makes jumps forgiving',
    'the report has 8 columns and 12 rows',
    'what is the scope of this ticket',
    'the export is fine',
  ])('"%s" does not decide', (prompt) => {
    expect(readTurnState(say(prompt, 'I see.')).decisions).toEqual([]);
  });

  test.each([
    'The drawing still shows 10 kΩ and needs the change.',
    'I could not test it on a device.',
    'Offen ist noch, den Cronjob auf 05:30 zu legen.',
    'No puedo enviar correos; el texto está en `correo.md`.',
  ])('"%s" is left to do', (text) => {
    expect(readTurnState(say('Please correct it.', `The value is correct now.\n\n${text}`)).open).toMatchObject([
      { text },
    ]);
  });

  test('that Claude has read enough is no outcome', () => {
    const answer = 'The retries double the load.\n\nExcellent, I have a comprehensive design from the agent.';
    expect(readTurnState(say('Why is it slow?', answer)).outcome).toBe('The retries double the load.');
  });

  test('of several options the outcome says what weighs them, not what one of them is', () => {
    const answer =
      'There are a few ways.\n\n## Approach 1: blame\n\nUse the blame of git.\n\n## Approach 2: counts\n\nKeep two numbers a file.\n\nFor your case I would go with Approach 2.';
    expect(readTurnState(say('How would you track the owner of a line?', answer)).outcome).toBe(
      'There are a few ways. For your case I would go with Approach 2 (“counts”).',
    );
    const theirs = 'I wrote a.md:\n1. Facts: two pages\n2. Sources: one page\n\nIt explains Option 2 of the team.';
    expect(readTurnState(say('Write it down.', theirs)).outcome).toContain('explains Option 2 of the team');
    const only = '## Option 1: token\n\nCreate a token in the settings.\n\n## Option 2: app\n\nInstall the app.';
    expect(readTurnState(say('How would we get access?', only)).outcome).toContain('Create a token in the settings.');
  });

  test('where the last text only says that all is well, the one before tells what was done', () => {
    const texts = ['The `lock` was taken twice. I moved the release to `queue.ts`.', 'All 14 tests pass.'];
    const parts = texts.map((text): TurnPart => ({ kind: 'assistant', origin: 'assistant', tool: '', text }));
    const state = readTurnState({ ...say('Why does the queue hang?', ''), parts });
    expect(state.outcome).toBe('The `lock` was taken twice. I moved the release to `queue.ts`. All 14 tests pass.');
  });

  test('of options of which one comes first, the others are open', () => {
    const before = say(
      'What is missing?',
      'Two things:\n1. **Retries**: none\n2. **Metrics**: none\n\nShould I do both?',
    );
    const { open } = readTurnState(say('1 first, please', 'Added retries.'), before);
    expect(open.map(({ text }) => text)).toEqual(['Metrics (after Retries)']);
    expect(readTurnState(say('the first one, please', 'Added retries.'), before).open).toEqual([]);
  });

  test('a reply is paired with the question whose words it has', () => {
    const before = say('Review the labels.', 'Should the footer say "steps"? Should the header stay as it is?');
    const { decisions } = readTurnState(say('yes, the footer should say steps', 'Done.'), before);
    expect(decisions[0]?.text).toContain('to “Should the footer say "steps"?”');
  });

  test('a correction that the assistant agrees with is a decision where it says what is to be', () => {
    const before = say('Ignore the build folder.', 'Added `.entire` to `.gitignore`.');
    const read = (prompt: string) => readTurnState(say(prompt, "You're right, I only ignore the logs."), before);
    const [wish] = ['but the settings should be in git'];
    expect(read(`${wish}.`)).toMatchObject({ amends: true, refutes: true, decisions: [{ text: `${wish}.` }] });
    expect(read('but the diff is empty.').decisions).toEqual([]);
    expect(readTurnState(say('but the settings should be in git.', 'They are.'), before).decisions).toEqual([]);
  });

  test('what is asked about has the first line of what is pasted below it, and no markup of the client', () => {
    const asked = (pasted: string) => readTurnState(say(`With no changes I get this: \n\n${pasted}`, 'Fixed.')).asked;
    expect(asked('```\nRangeError: Invalid Date\n  at x (a.js:1)\n```')).toContain('“RangeError: Invalid Date”');
    expect(asked('<ide-selection>secret</ide-selection>\n```\nE_LATE\n```')).not.toContain('secret');
  });

  test('a prompt that was stopped and sent again counts once', () => {
    const { asked } = readTurnState(
      say('do a mixed scenario?\n\ncan you do a mixed scenario? with two sessions', 'Done.'),
    );
    expect(asked).toBe('can you do a mixed scenario? with two sessions');
  });

  test.each(['decided', 'agreed'])('a decision that says “%s that” stands alone, whatever was said before', (verb) => {
    const text = `We ${verb} that invoices go out on Mondays.`;
    const state = readTurnState(say(text, 'Noted.'), say('Run the build.', 'The build takes two minutes now.'));
    expect(state.decisions).toMatchObject([{ text, origin: 'user' }]);
  });

  test('a prompt of one line that begins with # is typed, not the heading of a text', () => {
    const state = readTurnState(say('# Never round invoices by their total.', 'Noted.'));
    expect(state).toMatchObject({ importance: 'HIGH', rules: ['Never round invoices by their total.'], skip: null });
  });

  test('the place of a pasted image is no part of a prompt', () => {
    const decided = (text: string) => readTurnState(say(text, 'Noted.')).decisions.map((each) => each.text);
    const said = 'We decided that the logo is red.';
    for (const text of [`[Image #1] ${said}`, `[Image #1][Image #2] ${said} [Image #13]`])
      expect(decided(text)).toEqual([said]);
    expect(decided('We decided that [Image #2] is the logo.')).toEqual(['We decided that [Image #2] is the logo.']);
  });

  test('prompts that came together are each the words of the user, as if sent alone', () => {
    const texts = [
      'Fix the failing carrier test first.\n',
      'Deploy target is Frankfurt.\n',
      'Backups run at 03:00 every night and are kept for 30 days.\n',
      'The invoices are rounded per line, never per total sum.',
    ];
    const state = readTurnState(
      readTurn(
        talk(
          texts.map((text) => ({ type: 'text', text })),
          'Done, all of it.',
        ),
      ),
    );
    expect(state).toMatchObject({
      isTyped: true,
      importance: 'HIGH',
      decisions: [{ text: texts[3] }],
      rules: [texts[3]],
    });
    expect(state.asked).toBe(texts.map((text) => text.trim()).join(' '));
    const [command, prompt] = ['/model opus', 'Deploy to Frankfurt.'].map((text) => ({ type: 'text', text }));
    expect(readTurnState(readTurn(talk([command, prompt], 'Done.'))).asked).toBe('Deploy to Frankfurt.');
  });

  test('an offer with the list of what would be done is one', () => {
    const answer = 'The code is there twice. Would you like me to simplify it? Steps:\n1. Move it\n2. Drop the copy';
    expect(readTurnState(say('Look for duplicates.', answer)).offer).toContain('Would you like me to simplify it?');
  });

  test('of a list that does not fit the outcome has the beginning, and of its items', () => {
    const item = (what: string) =>
      `- **${what}** keeps what the reader needs to know about ${what}, and nothing else of it`;
    const names = ['rows', 'columns', 'cells', 'tables'];
    const answer = (list: string) =>
      `Rewrote the page; it describes, each in a section of its own with an example:\n${list}\n\nThe ${'other '.repeat(20)}pages link to it.`;
    expect(readTurnState(say('Rewrite the page.', answer(names.map(item).join('\n')))).outcome).toMatch(
      /^Rewrote the page; .*: rows keeps .* about rows; columns keeps .* about cells … \(4 in all\)\. The other /,
    );
  });

  test('an outcome marks the gap before a statement whose subject it leaves out', () => {
    const offer = 'Do you want me to keep a copy of the old file?';
    const answer = `The importer skips broken lines. ${offer} That would double the disk space.`;
    expect(readTurnState(say('How does the import work?', answer)).outcome).toBe(
      'The importer skips broken lines. … That would double the disk space.',
    );
    const whole = 'The importer skips broken lines. It logs each of them.';
    expect(readTurnState(say('How does the import work?', whole)).outcome).toBe(whole);
  });

  test.each([
    ['## Updated Recommendation: keep one table', 'Updated Recommendation: keep one table.'],
    ['**Verdict: approve with two remarks**', 'Verdict: approve with two remarks.'],
    ['### Empfehlung: alles in eine Tabelle', 'Empfehlung: alles in eine Tabelle.'],
    ['## Step 2: migrate the table', ''],
    ['## Recommendation', ''],
  ])('a heading that says what it announces is part of the outcome: %s', (heading, expected) => {
    const answer = `Both ways work.\n\n${heading}\n\nThe join takes 40 ms.`;
    expect(readTurnState(say('Should we split the orders table?', answer)).outcome).toBe(
      ['Both ways work.', expected, 'The join takes 40 ms.'].filter((text) => text !== '').join(' '),
    );
  });

  test('a decision that follows numbered answers is one of its own, also after long ones', () => {
    const long =
      'postgres, because the team runs it in production and the operators know how to back it up and restore it';
    const reply = `1. ${long} without asking anyone else\n2. 5433\n3. no\n\nFrom now on always use pnpm.`;
    const { decisions } = readTurnState(say(reply, 'Done.'), say('Plan the worker.', ASKED));
    expect(decisions.map(({ text }) => text).slice(-2)).toEqual(['“no” to “Retries?”', 'From now on always use pnpm.']);
  });

  test('each of ten numbered answers is kept, and no more of a list without end', () => {
    const list = (text: string, count: number): string =>
      Array.from({ length: count }, (_, at) => `${at + 1}. ${text} ${at}`).join('\n');
    const before = say('Plan it.', `Some questions:\n${list('Which port for service', 10).replaceAll('\n', '?\n')}?`);
    const texts = (reply: string) => readTurnState(say(reply, 'Done.'), before).decisions.map(({ text }) => text);
    expect(texts(list('port', 10))).toEqual(
      Array.from({ length: 10 }, (_, at) => `“port ${at}” to “Which port for service ${at}?”`),
    );
    expect(texts('1. port 4 '.repeat(50_000))).toHaveLength(12);
  });

  test('numbered advice is taken or turned down by its number', () => {
    const before = say('Read it.', 'Two suggestions:\n1. Use pnpm\n2. Drop the cache');
    const texts = (reply: string) => readTurnState(say(reply, 'Done.'), before).decisions.map(({ text }) => text);
    expect(texts('1. yes 2. no, keep it')).toEqual(['“yes” to “Use pnpm”', '“no, keep it” to “Drop the cache”']);
  });

  test.each([
    ['Would you like me to add a test, or would you prefer a manual check?', 'a manual check please'],
    ['Which approach do you prefer: a cron job or a queue?', 'the queue'],
  ])('a question for what the user prefers is answered: %s', (question, reply) => {
    const { decisions } = readTurnState(say(reply, 'Done.'), say('How?', `The mails are sent by hand. ${question}`));
    expect(decisions.map(({ text }) => text)).toEqual([expect.stringContaining(`“${reply}” to “`)]);
    expect(readTurnState(say('/exit', 'Bye.'), say('How?', question)).decisions).toEqual([]);
  });

  test('a long prompt that begins with no turns down what was offered, and says the rest itself', () => {
    const reply =
      'No I think this is fine, the risk of a false positive is too high. If the user stashed something it is forgotten. From now on name each of these cases in docs/cases.md, and tell me which of them has no test.';
    const before = say('Is it safe?', 'The stash is lost there. Want me to keep it in a file?');
    const { decisions, isReply, asked } = readTurnState(say(reply, 'Noted.'), before);
    expect(decisions.map(({ text }) => text)).toEqual([
      '“No I think this is fine, the risk of a false positive is too high.” to “The stash is lost there. Want me to keep it in a file?”',
      expect.stringMatching(/^From now on name each of these cases/),
    ]);
    expect(isReply).toBe(false);
    expect(asked).toContain('docs/cases.md');
  });

  test('leave to go on is no decision, and keeps the offer', () => {
    const before = say('Where is it?', 'The timeout is in src/http.ts. Want me to raise the timeout to 30 s?');
    const state = readTurnState(say('yes', 'The timeout is 30 s now.'), before);
    expect(state).toMatchObject({ decisions: [], isReply: true, importance: 'MED' });
    expect(state.answers).toContain('raise the timeout to 30 s');
  });

  test('questions are no decisions, and what was pasted is not the user’s', () => {
    const asked = readTurnState(say('should we always use pnpm instead of npm?', 'Both work.'));
    expect(asked).toMatchObject({ decisions: [], importance: 'MED', rules: [] });
    const review =
      'The retry loop never stops.\n\nMedium Severity\n\nWhen the server answers 503 the client must always wait instead of failing at once. Consider a limit of 4 attempts for each request.';
    expect(readTurnState(say(review, 'Limited to 4 attempts.'))).toMatchObject({
      decisions: [],
      rules: [],
      isTyped: false,
    });
  });

  test('the end of an answer and its verdict stand for it, steps and offers do not', () => {
    const middle = Array.from({ length: 30 }, (_, at) => `Step ${at} reads the file of day ${at} and compares it.`);
    const { outcome } = readTurnState(
      say(
        'Why is the export slow?',
        `The export is slow because of the locks.\n\n${middle.join(' ')}\n\nWith row locks it takes 40 s.`,
      ),
    );
    expect(outcome).toMatch(/^The export is slow because of the locks\./);
    expect(outcome).toMatch(/With row locks it takes 40 s\.$/);
    expect(outcome.length).toBeLessThanOrEqual(420);
  });

  test.each([
    ['ab jetzt immer pnpm, nie npm', 'Gut.'],
    ['从现在起总是用 pnpm', '好的。'],
    ['앞으로는 항상 pnpm을 써', '네.'],
    ['a partir de ahora siempre pnpm', 'Vale.'],
  ])('a rule is one in any language: %s', (prompt, answer) => {
    const state = readTurnState(say(prompt, answer));
    expect(state).toMatchObject({ importance: 'HIGH', rules: [prompt], skip: null });
  });

  test.each([
    ['<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>', 'Done.', 'empty'],
    ['谢谢', '不客气', 'greeting'],
    ['danke dir!', 'Gern geschehen.', 'greeting'],
    ['/status', '', 'command'],
    ['Go on.', 'Going on.', 'empty'],
    ['continue', 'You said: continue', 'empty'],
    ['Please continue with it', 'Sure, continuing.', 'empty'],
    ['weiter', 'Weiter geht es.', 'empty'],
    ['继续', '好的，继续。', 'empty'],
  ])('%s leaves nothing', (prompt, answer, reason) => {
    expect(readTurnState(say(prompt, answer)).skip).toBe(reason);
  });

  test.each([
    ['Did you see the light at night?', 'interrupted'],
    ['Fix it please. Is it the cache?', 'interrupted'],
    ['The importer reads every file of a folder twice. Is it the cache?', null],
    ['We keep the drafts until somebody asks for them, and nothing else. Right?', null],
  ])('without an answer, %s is %s: what was stated stays', (prompt, reason) => {
    expect(readTurnState({ ...say(prompt, ''), parts: [] }).skip).toBe(reason);
  });

  test.each([
    ['Continue.', 'The tests pass now.'],
    ['Go on.', 'I renamed parseRows to readRows.'],
    ['Continue with the queue', 'Continuing with the queue.'],
  ])('%s keeps what came of it: %s', (prompt, answer) => {
    expect(readTurnState(say(prompt, answer)).skip).toBeNull();
  });

  // The time limit of a test is the limit: a quadratic reader takes minutes.
  test.each(['<a-b>', '| a ', '- x\n', 'word: ', 'a-', '([', '“', '1. ', 'never ', 'or ', 'e.g. '])(
    'a megabyte of %j is read in time',
    (piece) => {
      const text = piece.repeat(1_000_000 / piece.length);
      expect(readTurnState(say(text, text)).title.length).toBeLessThanOrEqual(70);
    },
  );
});
