import { describe, expect, test } from 'vitest';
import {
  createLaneGuards,
  type GuardedLanes,
  lanesOf,
  NO_HITS,
} from '../../../../../memory/search/lancedb/lane-breakers.ts';
import type { Hits, Lane } from '../../../../../memory/search/node-index.ts';

const LANES: readonly Lane[] = [
  ...(['fts', 'summary', 'trigger', 'raw', 'meaning'] as const),
  ...(['expanded', 'window', 'entity', 'fact', 'factMeaning'] as const),
];
const HITS: Hits = { slots: [7], scores: [1] };

describe.each(LANES)('the lane %s', (broken) => {
  let nowMs = 0;
  const guards = createLaneGuards(() => nowMs);
  let asked = 0;
  const fails = async (): Promise<never> => {
    asked += 1;
    throw new Error('torn file');
  };
  const search = async (ask: (lanes: GuardedLanes, lane: Lane) => Promise<Hits>) => {
    const lanes = lanesOf(guards, new Set());
    const hits = await Promise.all(LANES.map((lane) => ask(lanes, lane)));
    return { hits, failure: lanes.settle() };
  };
  const once = () => search((lanes, lane) => lanes.ask([lane], lane === broken ? fails : async () => HITS));

  test('is left out after three failures in a row while the others answer, and tried again later', async () => {
    const expected = LANES.map((lane) => (lane === broken ? NO_HITS : HITS));
    for (let at = 0; at < 3; at += 1) {
      expect(await once()).toEqual({ hits: expected, failure: new Error('torn file') });
    }
    expect(await once()).toEqual({ hits: expected, failure: null });
    expect(asked).toBe(3);
    nowMs += 30_000;
    await once();
    expect(asked).toBe(4);
  });
});

test('where every lane is left out the search says so instead of finding nothing', async () => {
  const guards = createLaneGuards(() => 0);
  const fails = (): Promise<never> => Promise.reject(new Error('torn file'));
  for (let at = 0; at < 3; at += 1) {
    const lanes = lanesOf(guards, new Set());
    await lanes.ask(['raw'], fails);
    expect(() => lanes.settle()).toThrow('torn file');
  }
  const lanes = lanesOf(guards, new Set());
  await lanes.ask(['raw'], fails);
  expect(() => lanes.settle()).toThrow('tried again later');
});
