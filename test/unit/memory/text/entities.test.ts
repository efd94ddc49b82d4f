import { expect, test } from 'vitest';
import { entityTokens } from '../../../../memory/text/entities.ts';

test('paths, options, identifiers, codes and names are named things', () => {
  const tokens = entityTokens('Why does src/db/pool.ts with --max-old raise ECONNREFUSED in parseUrl for Marta?');
  expect(tokens).toEqual(expect.arrayContaining(['pool', 'econnrefus', 'parseurl', 'marta']));
  expect(tokens).not.toContain('rais');
});

test('plain questions name nothing', () => {
  expect(entityTokens('which port does the staging database listen on?')).toEqual([]);
});
