import { afterEach, expect, test, vi } from 'vitest';
import { parseSince } from '../../../bin/terminal/format.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each([
  ['America/Los_Angeles', '2026-11-01T07:00:00Z'],
  ['Pacific/Kiritimati', '2026-10-31T10:00:00Z'],
])('--since takes a date for the day of the time zone: %s', (zone, beginning) => {
  vi.stubEnv('TZ', zone);
  expect(parseSince('2026-11-01', Date.parse('2026-11-26T12:00:00Z'))).toBe(Date.parse(beginning));
});
