import type { View } from './route.ts';

export type KeyAction = { readonly go: View } | 'search' | 'help' | 'undo' | null;

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

export interface KeyState {
  /** When `g` was pressed; null where the next key stands by itself. */
  readonly goAtMs: number | null;
}

/** What a key means outside of text fields. */
export function pressKey(
  { goAtMs }: KeyState,
  key: string,
  nowMs: number,
): { readonly state: KeyState; readonly action: KeyAction } {
  const none = { goAtMs: null };
  const target = GO[key];
  if (goAtMs !== null && nowMs - goAtMs < SEQUENCE_MS && target !== undefined)
    return { state: none, action: { go: target } };
  if (key === 'g') return { state: { goAtMs: nowMs }, action: null };
  if (key === '/') return { state: none, action: 'search' };
  if (key === '?') return { state: none, action: 'help' };
  return { state: none, action: key === 'u' ? 'undo' : null };
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
