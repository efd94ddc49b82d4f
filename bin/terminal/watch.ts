import { setTimeout as after } from 'node:timers/promises';
import { CometError, getReason } from '../../common/errors.ts';
import type { Term } from './term.ts';

const EVERY_MS = 2_000;
const CLEAR = '\u001b[H\u001b[2J';

/**
 * Shows lines again and again until Ctrl-C. What fails is shown in their place: a daemon comes back.
 *
 * @throws CometError `usage` where there is no terminal
 */
export async function refreshed(
  term: Pick<Term, 'isTerminal' | 'out' | 'height'>,
  draw: () => Promise<readonly string[]>,
): Promise<void> {
  if (!term.isTerminal) throw new CometError('usage', '--watch needs a terminal');
  const over = new AbortController();
  process.once('SIGINT', () => over.abort());
  while (!over.signal.aborted) {
    const lines = await draw().catch((error: unknown) => [getReason(error)]);
    term.out(frame(lines, term.height));
    await after(EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
  }
}

/** One screen: what does not fit is counted in its last line. */
export function frame(lines: readonly string[], height: number): string {
  const room = Math.max(1, height - 1);
  const fits = lines.length <= room;
  const first = fits ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`];
  return CLEAR + first.join('\n');
}
