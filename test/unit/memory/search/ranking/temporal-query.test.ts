import { expect, test } from 'vitest';
import { asksWhen, dateAgreement, namedDate, tellsTime } from '../../../../../memory/search/ranking/temporal-query.ts';

test('questions for a time are known by how they ask', () => {
  const asking = ['When did we move?', 'how long ago was that', 'Which month was it?', 'Do you know when is the cut?'];
  expect(asking.filter(asksWhen)).toEqual(asking);
  expect(['Which port?', 'Tell me whenever you like'].filter(asksWhen)).toEqual([]);
});

test('texts tell a time by a date or by one reckoned from today', () => {
  const telling = ['we met yesterday', 'back in March', 'took 3 weeks', 'on Friday'];
  expect(telling.filter(tellsTime)).toEqual(telling);
  expect(['the lasting fix', 'port 5433'].filter(tellsTime)).toEqual([]);
});

test('a named date is month, year and day; may is a month only in a date', () => {
  expect(namedDate('What happened on 7 May 2023?')).toEqual({ months: [4], year: 2023, day: 7 });
  expect(namedDate('the release in march')).toEqual({ months: [2], year: null, day: null });
  expect(namedDate('May I retry this?')).toBeNull();
  expect(namedDate('port 2023 of 19')).toEqual({ months: [], year: 2023, day: null });
});

test('a date agrees wholly, by month alone, or not', () => {
  const at = Date.UTC(2023, 4, 9, 23);
  const agreement = (question: string): number => {
    const date = namedDate(question);
    return date === null ? -1 : dateAgreement(date, at);
  };
  expect(agreement('on 7 May 2023')).toBe(1);
  expect(agreement('on 25 May 2023')).toBe(0.5);
  expect(agreement('in May 2022')).toBe(0);
  expect(agreement('in 2023')).toBe(1);
});
