import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { count, duration, inboxLine, parseCount, parseSince, parseSpan } from '../../../../bin/terminal/format.ts';
import { displayWidth, table, truncate, wrapped } from '../../../../bin/terminal/table.ts';
import { oneLine, printable } from '../../../../common/text.ts';
import { ago } from '../../../../engine/api/render.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const MINUTE = 60_000;
const DAY = 86_400_000;

it('shows a line of the inbox with short ids and without addresses', () => {
  const link = '[mem_20261123_153644_70a9c2](../../memory/nodes/shop-1/s.md#mem_20261123_153644_70a9c2)';
  expect(inboxLine(`- shop: use Redis (${link}, ${link})`)).toBe('- shop: use Redis (70a9c2, 70a9c2)');
  expect(inboxLine('- pages: [Cache (shop)](../topics/shop-cache.md), [a](https://x.org)')).toBe(
    '- pages: Cache (shop), [a](https://x.org)',
  );
});

describe('ago', () => {
  it.each([
    [0, 'now'],
    [59_999, 'now'],
    [5 * MINUTE, '5 min ago'],
    [3 * 60 * MINUTE, '3 h ago'],
    [29 * DAY, '29 d ago'],
    [31 * DAY, '2026-10-21'],
    [-DAY, 'now'],
  ])('%i ms in the past is "%s"', (past, text) => {
    expect(ago(NOW - past, NOW)).toBe(text);
  });
});

describe('duration and count', () => {
  it('name the two largest units', () => {
    expect([duration(3_000), duration(5 * MINUTE), duration(DAY - MINUTE), duration(2 * DAY)]).toEqual([
      '3 s',
      '5 min',
      '23 h 59 min',
      '2 d 0 h',
    ]);
  });

  it('group digits by three', () => {
    expect([0, 999, 1_000, 1_234_567, -4_200].map(count)).toEqual(['0', '999', '1,000', '1,234,567', '-4,200']);
  });
});

describe('parseSince', () => {
  it.each([
    ['30m', 30 * MINUTE],
    ['12h', 12 * 60 * MINUTE],
    ['7d', 7 * DAY],
    ['2w', 14 * DAY],
  ])('%s is that long ago', (text, past) => {
    expect(parseSince(text, NOW)).toBe(NOW - past);
  });

  it('takes dates and times', () => {
    expect(parseSince('2026-11-01T10:00:00Z', NOW)).toBe(Date.parse('2026-11-01T10:00:00Z'));
    expect(parseSince('2026-11-01 10:00', NOW)).toBe(new Date(2026, 10, 1, 10).getTime());
  });

  it.each(['', 'yesterday', '7', '7y', '-7d', '9999999d', '2026-99-99', '2026-02-30'])(
    'refuses "%s" as wrong usage',
    (text) => {
      expect(() => parseSince(text, NOW)).toThrow(expect.objectContaining({ code: 'usage' }));
    },
  );
});

describe('parseSpan', () => {
  it.each(['0d', '99999999d', 'soon'])('refuses "%s" as wrong usage', (text) => {
    expect(() => parseSpan(text, '--for')).toThrow(expect.objectContaining({ code: 'usage' }));
  });

  it('ends at a time that a date can have', () => {
    expect(new Date(NOW + parseSpan('999999w', '--for')).getTime()).not.toBeNaN();
  });
});

describe('parseCount', () => {
  it.each(['0', '-1', '1.5', 'many', ''])('refuses "%s" as wrong usage', (text) => {
    expect(() => parseCount(text, '--top')).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});

describe('printable', () => {
  it('removes every control sequence', () => {
    expect(printable('a\u001b[31mred\u0007\u009b2J\u202edne\r')).toBe('a[31mred2Jdne');
  });

  it('keeps newlines and tabs, and oneLine joins them', () => {
    expect(printable('a\n\tb')).toBe('a\n\tb');
    expect(oneLine('  a\n\t b  ')).toBe('a b');
  });
});

describe('widths', () => {
  it('counts wide characters twice and marks not at all', () => {
    expect(displayWidth('abc')).toBe(3);
    expect(displayWidth('메모리')).toBe(6);
    expect(displayWidth('e\u0301')).toBe(1);
    expect(displayWidth('🎯')).toBe(2);
  });

  it('truncates to the width, never beyond', () => {
    expect(truncate('abcdef', 4)).toBe('abc…');
    expect(truncate('메모리', 4)).toBe('메…');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, width) => {
        expect(displayWidth(truncate(text, width))).toBeLessThanOrEqual(Math.max(width, 1));
      }),
    );
  });
});

describe('wrapped', () => {
  it('breaks between words, and counts wide characters as the terminal does', () => {
    expect(wrapped('one two three four', 9, 3)).toEqual(['one two', 'three', 'four']);
    expect(wrapped('one two three four', 9, 2)).toEqual(['one two', 'three…']);
    expect(wrapped('메모리는 파일이다', 8, 3)).toEqual(['메모리는', '파일이다']);
    expect(wrapped('one', Number.POSITIVE_INFINITY, 3)).toEqual(['one']);
  });

  it('keeps to width and rows, and cuts only at the ellipsis', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 80 }).map((each) => each.replace(/\s+/g, ' ').trim());
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 30 }), fc.integer({ min: 1, max: 4 }), (given, width, rows) => {
        const lines = wrapped(given, width, rows);
        expect(lines.length).toBeLessThanOrEqual(rows);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
        const plain = (each: string): string => each.replaceAll(' ', '');
        const joined = plain(lines.join(''));
        const isWhole = joined === plain(given);
        expect(isWhole || (joined.endsWith('…') && plain(given).startsWith(joined.slice(0, -1)))).toBe(true);
      }),
      { seed: 5 },
    );
  });
});

describe('table', () => {
  const rows = [
    { id: 'a', text: 'short', n: 7 },
    { id: 'bb', text: 'a text that is much longer than the rest', n: 12 },
  ];
  const lines = (width: number): string[] =>
    table(rows, width, [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'TEXT', cell: ({ text }) => text, stretch: true },
      { title: 'N', cell: ({ n }) => String(n), right: true },
    ]);

  it('lines up and cuts the stretching column to what is left', () => {
    expect(lines(30)).toEqual([
      'ID  TEXT                     N',
      'a   short                    7',
      'bb  a text that is much…    12',
    ]);
  });

  it('cuts nothing when the width is unlimited', () => {
    expect(lines(Number.POSITIVE_INFINITY)[2]).toContain('a text that is much longer than the rest');
  });
});
