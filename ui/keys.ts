import type { View } from './route.ts';

/** `go`: the next key names a view. */
export type KeyAction = { readonly go: View } | 'go' | 'search' | 'help' | 'undo' | null;

/** The second key after `g`. */
export const GO: Readonly<Record<string, View>> = {
  n: 'now',
  s: 'savings',
  c: 'session',
  m: 'memory',
  g: 'graph',
  l: 'library',
  h: 'health',
};

const SEQUENCE_MS = 1_500;

/** What a key means outside of text fields. @param goAtMs  when `g` was pressed right before; null where it was not */
export function pressKey(goAtMs: number | null, key: string, nowMs: number): KeyAction {
  const target = GO[key];
  if (goAtMs !== null && nowMs - goAtMs < SEQUENCE_MS && target !== undefined) return { go: target };
  if (key === 'g') return 'go';
  if (key === '/') return 'search';
  if (key === '?') return 'help';
  return key === 'u' ? 'undo' : null;
}

/** Where an arrow leads in a list; null for any other key. */
export function moveInList(key: string, at: number, length: number): number | null {
  const last = length - 1;
  const steps: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + 10,
    PageUp: at - 10,
    Home: 0,
    End: last,
  };
  const next = steps[key];
  return next === undefined || length === 0 ? null : Math.max(0, Math.min(last, next));
}
