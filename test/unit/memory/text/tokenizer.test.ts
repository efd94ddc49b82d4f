import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  entityTokens,
  hasPairedScript,
  isPairedScript,
  tokenize,
  uniqueTokens,
} from '../../../../memory/text/tokenizer.ts';
import { CODE_POINT } from '../../../helpers/code-point.ts';

test('camelCase gives the whole identifier and its parts', () => {
  expect(tokenize('getUserName')).toEqual(['getusername', 'get', 'user', 'name']);
  expect(tokenize('parseHTTPResponse')).toEqual(['parsehttpresponse', 'pars', 'http', 'respons']);
});

test('snake_case, constants and numbers in names are split and kept whole', () => {
  expect(tokenize('max_l1_buffer')).toEqual(['max_l1_buffer', 'max', 'l', '1', 'buffer']);
  expect(tokenize('NODE_EXTRA_CA_CERTS')).toEqual(['node_extra_ca_certs', 'node', 'extra', 'ca', 'cert']);
  expect(tokenize('sha256')).toEqual(['sha256', 'sha', '256']);
});

test('a path gives each of its names', () => {
  expect(tokenize('src/auth/sessionStore.ts:42')).toEqual([
    'src',
    'auth',
    'sessionstore',
    'session',
    'stor',
    'ts',
    '42',
  ]);
});

test('Hangul, kana and Han become overlapping pairs, a lone character stays', () => {
  expect(tokenize('데이터베이스')).toEqual(['데이', '이터', '터베', '베이', '이스']);
  expect(tokenize('接続プール')).toEqual(['接続', '続プ', 'プー', 'ール']);
  expect(tokenize('水')).toEqual(['水']);
  expect(tokenize('Redis연결')).toEqual(['redis', '연결']);
});

test('plural, -ing and -ed meet in one stem', () => {
  const stems = ['plan', 'plans', 'planned', 'planning'].map((word) => tokenize(word)[0]);
  expect(new Set(stems)).toEqual(new Set(['plan']));
  expect(tokenize('retries')).toEqual(tokenize('retry'));
  expect(tokenize('classes')).toEqual(tokenize('class'));
});

test('stop words carry nothing', () => {
  expect(tokenize('what is the name of it')).toEqual(['name']);
  expect(tokenize('')).toEqual([]);
});

test('any text gives tokens without white space, upper case or emptiness', () => {
  fc.assert(
    fc.property(fc.string({ unit: CODE_POINT, maxLength: 200 }), (text) => {
      for (const token of tokenize(text)) {
        expect(token).not.toBe('');
        expect(token).not.toMatch(/\s/u);
        expect([...token].length).toBeLessThanOrEqual(64);
      }
    }),
    { numRuns: 500 },
  );
});

test('case does not matter for words of one part, and a second time gives the same', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{1,12}( [a-z]{1,12}){0,5}$/), (text) => {
      expect(tokenize(text.toUpperCase())).toEqual(tokenize(text));
      expect(tokenize(text)).toEqual(tokenize(text));
    }),
  );
});

test('the tokens of joined texts are the tokens of each', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (left, right) => {
      expect(tokenize(`${left}\n${right}`)).toEqual([...tokenize(left), ...tokenize(right)]);
    }),
  );
});

test('a question with a word of a text finds all its tokens in the text, in any case', () => {
  const word = fc.oneof(
    fc.stringMatching(/^[a-z]{1,14}$/),
    fc.stringMatching(/^[a-z]{1,6}([A-Z][a-z]{1,6}){1,3}$/),
    fc.stringMatching(/^[A-Z]{2,5}(_[A-Z0-9]{1,6}){0,3}$/),
    fc.stringMatching(/^[a-z]{1,8}(\/[a-z_.]{1,8}){1,3}$/),
    fc.stringMatching(/^[가-힣]{1,6}$/),
    fc.stringMatching(/^[ぁ-ゖァ-ヺ一-龥ー]{1,6}$/),
  );
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), fc.nat(), (words, choice) => {
      const asked = words[choice % words.length] as string;
      const held = new Set(tokenize(words.join(' ')));
      expect(tokenize(asked).filter((token) => !held.has(token))).toEqual([]);
    }),
  );
});

test.each([
  ['studies', 'study'],
  ['ties', 'tie'],
  ['glasses', 'glass'],
  ['bus', 'bus'],
  ['analysis', 'analysis'],
  ['running', 'run'],
  ['calling', 'call'],
  ['fixed', 'fix'],
  ['bring', 'bring'],
  ['need', 'need'],
  ['quickly', 'quick'],
  ['apply', 'apply'],
  ['cache', 'cach'],
  ['size', 'size'],
])('%s is found as %s', (word, stem) => {
  expect(tokenize(word)).toEqual([stem]);
});

test('uniqueTokens keeps the order of first appearance', () => {
  expect(uniqueTokens('port port host port')).toEqual(['port', 'host']);
});

test('plain letters give the same tokens next to other letters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', maxLength: 200 }), (plain) => {
      expect(tokenize(`${plain} é`)).toEqual([...tokenize(plain), 'é']);
    }),
  );
});

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

test('paths, options, identifiers, codes and names are named things', () => {
  const tokens = entityTokens('Why does src/db/pool.ts with --max-old raise ECONNREFUSED in parseUrl for Marta?');
  expect(tokens).toEqual(expect.arrayContaining(['pool', 'econnrefus', 'parseurl', 'marta']));
  expect(tokens).not.toContain('rais');
});

test('plain questions name nothing', () => {
  expect(entityTokens('which port does the staging database listen on?')).toEqual([]);
});
