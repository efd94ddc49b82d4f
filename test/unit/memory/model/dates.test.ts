import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withAbsoluteDates, withPassedDates } from '../../../../memory/model/dates.ts';

/** A Wednesday. */
const SAID = new Date(2026, 2, 4, 10, 30).getTime();
const iso = (at: Date): string => {
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, '0')}-${String(at.getDate()).padStart(2, '0')}`;
};

describe('relative dates', () => {
  test.each([
    ['Tomorrow the cutover.', 'Tomorrow (2026-03-05) the cutover.'],
    ['Anna does it by Friday.', 'Anna does it by Friday (2026-03-06).'],
    ['The freeze starts next Monday.', 'The freeze starts next Monday (2026-03-09).'],
    ['It broke last Friday.', 'It broke last Friday (2026-02-27).'],
    ['We will ship on Tuesday.', 'We will ship on Tuesday (2026-03-10).'],
    ["tomorrow's release", "tomorrow's (2026-03-05) release"],
    ['remind me to ask Mirela on thursday', 'remind me to ask Mirela on thursday (2026-03-05)'],
    ['in two weeks we switch', 'in two weeks (2026-03-18) we switch'],
    ['until the end of the month', 'until the end of the month (2026-03-31)'],
    ['the day after tomorrow', 'the day after tomorrow (2026-03-06)'],
    ['Bis Freitag muss der Schlüssel rotiert sein.', 'Bis Freitag (2026-03-06) muss der Schlüssel rotiert sein.'],
    ['übermorgen', 'übermorgen (2026-03-06)'],
    ['in drei Wochen', 'in drei Wochen (2026-03-25)'],
    ['lo hacemos mañana', 'lo hacemos mañana (2026-03-05)'],
    ['dentro de dos días', 'dentro de dos días (2026-03-06)'],
    ['明天上线', '明天 (2026-03-05)上线'],
    ['下周五之前完成', '下周五 (2026-03-13)之前完成'],
    ['내일 배포', '내일 (2026-03-05) 배포'],
    ['다음 주 월요일까지', '다음 주 월요일 (2026-03-09)까지'],
  ])('%s', (text, dated) => expect(withAbsoluteDates(text, SAID)).toBe(dated));

  test.each([
    [new Date(2026, 0, 31), 'in one month', '2026-02-28'],
    [new Date(2028, 0, 31), 'in einem Monat', '2028-02-29'],
    [new Date(2026, 11, 31), 'en dos meses', '2027-02-28'],
    [new Date(2026, 4, 31), '3 个月后', '2026-08-31'],
  ])('a month ends with its last day: %s, %s', (saidAt, text, date) =>
    expect(withAbsoluteDates(text, saidAt.getTime())).toBe(`${text} (${date})`),
  );

  test.each([
    'The peak was on Monday morning.',
    'Customers churn within 90 days.',
    'Guten Morgen!',
    'por la mañana',
    'tomorrowland and Fridays',
    'by 2026-03-09',
    'by Friday, March 13',
    'bis Donnerstag, 12. März',
    '5 月 15 日（周五）之前',
    'tomorrow (2026-03-05)',
  ])('nothing is made up: %s', (text) => expect(withAbsoluteDates(text, SAID)).toBe(text));

  test('only adds dates, once, at most a month off for the words it knows', () => {
    const words = fc.constantFrom(
      'tomorrow',
      'by Friday',
      'next week',
      'x',
      'heute',
      '내일',
      '明天',
      'in 3 days',
      ', ',
    );
    fc.assert(
      fc.property(fc.array(words), fc.integer({ min: 0, max: 4_000_000_000_000 }), (all, atMs) => {
        const text = all.join(' ');
        const dated = withAbsoluteDates(text, atMs);
        expect(dated.replace(/ \(\d{4,}-\d\d-\d\d\)/g, '')).toBe(text);
        expect(withAbsoluteDates(dated, atMs)).toBe(dated);
        for (const [, date = ''] of dated.matchAll(/\((\d{4}-\d\d-\d\d)\)/g)) {
          expect(Math.abs(Date.parse(date) - atMs)).toBeLessThan(32 * 86_400_000);
        }
      }),
    );
  });

  test('tomorrow is the next day in every year and month', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(1990, 0), max: new Date(2090, 0), noInvalidDate: true }), (day) => {
        const next = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1);
        expect(withAbsoluteDates('tomorrow', day.getTime())).toBe(`tomorrow (${iso(next)})`);
      }),
    );
  });
});

test('a date that is over says so', () => {
  const text = withAbsoluteDates('Tomorrow the cutover.', SAID);
  expect(withPassedDates(text, SAID)).toBe(text);
  expect(withPassedDates(text, SAID + 86_400_000)).toBe(text);
  expect(withPassedDates(text, SAID + 3 * 86_400_000)).toBe('Tomorrow (2026-03-05, passed) the cutover.');
});
