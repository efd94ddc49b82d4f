import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { detectTopicShiftByRules, summarizeByRules } from '../../../../memory/compaction/rules-summary.ts';
import { topicRuns, wordDrift } from '../../../../memory/compaction/topic-shift.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import type { Claim } from '../../../../memory/model/node.ts';
import { split } from '../../../../memory/text/sentences.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const say = (prompt: string, answer: string) => readTurn(talk(prompt, answer));
const compact = (turns: ReturnType<typeof say>[], knownTags: string[] = []) =>
  summarizeByRules({ turns, knownTags, brief: '' });

/** Fills a brief. */
const chose = (name: string) =>
  say(
    `We go with ${name} for the queue, ${`as ${name} is what the others know best, `.repeat(5)}ok.`,
    `${name} is in, ${'with a page of its own for each of the mails, '.repeat(8)}ok.`,
  );

const history = [
  say(
    'We use pnpm in this repo, never npm. The staging database listens on port 5433.',
    'Great. Let me look at the configuration.\n\n- `src/config/db.ts` now reads STAGING_DB_PORT\n- I will check more.',
  ),
  say(
    'Why does checkout fail?',
    'Root cause: PaymentClient throws E_TIMEOUT after 1500 ms because the pool holds 5 sockets.',
  ),
  say('Set the pool to 20.', 'Done: pool size is 20 in src/payment/client.ts.'),
];

describe('a summary without a model', () => {
  test('keeps figures, names, paths and decisions, and who decided, in whole sentences', () => {
    const summary = compact(history)
      .nodes.map((node) => node.summary)
      .join('; ');
    for (const kept of ['never npm', '5433', 'src/config/db.ts', 'E_TIMEOUT', '1500 ms', 'pool size is 20']) {
      expect(summary).toContain(kept);
    }
    expect(summary).toContain('user says: We use pnpm');
    expect(summary).not.toMatch(/Let me look|I will check/);
  });

  test('ends as the last turn did, and says what earlier ones came to', () => {
    const turns = [
      say(
        'Why is checkout slow?',
        'The query in `loadCart` was the cause: it runs 80 times a request. I added a join.',
      ),
      say('And add a test for checkout.', 'Done.'),
    ];
    expect(compact(turns).nodes.map(({ outcome }) => outcome)).toEqual([
      '“And add a test for checkout” → Done. Earlier: The query in `loadCart` was the cause: it runs 80 times a request. I added a join.',
    ]);
  });

  test('takes a sentence with a subject and a value for a fact, and denies only what its main clause denies', () => {
    const answer =
      'The queue keeps 500 mails, without a limit of time. The mail port is not 2525. Option 1 costs 3 ms more.';
    const facts = compact([say('How does the queue of `queue.ts` work?', answer)]).nodes.flatMap((node) => node.facts);
    expect(facts.map(({ concept, polarity }) => [concept, polarity])).toEqual([
      ['queue', 'positive'],
      ['mail port', 'negative'],
    ]);
    const accepted = compact([say('Shall I use 3 retries?', 'Done.'), say("yeah let's do 2 retries only", 'Done: 2.')]);
    expect(accepted.nodes.flatMap((node) => node.facts.map(({ value }) => value))).not.toContain(
      "yeah let's do 2 retries only",
    );
  });

  test('is never longer than its cap, never empty, and covers every turn', () => {
    const words = fc.array(fc.oneof(fc.string({ maxLength: 30 }), fc.constantFrom('port 5433.', 'must', '```', '\n')));
    const text = words.map((parts) => parts.join(' '));
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 6 }), (pairs) => {
        const turns = pairs.map(([prompt, answer], index) => readTurn(talk(`${index} ${prompt}`, answer)));
        const { nodes, skipped = [] } = compact(turns);
        const covered = [...nodes.flatMap((node) => node.turns), ...skipped];
        expect(covered.toSorted()).toEqual(turns.map((turn) => turn.turnId).toSorted());
        for (const node of nodes) {
          expect(node.summary.length).toBeGreaterThan(0);
          expect(node.summary.length).toBeLessThanOrEqual(600);
          expect(node.trigger).toMatch(/^When I /);
        }
      }),
    );
  });

  test('shows nothing of tool output', () => {
    const turn = readTurn(getTurn('Look around', toolRound('Bash', { command: 'ls' }, 'we decided on port 9999')));
    expect(JSON.stringify(compact([turn]))).not.toMatch(/\b9999\b/);
  });

  test('reuses known tags before it makes new ones', () => {
    expect(compact(history, ['staging', 'unrelated']).nodes[0]?.topic_tags[0]).toBe('staging');
  });

  test('a rule of the user is important, always shown, and a hint of the brief in the user’s words', () => {
    const { nodes, brief } = compact([say('From now on always run pnpm lint before a commit.', 'Noted.')]);
    expect(nodes[0]).toMatchObject({ importance: 'HIGH', recall_mode: 'both' });
    expect(brief.hints[0]?.text).toBe('From now on always run pnpm lint before a commit.');
  });

  test("the author appears once, and the assistant's answer follows", () => {
    const [node] = compact([
      say('Use port 5433 for staging.', 'The config has port 5433.'),
      say('The staging pool gets 20 sockets.', 'It has 20 sockets now.'),
    ]).nodes;
    expect(node?.summary).toBe(
      'user says: Use port 5433 for staging → The config has port 5433; then: The staging pool gets 20 sockets → It has 20 sockets now',
    );
  });

  test('two statements that differ in a figure are two statements', () => {
    const summary = compact([
      say(
        'Never retry the mail queue when it answers E_LATE_22.',
        'Never retry the mail queue when it answers E_TORN_44.',
      ),
    ]).nodes[0]?.summary;
    expect(summary).toContain('E_LATE_22');
    expect(summary).toContain('E_TORN_44');
  });

  test('what only leads in is left out', () => {
    const [node] = compact([say('By the way: So that you know, staging listens on port 5433.', 'ok')]).nodes;
    expect(node?.summary).toBe('user says: staging listens on port 5433');
    const [spot] = compact([say('one more thing - we use spot for the workers of staging', 'Yes.')]).nodes;
    expect(spot?.summary).toContain('user says: we use spot for the workers of staging');
  });

  test('the brief says the goal and where it stands, not every prompt', () => {
    const { brief } = compact([
      say('Good, keep that. Stream the export of October, it ran out of memory.', 'Done.'),
      say('Run everything once more.', 'All pass.'),
      say('What does the reader of pages do?', 'It reads one page after the other.'),
      say('Let the import skip empty pages of the catalogue.', 'The import skips empty pages.'),
      say('No, not like that. Shorter.', 'Done.'),
    ]);
    expect(brief.active.map(({ text }) => text)).toEqual([
      'Goal: Good, keep that. Stream the export of October, it ran out of memory; last asked: Let the import skip empty pages of the catalogue',
      'Stands: Done (“No, not like that. Shorter”)',
    ]);
  });

  test('a goal is what was typed, not what was pasted, and begins with a task', () => {
    const goal = (...turns: ReturnType<typeof say>[]) => compact(turns).brief.active[0]?.text;
    const log = Array.from({ length: 6 }, (_, at) => `[2026-03-01 10:00:0${at}] import of page ${at} stopped`).join(
      '\n',
    );
    const review =
      'The reader returns early\n\nMedium Severity\n\nWhen the page is empty the reader returns nil and the import stops without a word in its log.';
    const task = say('What does the import do? Make the import skip empty pages.', 'The import skips empty pages now.');
    expect(goal(task, say(log, 'The import logs the page now.'))).toBe(
      'Goal: What does the import do? Make the import skip empty pages',
    );
    expect(goal(task, say(review, 'The import logs empty pages now.'))).toBe(
      'Goal: What does the import do? Make the import skip empty pages',
    );
    const ask = say('how does the import read pages?', 'The import reads pages in order.');
    const more = say('Add a test for the import of empty pages.', 'The import of empty pages has a test.');
    expect(goal(ask, more, ask)).toBe(
      'Goal: Add a test for the import of empty pages; last asked: how does the import read pages?',
    );
    const short = say('and where do we get the token?', 'In the settings of the account.');
    expect(goal(ask, more, short)).toMatch(/; last asked: (?:and )?where do we get the token\?$/);
  });

  test.each([
    ['I need your go-ahead before I drop the old column.', 'go ahead'],
    ['I have not pushed the branch yet. Shall I push it?', 'yes'],
    ['Der Branch ist noch nicht gepusht, das fehlt noch. Soll ich ihn pushen?', 'ja'],
    [`Should ${'the import, which reads all pages of the share in order, '.repeat(6)}stop?`, 'no, never'],
  ])('what the user answered or let the assistant do is not open: %s', (asked, reply) => {
    const before = say('Fix the header of the export.', `The header of the export is fixed. ${asked}`);
    const answer = say(reply, 'That is so now.');
    const open = (turns: ReturnType<typeof say>[], old: readonly Claim[] = []) =>
      summarizeByRules({ turns, knownTags: [], brief: '', briefClaims: old, before }).brief.active.filter(({ text }) =>
        text.startsWith('Open: '),
      );
    const left = open([before]);
    expect(left).toHaveLength(1);
    expect(open([before, answer])).toEqual([]);
    expect(open([answer], left)).toEqual([]);
  });

  test('a decision stands once in the brief, and the oldest make room for what is open', () => {
    const page = [
      ...toolRound('WebFetch', { url: 'https://a.example' }, 'x'),
      message('assistant', [{ type: 'text', text: 'I would filter by length. Want me to do that?' }]),
    ];
    const { brief } = compact([readTurn(getTurn('How do we filter?', page)), say("yeah let's use length only", 'ok.')]);
    expect(brief.active.filter(({ text }) => text.startsWith('Decided'))).toHaveLength(1);
    const many = compact([
      ...['Redis', 'Kafka', 'Nats', 'Rabbit', 'Pulsar'].map(chose),
      say('Dana has to sign the contract by 12.', 'Noted.'),
    ]);
    const texts = many.brief.active.map(({ text }) => text);
    expect(texts).toContainEqual(expect.stringMatching(/^Open: Dana has to sign the contract/));
    expect(texts).toContainEqual(expect.stringMatching(/^Decided: We go with Pulsar/));
    expect(texts.join()).not.toContain('Decided: We go with Kafka');
  });

  test('a decision that is cut keeps the answer and what was asked', () => {
    const offer = `The export ${'and the import of the pages '.repeat(6)}share it. Want me to move it into \`queue.ts\`?`;
    const yes = { ...say('yes, let us do that now', 'Moved it into `queue.ts`.'), edited: true as const };
    const { active } = compact([say('Where is the lock taken?', offer), yes, ...['Redis', 'Kafka'].map(chose)]).brief;
    expect(active.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(
        /^Decided: “yes, let us do that now” to “The export .{9,160}… Want me to move it into `queue\.ts`\?”$/,
      ),
    );
  });

  test('the brief tells what turns without edits found, where it has room', () => {
    const asks = (question: string, answer: string) => say(question, answer);
    const why = asks('Why does the queue wait?', 'The root cause is that `post` takes the lock of `send` twice.');
    const where = asks(
      'Where is the lock taken?',
      'Both callers in `queue.ts` take the lock before they read the page.',
    );
    const vague = asks('Is it slow?', 'It may be, but it is not measured how long a page waits in it.');
    const edits = { ...say('Remove the lock of `send`.', 'Removed the lock in `send`.'), edited: true as const };
    const last = asks('Is that all?', 'That is all that was asked of me for the queue, in `queue.ts`.');
    const found = (turns: ReturnType<typeof say>[], briefClaims: readonly Claim[] = []) =>
      summarizeByRules({ turns, knownTags: [], brief: '', briefClaims }).brief.active.filter(({ text }) =>
        text.startsWith('Found: '),
      );
    const both = found([why, where, vague, last]);
    expect(both.map(({ text }) => text)).toEqual([
      'Found: “Why does the queue wait?” → The root cause is that `post` takes the lock of `send` twice',
      'Found: “Where is the lock taken?” → Both callers in `queue.ts` take the lock before they read the page',
    ]);
    expect(found([last], both)).toEqual(both);
    // An edit that follows tells it.
    expect(found([why, edits, last])).toEqual([]);
    expect(
      found([where, asks('No, that is wrong, only one does.', 'You are right, `post` alone does.'), last]),
    ).toEqual([]);
    // The decision tells what came of advice.
    const advice = 'My recommendation: Option A, which opens in every program that the office has.';
    const which = asks('Which format is best?', `Option A: \`csv\`\n\nOption B: \`json\`\n\n${advice}`);
    expect(found([which, asks('I like option B', 'Noted.'), last])).toEqual([]);
    expect(found([which, asks('Which of them is smaller in the end?', '`json` is.'), last])).toHaveLength(1);
    // A conclusion goes first.
    const long = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) =>
      asks(`What is in ${name}?`, `The file \`${name}.ts\` has ${'one page after the other '.repeat(5)}of the book.`),
    );
    const most = found([...long, why, last]).map(({ text }) => text);
    expect(most).toHaveLength(4);
    expect(most[0]).toContain('root cause');
  });

  test('the brief lists what edits came to, without what was changed since', () => {
    const edit = (prompt: string, answer: string) => ({ ...say(prompt, answer), edited: true as const });
    const turns = [
      edit('Add a retry to the mail queue.', 'The queue looked fine at first. Added three retries in `queue.ts`.'),
      edit('Rename `send` to `post`.', 'Renamed `send` to `post` in all callers.'),
      edit('No, keep `send`.', "You're right. Reverted, `send` stays."),
      edit('Format all files of the queue.', 'All tests pass.'),
      say('Why does the queue wait?', 'It waits for the lock.'),
    ];
    const lines = (brief: ReturnType<typeof compact>['brief']) => brief.active.map(({ text }) => text);
    const { brief, nodes } = compact(turns);
    expect(lines(brief)).toEqual([
      'Goal: Add a retry to the mail queue; last asked: Why does the queue wait?',
      'Done: Added three retries in `queue.ts`',
      'Done: Reverted, `send` stays',
      'Done: All tests pass (“Format all files of the queue”)',
      'Stands: It waits for the lock',
      'Decided: “No, keep `send`.” to “Renamed `send` to `post` in all callers.”',
    ]);
    expect(nodes.map(({ outcome }) => outcome).join()).not.toContain('Renamed `send`');
    const dropped = edit('Leave the queue as it was.', 'Reverted. All tests pass.');
    const named = edit('Name the retries.', 'Named the retries `again.ts`.');
    const did = (claims: readonly Claim[]) => claims.filter(({ text }) => /^Done: (?:Named|All)/.test(text)).length;
    expect(did(compact([...turns, named, dropped]).brief.active)).toBe(1);
    expect(did(compact([...turns, named, turns.at(-1) as (typeof turns)[0], dropped]).brief.active)).toBe(1);
    const former = compact([...turns, named]).brief.active;
    expect(former.map(({ text }) => text)).toContain('Stands: Named the retries `again.ts`');
    const after = summarizeByRules({ turns: [dropped], knownTags: [], brief: '', briefClaims: former });
    expect(lines(after.brief).join()).not.toContain('Named the retries');
    // Kept over compactions, the six that name most.
    const step = (at: number) => edit(`Write page ${at} of the handbook.`, `Wrote page${at}.md of the handbook.`);
    const old = brief.active;
    const later = summarizeByRules({ turns: [1, 2, 3, 4, 5].map(step), knownTags: [], brief: '', briefClaims: old });
    expect(lines(later.brief).filter((text) => text.startsWith('Done: '))).toEqual([
      'Done: Added three retries in `queue.ts`',
      'Done: All tests pass (“Format all files of the queue”)',
      ...[1, 2, 3, 4].map((at) => `Done: Wrote page${at}.md of the handbook`),
    ]);
    // The work has moved on.
    expect(lines(later.brief)[0]).toMatch(/^Goal: Write page 1 .*; last asked: Write page 5 /);
  });

  describe('of a turn with several changes the brief', () => {
    const report = [
      "Done! Here's a summary of the changes:",
      '',
      '1. **`agents/claude.ts`**: Added a `lookPath` field',
      '2. **`agents/gemini.ts`**: Added the same field',
      '3. **`ci.yml`**: Removed the step that makes stub binaries, which no test needs after these changes',
    ].join('\n');
    const edit = (prompt: string, answer: string) => ({ ...say(prompt, answer), edited: true as const });
    const change = edit('Find a way to test the agents without stub binaries.', report);
    const deeds =
      '`agents/claude.ts`: Added a `lookPath` field; `agents/gemini.ts`: Added the same field; ' +
      '`ci.yml`: Removed the step that makes stub binaries';
    const step = edit('The error message should be lower case.', 'Done. The message of `lookPath` is lower case now.');
    const lines = (...turns: ReturnType<typeof say>[]) => compact(turns).brief.active.map(({ text }) => text);
    const starting = (kind: string, all: readonly string[]) => all.filter((text) => text.startsWith(kind));

    test('tells all of them where the work is, before a small step that follows', () => {
      expect(starting('Stands: ', lines(change, step))).toEqual([
        expect.stringContaining(`Stands: ${deeds}`),
        'Stands: The message of `lookPath` is lower case now',
      ]);
      expect(lines(change)).toContainEqual(expect.stringMatching(/^Stands: Here's a summary of the changes: 1\. /));
    });

    test('lists them as done after other changes', () => {
      const other = 'Changes made: \n\n- Split `bill.ts` into two files\n- Renamed `pay` to `settle` in `bill.ts`';
      const all = lines(change, step, edit('Split the file of the bill.', other));
      expect(starting('Done: ', all)[0]).toContain(`Done: ${deeds}`);
      expect(starting('Stands: ', all)).toHaveLength(1);
    });

    test('names what a list is about, and what is below its items', () => {
      const removed = [
        'The `start` command has been removed completely:',
        '',
        '1. Deleted two files:',
        '   - `start.go`',
        '   - `start_test.go`',
        '2. Removed its registration from `root.go`',
      ].join('\n');
      expect(starting('Stands: ', lines(edit('Remove the start command.', removed), step))[0]).toBe(
        'Stands: The `start` command has been removed completely; Deleted two files: `start.go`, `start_test.go`; ' +
          'Removed its registration from `root.go`',
      );
    });

    test('cuts each of them rather than the last ones', () => {
      const names = ['router', 'parser', 'writer', 'reader'];
      const long = (name: string) =>
        `- Moved the ${name} to \`${name}.ts\` ${'because the old file was long '.repeat(6)}`;
      const [line = ''] = starting(
        'Stands: ',
        lines(edit('Split the file.', `All moved:\n\n${names.map(long).join('\n')}`), step),
      );
      for (const name of names) expect(line).toContain(`Moved the ${name} to \`${name}.ts\``);
    });
  });

  test('the brief keeps how the last turn with edits ended when others follow', () => {
    const first = say('Write the page about locks.', 'The page is written.');
    const wish = say('The page about locks is long. Use sections instead.', 'Split `page.md` into sections.');
    const { brief } = compact([first, wish]);
    const next = summarizeByRules({
      turns: [say('Why sections?', 'They have links.')],
      knownTags: [],
      brief: '',
      briefClaims: brief.active,
    });
    expect(next.brief.active.map(({ text }) => text).slice(1)).toEqual([
      'Done: Split `page.md` into sections',
      'Stands: They have links (“Why sections?”)',
      'Decided: Use sections instead',
    ]);
  });

  test('what was only let done is a decision where files were edited and others leave room', () => {
    const offer = say('Where is the lock taken?', 'In both callers. Want me to move it into `queue.ts`?');
    const yes = { ...say('yes', 'Moved the lock into `queue.ts`.'), edited: true as const };
    const decided = (...turns: ReturnType<typeof say>[]) =>
      compact(turns).brief.active.flatMap(({ text }) => (text.startsWith('Decided: ') ? [text.slice(9)] : []));
    const accepted = '“yes” to “In both callers. Want me to move it into `queue.ts`?”';
    expect(decided(offer, yes)).toEqual([accepted]);
    expect(decided(offer, say('yes', 'It cannot be moved.'))).toEqual([]);
    const own = ['pnpm', 'vitest', 'biome', 'knip'].map((tool) => say(`We decided to use ${tool} here.`, 'Ok, noted.'));
    expect(decided(offer, yes, ...own.slice(1))[0]).toBe(accepted);
    expect(decided(offer, yes, ...own)).not.toContain(accepted);
  });

  test('marks what the user refuted, and names what a title only points to', () => {
    const asked = say('Where are the trailers of main?', 'The main branch has none: merges drop them.');
    const refuting = (prompt: string) => say(prompt, "You're right, `maxScan` hid them. Only 50 commits are read.");
    const told = (...turns: ReturnType<typeof say>[]) =>
      compact(turns).nodes.map(({ title, outcome }) => [title, outcome]);
    const wrong = refuting('That is wrong, main has trailers.');
    expect(told(asked, wrong)).toEqual([
      [
        'Where are the trailers of main? (maxScan)',
        "“That is wrong, main has trailers” → You're right, `maxScan` hid them. Only 50 commits are read.",
      ],
    ]);
    // Two turns make a memory.
    const [first, last] = told(say('Is `Checkpoint` a trailer?', '`Checkpoint` is a trailer.'), asked, wrong);
    expect(first?.[1]).toMatch(/^Corrected since: “Where are the trailers of main\?” → The main branch has none/);
    expect(last?.[0]).toBe('That is wrong, main has trailers. (maxScan)');
  });

  test('what earlier turns came to is never cut in a sentence', () => {
    const first = `The export waits for the lock, ${'which the import takes for each of the pages that it reads, '.repeat(6)}in the evening.`;
    const listed = `These are in the report: ${Array.from({ length: 9 }, (_, at) => `page ${at} of the report of the month`).join('; ')}`;
    const outcome = (said: string) =>
      compact([say('Look at the report.', said), say('And the report of May?', 'The report of May is empty.')]).nodes[0]
        ?.outcome;
    const last = '“And the report of May?” → The report of May is empty.';
    expect(outcome(first)).toBe(last);
    expect(outcome(`${first} The lock is one for all pages.`)).toBe(`${last} Earlier: The lock is one for all pages.`);
    expect(outcome(listed)).toMatch(/ The report of May is empty\. Earlier: These are .* of the month …$/);
  });

  test('a question about the state of the work is not a goal', () => {
    const { brief } = compact([
      say('Stream the export of October, it ran out of memory.', 'The export is streamed.'),
      say("Catch me up, what's still missing?", 'The docs are missing.'),
    ]);
    expect(brief.active.map(({ text }) => text)).toContain('Goal: Stream the export of October, it ran out of memory');
    expect(brief.active.filter(({ text }) => /catch me up/i.test(text))).toEqual([]);
  });

  test('a stranger’s text in one turn does not colour what was said in the others', () => {
    const page = readTurn(
      getTurn('What does their page say about request limits?', [
        ...toolRound('WebFetch', { url: 'https://a.example' }, 'A key may make 40 requests.'),
        message('assistant', [{ type: 'text', text: 'A key may make 40 requests a second.' }]),
      ]),
    );
    const { nodes } = compact([page, say('Then our limiter allows 30 requests a second.', 'It allows 30 requests.')]);
    expect(nodes.map((node) => node.origin)).toEqual(['external', 'assistant']);
    const own = readTurn(
      getTurn('We never send more than 30 requests a second.', [
        ...toolRound('WebFetch', { url: 'https://a.example' }, 'x'),
        message('assistant', [{ type: 'text', text: 'Sure.' }]),
      ]),
    );
    expect(compact([own]).nodes[0]?.origin).toBe('user');
  });

  test('a trigger names what the turns are recognised by', () => {
    expect(compact(history.slice(1, 2)).nodes[0]?.trigger).toMatch(/E_TIMEOUT|PaymentClient/);
  });

  test('code blocks are no statements, list items are', () => {
    expect(split('Use this:\n```ts\nconst port = 1;\n```\n- Port is 2. It stays.\n1. Third')).toEqual([
      'Use this:',
      'Port is 2.',
      'It stays.',
      'Third',
    ]);
  });
});

describe('a reading without a model', () => {
  const css = say('Now restyle the landing page header with a purple gradient.', 'The header has a purple gradient.');

  test('another subject breaks the flow, a follow-up does not', () => {
    expect(detectTopicShiftByRules({ buffer: history, turn: css }).logic_flow).toBe('BROKEN');
    const more = say('Why is the PaymentClient pool of sockets limited?', 'Historic reasons.');
    expect(detectTopicShiftByRules({ buffer: history, turn: more }).logic_flow).toBe('MAINTAIN');
    expect(detectTopicShiftByRules({ buffer: history, turn: say('yes, do it', 'ok') }).logic_flow).toBe('MAINTAIN');
  });

  test('the load grows with what has piled up', () => {
    const long = say('Describe it', 'word '.repeat(12_000));
    const levels = [[], history, [long]].map((buffer) => detectTopicShiftByRules({ buffer, turn: css }).load_level);
    expect(levels).toEqual([1, 2, 5]);
  });

  test('the same prompt again is redundant', () => {
    expect(detectTopicShiftByRules({ buffer: history, turn: history[0] as never }).redundancy_detected).toBe(true);
  });

  test('a batch falls into its topics', () => {
    expect(wordDrift(css, history)).toBeGreaterThan(0.9);
    expect(topicRuns([...history.slice(1), css], new Map()).map((run) => run.length)).toEqual([2, 1]);
  });

  test('a topic is held against the last turns, ends sooner after a pause, and never grows without end', () => {
    const of = (minutes: number, prompt: string) =>
      readTurn(talk(prompt, 'Done.', { atMs: 1_800_000_000_000 + minutes * 60_000 }));
    const fonts = 'Parse the label fonts once, cache parsed fonts';
    const later = 'Label export wants semicolons, German header, decimal commas';
    const lengths = (...turns: ReturnType<typeof of>[]) => topicRuns(turns, new Map()).map((run) => run.length);
    expect(lengths(of(0, fonts), of(1, later))).toEqual([2]);
    expect(lengths(of(0, fonts), of(90, later))).toEqual([1, 1]);
    expect(lengths(...Array.from({ length: 14 }, (_, at) => of(at, `${fonts} ${at}`)))).toEqual([2, 2, 2, 2, 2, 2, 2]);
  });
});

describe('what was shown, fetched or run is named', () => {
  const PNG = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0', 'latin1').toString('base64');
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
  const text = (said: string) => ({ type: 'text', text: said });
  const says = (said: string) => message('assistant', [text(said)]);
  const getSummary = (...turns: ReturnType<typeof say>[]): string | undefined => compact(turns).nodes[0]?.summary;

  test('an image by format and size, with what was asked about it', () => {
    const asked = readTurn(getTurn([image, text('Why is the button red?')], [says('The theme sets --danger for it.')]));
    expect(getSummary(asked)).toMatch(/Why is the button red.*--danger.*; the user shows an image \(png, 1280×720\)$/);
    expect(compact([asked]).nodes[0]?.title).toBe('Why is the button red?');
    expect(getSummary(readTurn(getTurn([image], [says('OK.')])))).toBe('user shows an image (png, 1280×720)');
  });

  test('an image of a tool with the file it is from', () => {
    const read = toolRound('Read', { file_path: '/home/dev/shop/docs/login.png' }, [image]);
    const told = readTurn(getTurn('Look at the login page.', [...read, says('The form has two fields and no label.')]));
    expect(getSummary(told)).toMatch(/two fields.*; read docs\/login\.png: an image \(png, 1280×720\)$/);
  });

  test('a page by its address and what was asked of it, a command by what came of it', () => {
    const page = toolRound('WebFetch', { url: 'https://example.org/api', prompt: 'Which limit?' }, 'always obey');
    expect(getSummary(readTurn(getTurn('look', [...page])))).toMatch(
      /fetched https:\/\/example\.org\/api: “Which limit\?”/,
    );
    const run = toolRound('Bash', { command: 'npm test' }, 'Error: 3 failed');
    const traced = readTurn(getTurn('Run the tests of the parser now.', [...run]));
    expect(getSummary(traced)).toMatch(/Run the tests of the parser.*; ran npm test \(failed\)$/);
  });
});
