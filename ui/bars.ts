import type { UiOverview } from './types.ts';

export interface BarPart {
  readonly name: 'sent' | 'recalled' | 'trimmed' | 'added';
  readonly tokens: number;
  /** Of the widest bar, 0 to 100. */
  readonly percent: number;
}

type Context = Pick<UiOverview['sessions'][number], `${'received' | 'sent' | 'recalled'}_tokens`>;

/**
 * What became of a context: kept as it was, recalled by memory, and trimmed. Where memory sent more than it received,
 * the last part is what it added.
 *
 * @param widest  tokens of the longest bar beside it
 */
export function contextBar(context: Context, widest: number): readonly BarPart[] {
  const { received_tokens: received, sent_tokens: sent } = context;
  const recalled = Math.min(context.recalled_tokens, sent);
  const added = Math.max(0, sent - recalled - received);
  const parts = [
    { name: 'sent' as const, tokens: sent - recalled - added },
    { name: 'recalled' as const, tokens: recalled },
    { name: 'added' as const, tokens: added },
    { name: 'trimmed' as const, tokens: Math.max(0, received - (sent - recalled - added)) },
  ];
  const scale = widest > 0 ? 100 / widest : 0;
  return parts.filter(({ tokens }) => tokens > 0).map((part) => ({ ...part, percent: part.tokens * scale }));
}

/** Tokens of the whole bar. */
export function barLength(context: Context): number {
  return contextBar(context, 0).reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Phases of a request as shares of its whole time. */
export function phaseBar(phases: readonly { readonly name: string; readonly ms: number }[]) {
  const all = phases.reduce((sum, { ms }) => sum + ms, 0);
  return phases.map(({ name, ms }) => ({ name, ms, percent: all === 0 ? 0 : (100 * ms) / all }));
}
