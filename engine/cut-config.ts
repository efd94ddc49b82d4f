import type { Config } from '../common/config.ts';
import type { CutRule } from '../proxy/rewrite/index.ts';

/** For each mode: the factor by which a warm cut must pay off, and the factor on what it keeps. */
const MODES = {
  auto: { margin: 0.75, keep: 1 },
  aggressive: { margin: 0, keep: 1 },
  gentle: { margin: 2, keep: 2 },
} as const;

export function cutRule({ mode, ...trim }: Config['trim']): CutRule | null {
  if (mode === 'off') return null;
  const { margin, keep } = MODES[mode];
  return {
    ...trim,
    margin,
    keepTurns: trim.keepTurns * keep,
    keepRounds: trim.keepRounds * keep,
    keepTokens: trim.keepTokens * keep,
    keepRoundTokens: trim.keepRoundTokens * keep,
  };
}
