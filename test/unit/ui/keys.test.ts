import { expect, it } from 'vitest';
import { type KeyAction, moveInList, pressKey } from '../../../ui/keys.ts';

/** Keys with the milliseconds before each. */
function press(...keys: readonly (readonly [string, number])[]): KeyAction {
  let [goAtMs, action, atMs]: [number | null, KeyAction, number] = [null, null, 0];
  for (const [key, pauseMs] of keys) {
    atMs += pauseMs;
    action = pressKey(goAtMs, key, atMs);
    goAtMs = action === 'go' ? atMs : null;
  }
  return action;
}

it('goes to a view after g', () => {
  expect(press(['g', 0], ['m', 200])).toEqual({ go: 'memory' });
  expect(press(['g', 0], ['g', 200])).toEqual({ go: 'graph' });
  expect(press(['m', 0])).toBe(null);
});

it('forgets g after a pause and after a key that leads nowhere', () => {
  expect(press(['g', 0], ['m', 2_000])).toBe(null);
  expect(press(['g', 0], ['x', 10], ['m', 10])).toBe(null);
});

it('searches, helps and undoes', () => {
  expect(['/', '?', 'u', 'a'].map((key) => press([key, 0]))).toEqual(['search', 'help', 'undo', null]);
});

it('stays within a list', () => {
  expect(moveInList('ArrowDown', -1, 3)).toBe(0);
  expect(moveInList('ArrowDown', 2, 3)).toBe(2);
  expect(moveInList('PageUp', 4, 30)).toBe(0);
  expect([moveInList('Home', 5, 30), moveInList('End', 5, 30)]).toEqual([0, 29]);
  expect([moveInList('a', 0, 3), moveInList('ArrowUp', 0, 0)]).toEqual([null, null]);
});
