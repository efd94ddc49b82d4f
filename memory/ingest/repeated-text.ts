import { setImmediate as nextTick } from 'node:timers/promises';
import type { CapturedTurn } from '../../common/turn.ts';
import { isContinuation, mayContinue } from '../text/compaction-summary.ts';
import { createSaidBefore, type Heard } from './external-text.ts';
import { readTurn } from './turn-trust.ts';

export type SaidBefore = Parameters<Heard['take']>[2];

/** What the summary that a turn begins with repeats of `earlier` turns; nothing where it begins with none. */
export async function saidBefore(
  turn: CapturedTurn,
  earlier: () => readonly CapturedTurn[] | Promise<readonly CapturedTurn[]>,
): Promise<SaidBefore> {
  if (!mayContinue(turn)) return undefined;
  const { parts } = readTurn(turn);
  if (!parts.some(({ text }) => isContinuation(text))) return undefined;
  // The answers of such a turn count as from outside as well.
  const known = createSaidBefore(parts.map(({ text }) => text).join('\n'));
  for (const one of await earlier()) {
    known.see(readTurn(one));
    await nextTick();
  }
  return known.rows;
}
