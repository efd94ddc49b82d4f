import { describe, expect, test } from 'vitest';
import { decideCompaction, needsReading } from '../../../../memory/compaction/compaction.ts';

const rule = { minL1Buffer: 3, maxL1Buffer: 10, loadThreshold: 4 };
const calm = { logic_flow: 'MAINTAIN', load_level: 2, redundancy_detected: false } as const;
const broken = { ...calm, logic_flow: 'BROKEN' } as const;
const heavy = { ...calm, load_level: 4 };

describe('when a buffer is compacted', () => {
  test('two turns wait for any result of the topic detector', () => {
    expect(decideCompaction(2, broken, rule)).toEqual({ kind: 'wait', because: 'buffer_small' });
  });

  test('a topic shift compacts all but the turn that opened the new topic', () => {
    expect(decideCompaction(3, broken, rule)).toEqual({ kind: 'compact', because: 'topic_shift', turns: 2 });
  });

  test('a high load compacts everything', () => {
    expect(decideCompaction(3, heavy, rule)).toEqual({ kind: 'compact', because: 'high_load', turns: 3 });
  });

  test('a turn that only repeats stays with what it repeats, until the buffer is full', () => {
    const again = { ...heavy, ...broken, redundancy_detected: true };
    expect(decideCompaction(5, again, rule)).toEqual({ kind: 'wait', because: 'calm' });
    expect(decideCompaction(10, again, rule).kind).toBe('compact');
  });

  test('ten turns compact without a reading', () => {
    expect(decideCompaction(10, null, rule)).toEqual({ kind: 'compact', because: 'buffer_overflow', turns: 10 });
  });

  test('a calm buffer waits', () => {
    expect(decideCompaction(9, calm, rule)).toEqual({ kind: 'wait', because: 'calm' });
    expect(decideCompaction(5, null, rule)).toEqual({ kind: 'wait', because: 'calm' });
  });

  test('a reading is asked for only where it can decide', () => {
    expect([2, 3, 9, 10].map((size) => needsReading(size, rule))).toEqual([false, true, true, false]);
  });
});
