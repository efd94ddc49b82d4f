import { expect, test } from 'vitest';
import { hasPairedScript, isPairedScript } from '../../../../memory/text/cjk.ts';

test.each([
  ['데이터베이스 포트가 뭐였지', true],
  ['ステージングのポートは5433', true],
  ['数据库端口 redis', true],
  ['the port of 데이터베이스 in staging is set', false],
  ['which port', false],
  ['', false],
])('%s', (text, expected) => {
  expect(isPairedScript(text)).toBe(expected);
});

test('one character is enough to hold the script', () => {
  expect(hasPairedScript('the label says 水 only')).toBe(true);
  expect(hasPairedScript('café Москва')).toBe(false);
});
