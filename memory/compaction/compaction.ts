import type { TopicShiftReading } from '../models/model.ts';

export interface CompactionRule {
  readonly minL1Buffer: number;
  readonly maxL1Buffer: number;
  readonly loadThreshold: number;
}

/** Stored on nodes. `forced`: idle, flush, close and other external causes. */
export type CompactionReason = 'topic_shift' | 'high_load' | 'buffer_overflow' | 'forced' | 'external';

/** Below the minimum nothing compacts and at the maximum everything does, whatever the reading. */
export function needsReading(buffered: number, rule: CompactionRule): boolean {
  return buffered >= rule.minL1Buffer && buffered < rule.maxL1Buffer;
}

/** Null to wait. @param reading  topic shift reading of the newest turn */
export function decideCompaction(
  buffered: number,
  reading: TopicShiftReading | null,
  rule: CompactionRule,
): { readonly reason: CompactionReason; readonly turns: number } | null {
  if (buffered > 0 && buffered >= rule.maxL1Buffer) return { reason: 'buffer_overflow', turns: buffered };
  // A turn that only repeats another one goes into the same node and adds no load.
  if (buffered < rule.minL1Buffer || reading === null || reading.redundancy_detected) return null;
  if (reading.logic_flow === 'BROKEN') return { reason: 'topic_shift', turns: Math.max(1, buffered - 1) };
  return reading.load_level >= rule.loadThreshold ? { reason: 'high_load', turns: buffered } : null;
}
