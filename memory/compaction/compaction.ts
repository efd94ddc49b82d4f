import type { TopicShiftReading } from '../models/model.ts';

export interface CompactionRule {
  readonly minL1Buffer: number;
  readonly maxL1Buffer: number;
  readonly loadThreshold: number;
}

/** Stored on nodes. `forced`: idle, flush, close and other external causes. */
export type CompactionReason = 'topic_shift' | 'high_load' | 'buffer_overflow' | 'forced' | 'external';

export type Decision =
  | { readonly kind: 'wait'; readonly because: 'buffer_small' | 'calm' }
  | {
      readonly kind: 'compact';
      readonly because: CompactionReason;
      /** Count of the oldest turns to compact; on a topic shift the newest turn stays in the buffer. */
      readonly turns: number;
    };

/** Below the minimum nothing compacts and at the maximum everything does, whatever the reading. */
export function needsReading(buffered: number, rule: CompactionRule): boolean {
  return buffered >= rule.minL1Buffer && buffered < rule.maxL1Buffer;
}

/** @param reading  topic shift reading of the newest turn */
export function decideCompaction(buffered: number, reading: TopicShiftReading | null, rule: CompactionRule): Decision {
  if (buffered === 0) return { kind: 'wait', because: 'buffer_small' };
  if (buffered >= rule.maxL1Buffer) return { kind: 'compact', because: 'buffer_overflow', turns: buffered };
  if (buffered < rule.minL1Buffer) return { kind: 'wait', because: 'buffer_small' };
  // A turn that only repeats another one goes into the same node and adds no load.
  if (reading?.redundancy_detected === true) return { kind: 'wait', because: 'calm' };
  if (reading?.logic_flow === 'BROKEN') {
    return { kind: 'compact', because: 'topic_shift', turns: Math.max(1, buffered - 1) };
  }
  if (reading !== null && reading.load_level >= rule.loadThreshold) {
    return { kind: 'compact', because: 'high_load', turns: buffered };
  }
  return { kind: 'wait', because: 'calm' };
}
