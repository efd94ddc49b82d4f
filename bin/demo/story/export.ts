import { hits, rows, source, testRun } from '../outputs.ts';
import { bash, edit, grep, read, type StoryTurn } from './turn.ts';

/** The monthly export, and the end of the day. */
export const exportTurns: readonly StoryTurn[] = [
  {
    prompt: 'Finance wants the monthly export as CSV with semicolons. What does it write today?',
    rounds: [
      {
        tools: [
          read(
            'src/export/monthly.ts',
            source(['db', 'files'], ['monthlyRows', 'writeCsv', 'totals', 'headerOf', 'rowOf']),
          ),
          bash('head -40 out/2026-09.csv', rows(['date', 'account', 'parcels', 'amount'], 38)),
        ],
      },
    ],
    answer: 'It writes commas, a point in amounts, and no header row.',
  },
  {
    prompt: 'Semicolons, a comma in the amounts, and a header row in German.',
    rounds: [
      {
        tools: [
          edit('src/export/monthly.ts', "const SEPARATOR = ',';", "const SEPARATOR = ';';\nconst DECIMAL = ',';"),
          edit(
            'src/export/header.ts',
            'export const HEADER = [];',
            "export const HEADER = ['Datum', 'Konto', 'Pakete', 'Betrag'];",
          ),
        ],
      },
      {
        tools: [
          bash(
            'npx vitest run test/export',
            testRun(['test/export/monthly.test.ts', 'test/export/header.test.ts', 'test/export/rounding.test.ts']),
          ),
        ],
      },
    ],
    answer: 'The export has semicolons, decimal commas and the header Datum, Konto, Pakete, Betrag.',
  },
  {
    prompt: 'How does it round half cents?',
    rounds: [
      {
        tools: [
          grep('round', hits('roundCents', 19)),
          read('src/export/rounding.ts', source(['types'], ['roundCents', 'splitRemainder', 'sumOf'])),
        ],
      },
    ],
    answer: 'Half to even, in roundCents; the remainder of a split goes to the last line.',
  },
  {
    prompt: 'Good, keep that. Stream the file, the October export ran out of memory.',
    rounds: [
      {
        tools: [
          bash(
            'npx tsx scripts/export.ts 2026-10',
            '<--- Last few GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory',
            true,
          ),
        ],
      },
      {
        tools: [
          edit(
            'src/export/monthly.ts',
            'const rows = await monthlyRows(month);',
            'for await (const row of monthlyRows(month)) await out.write(rowOf(row));',
          ),
        ],
      },
      { tools: [bash('npx tsx scripts/export.ts 2026-10 --stats', rows(['minute', 'rows', 'heap_mb'], 42))] },
    ],
    answer: 'October goes through now with at most 96 MB of heap.',
  },
  {
    prompt: 'Run everything once more.',
    rounds: [
      {
        tools: [
          bash(
            'npx vitest run',
            testRun([
              'test/carriers/client.test.ts',
              'test/pickups/search.test.ts',
              'test/labels/labels.test.ts',
              'test/queue/worker.test.ts',
              'test/export/monthly.test.ts',
              'test/flags/flags.test.ts',
            ]),
          ),
          bash('npx biome check .', 'Checked 214 files in 310ms. No fixes applied.'),
        ],
      },
    ],
    answer: 'All tests pass and the linter is quiet.',
  },
  {
    prompt: 'Write the message for the pull request of the export.',
    rounds: [
      { tools: [bash('git diff --stat', rows(['file', 'added', 'removed'], 30))] },
      { tools: [read('docs/pull-requests.md', source(['style'], ['title', 'why', 'what', 'howTested']))] },
    ],
    answer:
      'Export: semicolons, decimal commas, German header; rows are streamed, so a month of any size needs less than 100 MB.',
  },
  {
    prompt: 'Shorter, one sentence.',
    rounds: [],
    answer: 'The monthly export is streamed and written the way finance reads it.',
  },
];
