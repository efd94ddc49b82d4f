import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createUiSessions } from '../../../../../engine/api/ui/session.ts';

const sessions = createUiSessions('key', () => 1_000);
const newCookie = (): string => sessions.redeem(sessions.issueToken()) as string;

it('accepts a cookie only as it was issued', () => {
  const cookie = newCookie();
  const edit = fc.tuple(fc.nat(cookie.length - 1), fc.string({ minLength: 0, maxLength: 3 }));
  fc.assert(
    fc.property(fc.oneof(fc.string(), edit), (change) => {
      const given =
        typeof change === 'string' ? change : cookie.slice(0, change[0]) + change[1] + cookie.slice(change[0] + 1);
      expect(sessions.verify(given) !== null).toBe(given === cookie);
    }),
  );
});

it('gives each session another CSRF value, which its cookie does not contain', () => {
  const [one, other] = [newCookie(), newCookie()];
  const csrf = sessions.verify(one)?.csrf as string;
  expect(csrf).not.toBe(sessions.verify(other)?.csrf);
  expect(one).not.toContain(csrf);
});

it('holds 20 unused tokens at most; the oldest go first', () => {
  const tokens = Array.from({ length: 25 }, () => sessions.issueToken());
  expect(tokens.map((token) => sessions.redeem(token) !== null)).toEqual(tokens.map((_, at) => at >= 5));
});
