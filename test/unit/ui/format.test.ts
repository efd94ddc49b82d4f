import { describe, expect, it } from 'vitest';
import { amount, count, duration, money, projectName, projectNames, share, when } from '../../../ui/format.ts';

const NOW = Date.parse('2026-11-23T21:30:00Z');

describe('figures of the page', () => {
  it('are short', () => {
    expect([0, 999, 1_234, 3_400_000].map(amount)).toEqual(['0', '999', '1.2K', '3.4M']);
    expect([count(1, 'memory', 'memories'), count(1_200, 'node')]).toEqual(['1 memory', '1,200 nodes']);
    expect([0, 0.0042, 1.2, 31.4, -0.5].map(money)).toEqual(['$0.00', '$0.0042', '$1.20', '$31', '-$0.50']);
    expect([share(27, 100), share(1, 0)]).toEqual(['27 %', '']);
    expect([840, 2_400, 180_000, 7_200_000, 604_800_000].map(duration)).toEqual([
      ...['840 ms', '2.4 s', '3 min', '2 h', '7 days'],
    ]);
  });

  it('never write a minus before zero', () => {
    expect(money(-0.00001)).toBe('$0.0000');
  });

  it('name a project by its folder', () => {
    expect(['/home/ada/shop', '', '*'].map(projectName)).toEqual(['shop', 'no project', 'every project']);
    expect(projectNames(['/a/cli', '/a/shop', '/b/cli'])).toEqual(['/a/cli', 'shop', '/b/cli']);
  });
});

describe('times of the page', () => {
  it('are in the zone of the user', () => {
    expect(when('2026-11-23T20:05:00Z', NOW, 'Europe/Berlin')).toBe('21:05');
    expect(when('2026-11-23T20:05:00Z', NOW, 'Asia/Tokyo')).toBe('05:05');
  });

  it('say the weekday of the last days, and the date of others', () => {
    expect(when('2026-11-21T08:00:00Z', NOW, 'UTC')).toBe('Sat 08:00');
    expect(when('2026-05-01T08:00:00Z', NOW, 'UTC')).toBe('2026-05-01 08:00');
    expect(when('2026-11-25T08:00:00Z', NOW, 'UTC')).toBe('2026-11-25 08:00');
    expect(when('never', NOW, 'UTC')).toBe('');
  });
});
