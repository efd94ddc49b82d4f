import { expect, test } from 'vitest';
import { rowsOf } from '../../../../memory/storage/index-rows.ts';
import { makeNode } from '../../../helpers/nodes.ts';

test.each([
  ['staging port', '5433', 'staging port: 5433'],
  ['Staging ports', 'staging port is 5433', 'staging port is 5433'],
  ['port', 'staging port is 5433', 'port: staging port is 5433'],
])('the fact %s, %s is indexed as "%s": a concept that begins its value is not said twice', (concept, value, text) => {
  const node = makeNode({ written_by: 'claude', facts: [{ concept, value, polarity: 'positive', evidence: ['t'] }] });
  const [fact] = rowsOf(node, { turns: new Map(), positions: new Map() }).filter(({ kind }) => kind === 'fact');
  expect(fact?.text).toBe(text);
});
