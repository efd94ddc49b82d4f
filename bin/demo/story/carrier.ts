import { hits, source, testRun } from '../outputs.ts';
import { bash, edit, grep, read, type StoryTurn } from './turn.ts';

const LIMITS_PAGE = `# Limits of the Northbound API

A key may make 40 requests a second, counted over a sliding window of ten seconds. Requests beyond that are answered
with status 429 and a Retry-After header in whole seconds. Label downloads count as two requests each. Bulk endpoints
count once for each started hundred of parcels. A key that stays over its limit for ten minutes is paused for an hour;
pauses are announced by mail to the technical contact of the account. Webhooks are not limited, but a receiver that
does not answer within five seconds is retried three times and then dropped for the day.`;

/** The client of an invented carrier: retries, conflicts, a limiter. */
export const carrierTurns: readonly StoryTurn[] = [
  {
    prompt: 'We begin with the client for the Northbound carrier API. What does src/carriers have today?',
    rounds: [
      {
        thinking: 'I look at the folder first, then at the client itself.',
        tools: [
          bash('ls -la src/carriers', 'client.ts\nconfig.ts\nerrors.ts\nlimits.ts\nnorthbound.ts\ntypes.ts'),
          read(
            'src/carriers/client.ts',
            source(
              ['carrierConfig', 'carrierErrors'],
              ['bookPickup', 'cancelPickup', 'fetchLabel', 'listDepots', 'trackParcel'],
            ),
          ),
        ],
      },
    ],
    answer:
      'There is a bare client with five calls (bookPickup, cancelPickup, fetchLabel, listDepots, trackParcel). It has no retries, no limiter and no timeout.',
  },
  {
    prompt:
      'For local work the Northbound sandbox listens on port 7413 on my machine, not on the 8080 of their manual. Put that into the development config.',
    rounds: [
      { tools: [read('src/carriers/config.ts', source(['env'], ['carrierConfig', 'readKey', 'sandboxOrigin']))] },
      {
        tools: [edit('src/carriers/config.ts', "sandbox: 'http://127.0.0.1:8080'", "sandbox: 'http://127.0.0.1:7413'")],
      },
    ],
    answer: 'The development config now points to the Northbound sandbox on port 7413.',
  },
  {
    prompt: 'Now retries: at most four attempts, the first pause 250 ms, doubled each time, with jitter.',
    rounds: [
      {
        thinking: 'Retries belong around the one place that does the fetch.',
        tools: [
          grep('carrierFetch', hits('carrierFetch', 22)),
          read('src/carriers/errors.ts', source(['types'], ['toCarrierError', 'isTransient', 'describeError'])),
        ],
      },
      {
        tools: [
          edit(
            'src/carriers/client.ts',
            'return send(request);',
            'return withRetries(() => send(request), { attempts: 4, firstPauseMs: 250, jitter: true });',
          ),
        ],
      },
      {
        tools: [
          bash(
            'npx vitest run test/carriers',
            testRun(['test/carriers/client.test.ts', 'test/carriers/errors.test.ts', 'test/carriers/retries.test.ts']),
          ),
        ],
      },
    ],
    answer:
      'Every carrier call goes through withRetries now: four attempts, 250 ms doubled each time, full jitter. The carrier tests pass.',
  },
  {
    prompt:
      'Ilse from billing just called: booking conflicts (status 409) from the carrier must never be retried. Last spring a retry booked 212 parcels twice.',
    rounds: [
      { tools: [edit('src/carriers/errors.ts', 'status >= 500 || status === 409', 'status >= 500')] },
      { tools: [bash('npx vitest run test/carriers/retries.test.ts', testRun(['test/carriers/retries.test.ts']))] },
    ],
    answer: 'isTransient no longer takes a 409 for transient, and a test makes sure that a conflict is sent once.',
  },
  {
    prompt: 'What does their page say about limits? https://developer.northbound.example/limits',
    rounds: [
      {
        tools: [
          {
            name: 'WebFetch',
            input: { url: 'https://developer.northbound.example/limits', prompt: 'Which limits apply to a key?' },
            result: LIMITS_PAGE,
          },
        ],
      },
    ],
    answer: 'A key may make 40 requests a second over a window of ten seconds; a label download counts as two.',
  },
  {
    prompt: 'Then we stay well below: a limiter of 30 requests a second for the whole process.',
    rounds: [
      {
        tools: [
          read('src/carriers/limits.ts', source(['clock'], ['takeSlot', 'releaseSlot', 'waitForSlot', 'limiterState'])),
        ],
      },
      { tools: [edit('src/carriers/limits.ts', 'export const PER_SECOND = 10;', 'export const PER_SECOND = 30;')] },
      {
        tools: [
          bash(
            'npx vitest run test/carriers',
            testRun([
              'test/carriers/client.test.ts',
              'test/carriers/errors.test.ts',
              'test/carriers/limits.test.ts',
              'test/carriers/retries.test.ts',
            ]),
          ),
        ],
      },
    ],
    answer: 'The limiter lets 30 requests a second through, for all carriers of the process together.',
  },
];
