import { expect, test } from 'vitest';
import { createSettled, findTakenBack, readReport } from '../../../../memory/text/validity.ts';

const isSettled = (item: string, text: string): boolean => {
  const report = readReport(text);
  return report !== null && createSettled(item)(report);
};

test.each([
  ["rev d gets a load switch, i'll tell hw (Tomasz) on monday", 'Tomasz confirmed the load switch for rev d'],
  ['y Marta tiene que revisar el cap 4 antes del 25', 'Marta revisó el cap 4, sus comentarios están en review.md'],
  [
    'das datenschutz formular im store muss bis freitag raus',
    'store datenschutz ist raus, hab ich gestern abgeschickt',
  ],
  [
    '“dont forget that, it goes into the production script before the pilot” to “The fuses are not flashed.”',
    'the production script has the fuses now, i added them this morning',
  ],
  ['use .62 for now, but i need to check with Ines whether its 500 or 800', 'ines says 800 a month, so lower it'],
])('%s: settled by: %s', (item, text) => {
  expect(isSettled(item, text)).toBe(true);
});

test.each([
  ['ask Tom for the staging password', 'Tom says the staging deploy is broken'],
  ['ask Tom for the staging password', 'Tom says hi'],
  ['Still to do before the rollout: rotate the staging key', 'the rollout was planned'],
  ['rotate the staging key by friday', 'the staging key is not rotated yet'],
  ['rotate the staging key by friday', 'the staging database was moved'],
])('%s: not settled by: %s', (item, text) => {
  expect(isSettled(item, text)).toBe(false);
});

test('a decision names the one that it takes back', () => {
  expect(findTakenBack('“no wait, a list” instead of “a ring buffer”')).toBe('a ring buffer');
  expect(findTakenBack('use a list instead of a ring buffer')).toBeNull();
});
