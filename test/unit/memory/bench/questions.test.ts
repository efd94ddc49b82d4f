import { describe, expect, test } from 'vitest';
import {
  askForQuestions,
  chooseQuestions,
  decisionQuestion,
  makeQuestions,
  type Question,
  reasonQuestion,
  valueQuestion,
} from '../../../../memory/bench/questions.ts';
import type { PastTurn } from '../../../../memory/bench/turns.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { talk } from '../../../helpers/turns.ts';

function said(prompt: string, answer: string, at = 0, sessionId = 's1'): PastTurn {
  const turn = talk(prompt, answer, { sessionId, atMs: 1_800_000_000_000 + at * 60_000 });
  return { turn, project: '/home/dev/shop', read: readTurn(turn), text: `${prompt}\n${answer}` };
}

const texts = (questions: readonly Question[], kind: Question['kind']): string[] =>
  questions.filter((question) => question.kind === kind).map(({ text }) => text);

describe('a value is asked for by its sentence', () => {
  test.each([
    [
      'Expired carts are deleted by the nightly job after 30 days without an order.',
      'Expired carts are deleted by the nightly job after how many days without an order?',
      '30 days',
    ],
    [
      'The `invoice_total` column holds cents and never a currency.',
      'Which column holds cents and never a currency?',
      'invoice_total',
    ],
    [
      'Staging of the ledger listens on port 7411 behind the old balancer.',
      'Staging of the ledger listens on which port behind the old balancer?',
      '7411',
    ],
    [
      'Uploads of the importer end up in the bucket `shop-raw-eu` before they are checked.',
      'Uploads of the importer end up in which bucket before they are checked?',
      'shop-raw-eu',
    ],
  ])('%s', (sentence, text, answer) => {
    expect(valueQuestion(sentence)).toEqual({ text, answer });
  });

  test('but not where it stands in the rest, is quoted or measured today', () => {
    expect(valueQuestion('The `cart_id` column refers to cart_id of the order.')).toBeNull();
    expect(valueQuestion('It prints "gave up after 30 seconds" and ends with an error.')).toBeNull();
    expect(valueQuestion('The new suite covers 83 percent of the importer.')).toBeNull();
  });
});

test('a reason is asked for by its claim', () => {
  expect(
    reasonQuestion('The nightly importer takes a lock of its own because two runs once wrote the same ledger.'),
  ).toEqual({
    text: 'Why is it that the nightly importer takes a lock of its own?',
    answer: 'two runs once wrote the same ledger',
  });
  expect(reasonQuestion('The importer is slow, not because of the network but of the parser.')).toBeNull();
});

test.each([
  ["let's rename the nightly job to sweeper", 'What did we rename nightly job to?', 'sweeper'],
  ['please use pnpm instead of npm for the shop', 'What do we use instead of npm?', 'pnpm'],
  ["ok, let's drop the old balancer, it never worked", 'Did we decide to drop the old balancer?', 'the old balancer'],
])('a decision is asked again: %s', (sentence, text, answer) => {
  expect(decisionQuestion(sentence)).toEqual({ text, answer });
});

test.each(["let's try it", 'can you tell me where we should add the lock', "let's use this instead"])(
  'no decision to ask for: %s',
  (sentence) => {
    expect(decisionQuestion(sentence)).toBeNull();
  },
);

describe('a conversation', () => {
  const turns = [
    said('How are carts expired?', 'Expired carts are deleted by the nightly job after 30 days without an order.'),
    said(
      'And the lock?',
      'Let me look. The nightly importer takes a lock of its own because two runs once wrote the same ledger.',
      1,
    ),
    ...Array.from({ length: 8 }, (_, at) => said(`Fix typo number ${at}`, 'Done, the typo is gone.', at + 2)),
    said('where does `LedgerImporter.retry` get its attempts from?', 'From the settings of the shop.', 10, 's0'),
    said(
      'the alert says LedgerImporter.retry gave up, where do its attempts come from again?',
      'Let me see.',
      11,
      's2',
    ),
  ];
  const questions = makeQuestions(turns);

  test('gives questions whose answers stand in a turn', () => {
    expect(texts(questions, 'value')).toEqual([
      'Expired carts are deleted by the nightly job after how many days without an order?',
    ]);
    expect(texts(questions, 'reason')).toEqual(['Why is it that the nightly importer takes a lock of its own?']);
    for (const { answer, right } of questions) for (const at of right) expect(turns[at]?.text).toContain(answer);
  });

  test('a prompt that names something rare again is asked at its own place', () => {
    const [reference] = questions.filter(({ kind }) => kind === 'reference');
    expect(reference).toMatchObject({ answer: 'LedgerImporter', before: 11, right: [10] });
    expect(questions.filter(({ kind }) => kind !== 'reference').map(({ before }) => before)).toEqual([12, 12]);
  });

  test('what is said again and again is no question', () => {
    const often = Array.from({ length: 4 }, (_, at) => said(`again ${at}`, turns[0]?.read.parts[0]?.text ?? '', at));
    expect(makeQuestions(often)).toEqual([]);
  });

  test('the kinds take turns, and no turn is asked about twice', () => {
    const chosen = chooseQuestions(questions, turns, 2);
    expect(chosen).toHaveLength(2);
    expect(new Set(chosen.map(({ kind }) => kind)).size).toBe(2);
  });

  test('a model is asked within its calls, and its answer must be in the turn', async () => {
    const long = turns.map((each) => ({ ...each, text: each.text.padEnd(400) }));
    const shown: string[] = [];
    const ask = async (prompt: { user: string; parse(value: unknown): unknown }) => {
      shown.push(prompt.user);
      const asked = (answer: string) => ({ turn: 't1', question: 'When do carts go?', answer });
      return prompt.parse({ questions: [asked('30 days'), asked('90 days'), { ...asked('30 days'), turn: 't99' }] });
    };
    const model = { ask: ask as never };
    const { signal } = new AbortController();
    const made = await askForQuestions(long, model, { budget: { calls: 1 }, limit: 20, fence: () => 'f', signal });
    expect(shown).toHaveLength(1);
    expect(made).toEqual([
      { kind: 'model', text: 'When do carts go?', answer: '30 days', before: long.length, right: [0] },
    ]);
  });
});
