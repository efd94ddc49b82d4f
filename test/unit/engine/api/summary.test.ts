import { expect, it } from 'vitest';
import { nameReceipts } from '../../../../engine/api/summary.ts';
import type { Receipt } from '../../../../proxy/ledger/index.ts';

it('a prompt that was taken back right behind a compaction is not named by the one in its place', async () => {
  const prompts = async () => [
    { key: 'first', atMs: 1_000, text: 'Which port is it?' },
    { key: 'summary', atMs: 3_000, text: 'Rename the queue' },
    { key: 'summary', atMs: 6_000, text: 'Rename the worker' },
  ];
  const services = { memory: { library: { prompts } }, titles: { of: async () => new Map() } };
  const receipts = [
    { turn: 'first', at: 500 },
    { turn: 'summary', at: 2_000 },
    { turn: 'summary', at: 5_000 },
    // Read before its answer, and of no turn that is kept.
    { turn: 'summary', at: 7_000 },
    { turn: 'other', at: 7_000 },
  ].map(({ turn, at }) => ({ session_id: 's', turn, at: new Date(at).toISOString() }) as Receipt);
  const named = await nameReceipts(services as never, receipts);
  expect(named.map(({ prompt }) => prompt)).toEqual([
    'Which port is it?',
    'Rename the queue',
    'Rename the worker',
    'Rename the worker',
    '',
  ]);
  expect(named.every(({ session_title }) => session_title === 'Which port is it?')).toBe(true);
});
