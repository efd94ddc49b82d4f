import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findStatements } from '../../../../memory/text/statements.ts';

const texts = (markdown: string) => findStatements(markdown).map(({ text }) => text);

test('a sentence stays with the one that turns it', () => {
  expect(texts('Yes, cache it in Redis. However, I would rather not run another service.')).toEqual([
    'Yes, cache it in Redis. However, I would rather not run another service.',
  ]);
  expect(texts('Das geht mit Redis. Allerdings will ich keinen weiteren Dienst.')).toHaveLength(1);
});

test('a lead-in stays with its list, its table or its line of code, and goes without one', () => {
  expect(texts('It has two parts:\n- a queue\n- a worker\n\nDone.')).toEqual([
    'It has two parts: a queue; a worker',
    'Done.',
  ]);
  expect(texts('The fix:\n```ts\nclose(handle);\n```')).toEqual(['The fix: `close(handle);`']);
  expect(texts('Limits:\n\n| plan | calls | users |\n|---|---|---|\n| free | 40 | 2 |')).toEqual([
    'Limits: free: calls 40, users 2',
  ]);
  expect(texts('The fix:')).toEqual([]);
  const code = '\n```ts\na();\nb();\nc();\n```';
  expect(texts(`A checkpoint with two sessions renders both dots side by side:${code}`)).toEqual([
    'A checkpoint with two sessions renders both dots side by side …',
  ]);
  expect(texts(`The output of the second script for these files looks like:${code}`)).toEqual([]);
});

test('a numbered row of a table is an item, and so is a box, with its cross', () => {
  const rows = '| # | plan | calls |\n|---|---|---|\n| 1 | free | 40 |\n| 2 | team | 900 |';
  expect(findStatements(`Plans:\n\n${rows}`)[0]).toMatchObject({
    text: 'Plans: 1. plan free, calls 40; 2. plan team, calls 900',
    items: [
      { number: 1, text: 'plan free, calls 40' },
      { number: 2, text: 'plan team, calls 900' },
    ],
  });
  expect(texts('Test plan:\n- [ ] staging\n- [x] units')).toEqual(['Test plan: [ ] staging; [x] units']);
});

test('an abbreviation of a unit ends a sentence', () => {
  expect(texts('It takes 40 ms. The rest waits.')).toHaveLength(2);
});

test('an item that leads in others stays with them', () => {
  expect(
    texts('Two files:\n1. `a.md` - short\n2. `b.md` - whole, with:\n   - the design\n   - open questions'),
  ).toEqual(['Two files: 1. `a.md` - short; 2. `b.md` - whole, with: the design; open questions']);
  expect(texts('It happens in:\n- the first step:\n```\na\nb\nc\n```')).toEqual(['It happens in: the first step']);
});

test('a bold number begins an item', () => {
  expect(findStatements('**2. Rename it** - cheap\n\n**3. Drop it**')).toMatchObject([
    { text: 'Rename it - cheap', number: 2 },
  ]);
});

test('code and tables without a lead-in are no statements', () => {
  expect(texts('```\nconst a = 1;\n```\n| a | b |\n|---|---|\n| 1 | 2 |\nIt holds.')).toEqual(['It holds.']);
});

test('a heading leads in a table, and a short form has all outer items, cut', () => {
  const table = '| part | before | after |\n|---|---|---|\n| lock | twice | once |';
  expect(texts(`## The lock is taken once\n\n${table}`)).toEqual([
    'The lock is taken once: lock: before twice, after once',
  ]);
  const why = `, ${'which is why the worker waits for it '.repeat(3)}`;
  const list = `- **Queue** takes the lock once and keeps it until all pages are read${why}\n  - ${why}\n- Files:\n  - \`queue.ts\`\n- The docs say so in the page about locks and queues${why}`;
  const [read] = findStatements(`Changes:\n${list}`);
  expect(read?.text).toMatch(/ … \(5 in all\)$/);
  expect(read?.short).toBe(
    'Changes: Queue takes the lock once and keeps it until all pages are read; Files: `queue.ts`; The docs say so in the page about locks and queues',
  );
});

test('points below a bold number belong to it, and items of a long list end after a clause', () => {
  const long = 'so that the worker waits only for the pages that are read next'.repeat(2);
  const list = [
    `**1. Lock** in \`src/queue/core/lock.ts\`:\n- Taken once (${long})\n- Kept`,
    `**2. Docs of the queue and of its readers** - ${long}`,
    `**3. Tests** in \`src/queue/core/integration/lock_keeps_the_order_of_pages.test.ts\` ${long}`,
    `**4. Reader** (${long})`,
  ];
  const [read] = findStatements(`Changes made:\n\n${list.join('\n\n')}`);
  expect(read?.short).toBe(
    'Changes made: 1. Lock in `…/lock.ts`: Taken once; 2. Docs of the queue and of its readers; 3. Tests in `…/lock_keeps_the_order_of_pages.test.ts` so that the…; 4. Reader',
  );
});

test('names the heading above', () => {
  expect(findStatements('## Next steps\n\nAdd a metric.')[0]).toMatchObject({ heading: 'Next steps' });
});

test('never throws, and is no longer than what it read', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a b.', '\n', '- x', '| a |', '```', '## h', 'so:', 'But no. ', '> q')),
      (all) => {
        const text = all.join('\n');
        for (const each of findStatements(text)) expect(each.text.length).toBeLessThanOrEqual(2 * text.length + 2);
      },
    ),
  );
});

// The time limit of a test is the limit: a quadratic reader takes minutes.
test.each(['word: ', '| a ', '- a\n'])('a megabyte of %j is read in time', (piece) => {
  expect(findStatements(piece.repeat(1_000_000 / piece.length))).toEqual(expect.any(Array));
});
