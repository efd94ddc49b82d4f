import { hits, serviceLog, source, testRun } from '../outputs.ts';
import { bash, edit, grep, read, type StoryTurn, write } from './turn.ts';

/** A new queue goes out behind a flag. */
export const rolloutTurns: readonly StoryTurn[] = [
  {
    prompt: 'Now the new booking queue. It goes out behind a flag; what do we have for flags?',
    rounds: [
      {
        tools: [
          grep('isEnabled', hits('isEnabled', 24)),
          read('src/flags/index.ts', source(['env'], ['isEnabled', 'setFlag', 'flagsOf', 'shareOf'])),
        ],
      },
    ],
    answer: 'Flags live in src/flags, by name and share of accounts; setFlag writes them to the config table.',
  },
  {
    prompt:
      'Call the flag queue_v2. To switch it off in an emergency the command is `make flag-off FLAG=queue_v2`; it works within a minute and needs no release.',
    rounds: [
      {
        tools: [
          bash(
            'cat Makefile',
            `${'.PHONY: build test lint\nbuild:\n\tnpm run build\ntest:\n\tnpx vitest run\nlint:\n\tnpx biome check .\n'.repeat(7)}flag-off:\n\tnpx tsx ops/flags.ts off $(FLAG)`,
          ),
        ],
      },
      { tools: [edit('src/flags/names.ts', "'label_cache'", "'label_cache',\n  'queue_v2'")] },
    ],
    answer: 'The flag queue_v2 exists and is off everywhere.',
  },
  {
    prompt: 'Move the booking worker to the new queue where the flag is on.',
    rounds: [
      {
        thinking: 'Both queues have to be drained while the flag changes.',
        tools: [
          read(
            'src/queue/worker.ts',
            source(['flags', 'carriers'], ['takeJob', 'finishJob', 'retryJob', 'drain', 'startWorker', 'stopWorker']),
          ),
        ],
      },
      {
        tools: [
          edit(
            'src/queue/worker.ts',
            'const queue = oldQueue;',
            "const queue = isEnabled('queue_v2', job.account) ? newQueue : oldQueue;",
          ),
        ],
      },
      {
        tools: [
          bash(
            'npx vitest run test/queue',
            testRun([
              'test/queue/worker.test.ts',
              'test/queue/drain.test.ts',
              'test/queue/order.test.ts',
              'test/queue/retry.test.ts',
            ]),
          ),
        ],
      },
    ],
    answer: 'The worker chooses the queue for each account and drains both; the queue tests pass.',
  },
  {
    prompt:
      'Rollout plan: 5 percent of the accounts on Thursday, 40 on Monday, all on Wednesday if the error rate stays below 0.3 percent.',
    rounds: [
      {
        tools: [
          write(
            'ops/rollout-queue-v2.md',
            '# Rollout of queue_v2\n\n- Thursday: 5 percent\n- Monday: 40 percent\n- Wednesday: all, if the error rate stays below 0.3 percent\n',
          ),
        ],
      },
      {
        tools: [
          read(
            'ops/dashboards/queue.ts',
            source(['metrics'], ['queueDepth', 'errorRate', 'ageOfOldest', 'jobsPerMinute', 'panel', 'threshold']),
          ),
        ],
      },
    ],
    answer: 'The plan stands in ops/rollout-queue-v2.md, and the queue dashboard has the error rate already.',
  },
  {
    prompt: 'Add the age of the oldest job as a panel, warning at 90 seconds.',
    rounds: [
      {
        tools: [edit('ops/dashboards/queue.ts', 'panels: [', 'panels: [\n  panel(ageOfOldest, { warnSeconds: 90 }),')],
      },
      { tools: [bash('npx tsx ops/dashboards/preview.ts', serviceLog(26, ['panel.rendered', 'metric.read']))] },
    ],
    answer: 'The panel shows the oldest job and warns at 90 seconds.',
  },
  {
    prompt: 'Let me see what the worker logs with the flag on.',
    rounds: [
      {
        tools: [
          bash(
            'QUEUE_V2=1 npx tsx src/queue/main.ts --seconds 20',
            serviceLog(52, ['job.taken', 'job.finished', 'queue.depth', 'job.retried']),
          ),
        ],
      },
    ],
    answer: 'Jobs are taken and finished in order; two were retried once after a timeout of the sandbox.',
  },
];
