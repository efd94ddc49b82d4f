import { describe, expect, test } from 'vitest';
import { decideCompaction, needsReading } from '../../../../memory/compaction/compaction.ts';

const rule = { minL1Buffer: 3, maxL1Buffer: 10, loadThreshold: 4 };
const calm = { logic_flow: 'MAINTAIN', load_level: 2, redundancy_detected: false } as const;
const broken = { ...calm, logic_flow: 'BROKEN' } as const;
const heavy = { ...calm, load_level: 4 };

describe('when a buffer is compacted', () => {
  test('two turns wait for any result of the topic detector', () => {
    expect(decideCompaction(2, broken, rule)).toBeNull();
  });

  test('a topic shift compacts all but the turn that opened the new topic', () => {
    expect(decideCompaction(3, broken, rule)).toEqual({ reason: 'topic_shift', turns: 2 });
  });

  test('a high load compacts everything', () => {
    expect(decideCompaction(3, heavy, rule)).toEqual({ reason: 'high_load', turns: 3 });
  });

  test('a turn that only repeats stays with what it repeats, until the buffer is full', () => {
    const again = { ...heavy, ...broken, redundancy_detected: true };
    expect(decideCompaction(5, again, rule)).toBeNull();
    expect(decideCompaction(10, again, rule)).toEqual({ reason: 'buffer_overflow', turns: 10 });
  });

  test('ten turns compact without a reading', () => {
    expect(decideCompaction(10, null, rule)).toEqual({ reason: 'buffer_overflow', turns: 10 });
  });

  test('a calm buffer waits', () => {
    expect(decideCompaction(9, calm, rule)).toBeNull();
    expect(decideCompaction(5, null, rule)).toBeNull();
  });

  test('a reading is asked for only where it can decide', () => {
    expect([2, 3, 9, 10].map((size) => needsReading(size, rule))).toEqual([false, true, true, false]);
  });
});
