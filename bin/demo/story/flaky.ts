import { hits, serviceLog, source, testRun } from '../outputs.ts';
import { bash, edit, grep, read, type StoryTurn, write } from './turn.ts';

const SLOTS = 'test/pickups/slots.test.ts';
const FAILURE = { test: `${SLOTS} > offers the slots of a day`, message: 'expected 23 slots, received 24' };

/** A test that fails now and then. */
export const flakyTurns: readonly StoryTurn[] = [
  {
    prompt: 'Look into that flaky slots test. How often does it fail?',
    rounds: [
      {
        tools: [
          bash(
            `for i in $(seq 20); do npx vitest run ${SLOTS}; done`,
            testRun([SLOTS, SLOTS, SLOTS, SLOTS], [FAILURE, FAILURE]),
            true,
          ),
        ],
      },
    ],
    answer: 'It fails in about one run of five, always with one slot too many.',
  },
  {
    prompt: 'What is the cause?',
    rounds: [
      {
        thinking: 'One slot more on some days: that smells of daylight saving time.',
        tools: [
          read(
            'src/pickups/slots.ts',
            source(['clock', 'depots'], ['slotsOfDay', 'slotAt', 'mergeSlots', 'dayBounds']),
          ),
          read(SLOTS, source(['slots'], ['makeDepot', 'makeDay', 'offersTheSlotsOfADay', 'skipsClosedDays'])),
        ],
      },
      { tools: [grep('new Date\\(', hits('localDay', 16))] },
    ],
    answer:
      'The root cause: the test takes a random day of the year in Europe/Berlin, and the day on which summer time begins has 23 hours. The code is right, the test is not.',
  },
  {
    prompt: 'Fix the test with a fixed clock: 2026-03-29 for the short day and an ordinary Tuesday for the rest.',
    rounds: [
      { tools: [edit(SLOTS, 'const day = randomDay();', "const day = fixedDay('2026-03-29', 'Europe/Berlin');")] },
      {
        tools: [
          bash(`for i in $(seq 50); do npx vitest run ${SLOTS}; done`, testRun([SLOTS, SLOTS, SLOTS, SLOTS, SLOTS])),
        ],
      },
    ],
    answer: 'Fifty runs in a row pass. The short day 2026-03-29 has a test of its own with 23 slots.',
  },
  {
    prompt: 'Are there other tests that take random days or the real clock?',
    rounds: [
      {
        tools: [
          grep('Date\\.now|randomDay', hits('randomDay', 26)),
          bash('git log --oneline -30 -- test', serviceLog(14, ['merge', 'tests', 'wip'])),
        ],
      },
    ],
    answer: 'Three more: days.test.ts, invoices.test.ts and labels.test.ts read the real clock.',
  },
  {
    prompt: 'Give all three the fake clock from test/helpers, and from now on never let a test read the real time.',
    rounds: [
      { tools: [read('test/helpers/clock.ts', source(['clock'], ['fakeClock', 'advance', 'fixedDay']))] },
      {
        tools: [
          edit('test/pickups/days.test.ts', 'Date.now()', 'clock.now()'),
          edit('test/billing/invoices.test.ts', 'Date.now()', 'clock.now()'),
          edit('test/labels/labels.test.ts', 'Date.now()', 'clock.now()'),
        ],
      },
      {
        tools: [
          bash(
            'npx vitest run',
            testRun([
              'test/pickups/days.test.ts',
              'test/billing/invoices.test.ts',
              'test/labels/labels.test.ts',
              'test/carriers/client.test.ts',
              SLOTS,
            ]),
          ),
        ],
      },
    ],
    answer: 'All three use fakeClock now, and the whole suite passes.',
  },
  {
    prompt: 'Add a lint rule so that nobody forgets.',
    rounds: [
      {
        tools: [
          bash('cat biome.json', `{\n${'  "rules": { "suspicious": { "noDebugger": "error" } },\n'.repeat(24)}}`),
        ],
      },
      { tools: [write('lint/no-real-time.grit', '`Date.now()` where { $filename <: r"test/.*" } => .')] },
    ],
    answer: 'lint/no-real-time.grit forbids Date.now() below test; the linter runs it in the pipeline.',
  },
];
