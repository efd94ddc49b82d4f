import { describe, expect, test } from 'vitest';
import { dateAgreement, getDateRarity, namedDate } from '../../../../memory/search/dates.ts';

/** A Wednesday. */
const NOW = new Date(2026, 2, 4, 10, 30).getTime();
const agreement = (question: string, atMs: number): number => {
  const date = namedDate(question, NOW);
  return date === null ? -1 : dateAgreement(date, atMs);
};

test('a named date is month, year and day; may is a month only in a date', () => {
  const none = { months: [], year: null, day: null, past: null };
  const named = (question: string) => {
    const date = namedDate(question, NOW);
    return date === null ? null : { ...date, rest: date.rest.replace(/\s+/g, ' ').trim() };
  };
  expect(named('What happened on 7 May 2023?')).toEqual({
    ...none,
    ...{ months: [4], year: 2023, day: 7, rest: 'What happened on ?' },
  });
  expect(named('the release in march')).toEqual({ ...none, months: [2], rest: 'the release in' });
  expect(named('August 3, 2023 or 8th December,2023')?.rest).toBe('or');
  expect(named('May I retry this?')).toBeNull();
  expect(named('what did we decide today')).toBeNull();
});

test.each([
  ['die Entscheidung vom 8. Oktober 2025', { months: [9], year: 2025, day: 8 }, 'die Entscheidung vom'],
  ['was im März kam', { months: [2], year: null, day: null }, 'was im kam'],
  ['el cambio del 8 de mayo', { months: [4], year: null, day: 8 }, 'el cambio del'],
  ['10月8日的部署', { months: [9], year: null, day: 8 }, '的部署'],
  ['3월 배포', { months: [2], year: null, day: null }, '배포'],
  ['三个月前的 11月', { months: [10], year: null, day: null }, '三个月前的'],
])('months in other languages: %s', (question, named, rest) => {
  const date = namedDate(question, NOW);
  expect(date).toMatchObject(named);
  expect(date?.rest.trim().replace(/\s+/g, ' ')).toBe(rest);
});

test('a year alone may be a number of something else: it keeps its word unless it is said as a year', () => {
  expect(namedDate('port 2023 of 19', NOW)).toMatchObject({ months: [], year: 2023, rest: 'port 2023 of 19' });
  expect(namedDate('the outage in 2023', NOW)).toMatchObject({ year: 2023, rest: 'the outage  ' });
});

test('a date agrees wholly, by month alone, or not', () => {
  const at = Date.UTC(2023, 4, 9, 23);
  expect(agreement('on 7 May 2023', at)).toBe(1);
  expect(agreement('on 25 May 2023', at)).toBe(0.5);
  expect(agreement('in May 2022', at)).toBe(0);
  expect(agreement('in 2023', at)).toBe(1);
});

test('a date is rare where few turns are of it, and says nothing where all are', () => {
  const date = namedDate('in may 2023', NOW);
  const rarity = (may: number, june: number): number =>
    date === null
      ? -1
      : getDateRarity(date, [
          ...Array(may).fill({ atMs: Date.UTC(2023, 4, 9) }),
          ...Array(june).fill({ atMs: Date.UTC(2023, 5, 9) }),
        ]);
  expect(rarity(1, 99)).toBeCloseTo(Math.log(100.5 / 1.5));
  expect(rarity(10, 90)).toBeLessThan(rarity(1, 99));
  expect(rarity(100, 0)).toBe(0);
  expect(rarity(0, 0)).toBe(0);
});

describe('days that are over are named relative to now', () => {
  test.each([
    ['what did we decide yesterday about the queue?', 'yesterday', [2026, 2, 3], 1],
    ['the day before yesterday it worked', 'day before yesterday', [2026, 2, 2], 1],
    ['what broke three days ago', 'three days ago', [2026, 2, 1], 1],
    ['what did we change two weeks ago?', 'two weeks ago', [2026, 1, 15], 7],
    ['the design from 2 months ago', '2 months ago', [2026, 0, 1], 31],
    ['which bugs did we fix last week', 'last week', [2026, 1, 23], 7],
    ['the incident of last month', 'last month', [2026, 1, 1], 28],
    ['what did I say on Monday', 'on Monday', [2026, 2, 2], 1],
    ['was haben wir am Montag gemacht', 'am Montag', [2026, 2, 2], 1],
    ['qué decidimos el lunes', 'el lunes', [2026, 2, 2], 1],
    ['since Wednesday the build fails', 'since Wednesday', [2026, 1, 25], 1],
    ['was haben wir vor drei Tagen entschieden', 'vor drei Tagen', [2026, 2, 1], 1],
    ['die Entscheidung von letzter Woche', 'letzter Woche', [2026, 1, 23], 7],
    ['qué decidimos hace dos semanas', 'hace dos semanas', [2026, 1, 15], 7],
    ['昨天我们决定了什么', '昨天', [2026, 2, 3], 1],
    ['三天前的问题', '三天前', [2026, 2, 1], 1],
    ['上周五的部署', '上周五', [2026, 1, 27], 1],
    ['上个月的设计', '上个月', [2026, 1, 1], 28],
    ['지난주 회의', '지난주', [2026, 1, 23], 7],
    ['3일 전 배포', '3일 전', [2026, 2, 1], 1],
  ] as const)('%s', (question, words, [year, month, day], days) => {
    const date = namedDate(question, NOW);
    expect(date?.past?.words).toBe(words);
    expect(date?.rest).toBe(question.replace(words, ' '));
    const [first, end] = [new Date(year, month, day).getTime(), new Date(year, month, day + days).getTime()];
    expect([first - 1, first, end - 1, end].map((at) => agreement(question, at))).toEqual([0, 1, 1, 0]);
  });

  test.each([
    'run it in two weeks',
    'we release on Monday',
    'bis zum Termin am Montag',
    'by Friday',
    'next Monday',
    'a month of logs',
    'fridays',
    '下周五之前完成',
  ])('%s names none', (question) => expect(namedDate(question, NOW)).toBeNull());
});
