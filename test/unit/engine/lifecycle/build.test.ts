import { afterEach, expect, test, vi } from 'vitest';
import { retryStore } from '../../../../engine/lifecycle/build.ts';

afterEach(() => void vi.useRealTimers());

test('a store that did not open is tried again every ten minutes, while nothing runs', () => {
  vi.useFakeTimers();
  let isStoreless = false;
  const onRetry = vi.fn();
  retryStore(() => isStoreless, onRetry);
  vi.advanceTimersByTime(600_000);
  expect(onRetry).not.toHaveBeenCalled();
  isStoreless = true;
  vi.advanceTimersByTime(599_999);
  expect(onRetry).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onRetry).toHaveBeenCalledOnce();
});
