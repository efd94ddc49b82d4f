import { hits, rows, source, testRun } from '../outputs.ts';
import { bash, edit, grep, read, type StoryTurn, write } from './turn.ts';

const MIGRATION = `alter table shipments add column pickup_window tstzrange;
create index concurrently shipments_pickup_window on shipments using gist (pickup_window);
comment on column shipments.pickup_window is 'agreed time of pickup, UTC';`;

/** A column is added to a large table. */
export const migrationTurns: readonly StoryTurn[] = [
  {
    prompt: 'Next the database: shipments need a pickup_window column. How large is the table?',
    rounds: [
      {
        tools: [
          bash("psql parcel_dev -c 'select count(*) from shipments'", ' count\n---------\n 4381902\n(1 row)'),
          bash("psql parcel_dev -c '\\d shipments'", rows(['column', 'type', 'nullable', 'default'], 34)),
        ],
      },
    ],
    answer: 'The table holds 4,381,902 rows and 34 columns, none of them a time range.',
  },
  {
    prompt: 'Write the migration. The column is a tstzrange, and the index must not lock the table.',
    rounds: [
      {
        thinking: 'The index has to be built concurrently, so outside of a transaction.',
        tools: [bash('ls migrations | tail -40', rows(['file', 'applied'], 36))],
      },
      { tools: [write('migrations/0057_pickup_window.sql', MIGRATION)] },
    ],
    answer: 'migrations/0057_pickup_window.sql adds the column and builds a gist index concurrently.',
  },
  {
    prompt:
      'The backfill goes in batches of 2,500 rows, and Tobias allows it only after 22:00 UTC because of the nightly invoices.',
    rounds: [
      {
        tools: [
          read(
            'scripts/backfill.ts',
            source(['db', 'clock'], ['nextBatch', 'writeBatch', 'reportProgress', 'resumeFrom', 'runBackfill']),
          ),
        ],
      },
      {
        tools: [
          edit('scripts/backfill.ts', 'const BATCH = 10_000;', "const BATCH = 2_500;\nconst NOT_BEFORE_UTC = '22:00';"),
        ],
      },
    ],
    answer: 'The backfill takes 2,500 rows at a time and refuses to start before 22:00 UTC.',
  },
  {
    prompt: 'Try it on the development database.',
    rounds: [
      {
        tools: [
          bash(
            'npx tsx scripts/backfill.ts --database parcel_dev --now',
            rows(['batch', 'rows', 'first_id', 'last_id', 'took_ms'], 48),
          ),
        ],
      },
      {
        tools: [
          bash(
            "psql parcel_dev -c 'select * from shipments where pickup_window is null limit 40'",
            rows(['id', 'state', 'depot', 'pickup_window'], 3),
          ),
        ],
      },
    ],
    answer:
      'It went through in 41 seconds. Three rows stay empty: they belong to depot HAM-2, which has no opening hours.',
  },
  {
    prompt: 'Depot HAM-2 closed in 2024; leave its rows empty and skip them in the report.',
    rounds: [
      { tools: [grep('openingHours', hits('openingHours', 18))] },
      { tools: [edit('scripts/backfill.ts', 'report(rows)', "report(rows.filter((row) => row.depot !== 'HAM-2'))")] },
    ],
    answer: 'Rows of HAM-2 stay empty and are left out of the report.',
  },
  {
    prompt: 'Use the new column in the search for free pickups.',
    rounds: [
      {
        tools: [
          read(
            'src/pickups/search.ts',
            source(
              ['db', 'depots'],
              ['freePickups', 'nextPickup', 'pickupsOfDay', 'overlaps', 'sortByDistance', 'pageOf'],
            ),
          ),
        ],
      },
      {
        tools: [
          edit(
            'src/pickups/search.ts',
            'where pickup_from >= $1 and pickup_to <= $2',
            'where pickup_window && tstzrange($1, $2)',
          ),
        ],
      },
      {
        tools: [
          bash(
            'npx vitest run test/pickups',
            testRun(
              ['test/pickups/search.test.ts', 'test/pickups/slots.test.ts', 'test/pickups/days.test.ts'],
              [
                {
                  test: 'test/pickups/slots.test.ts > offers the slots of a day',
                  message: 'expected 23 slots, received 24',
                },
              ],
            ),
          ),
        ],
      },
    ],
    answer:
      'The search uses the range operator now. One test fails, and it did so before my change: slots.test.ts expects 23 slots and now and then gets 24.',
  },
];
