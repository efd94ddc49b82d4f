import { expect, test } from 'vitest';
import type { TurnText } from '../../../../memory/model/turn.ts';
import { createSessionTurns, rowsOf } from '../../../../memory/storage/index-rows.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const turn = (at: number): TurnText => ({ turnId: `t${at}`, atMs: at, origin: 'user', user: `said ${at}`, parts: [] });
const turns = (from: number, to: number): TurnText[] => Array.from({ length: to - from }, (_, at) => turn(from + at));

function counted(all: () => readonly TurnText[]) {
  let reads = 0;
  const session = createSessionTurns(async () => {
    reads += 1;
    return all();
  });
  return { session, reads: () => reads };
}

const positionOf = async (read: ReturnType<ReturnType<typeof createSessionTurns>['read']>, turnId: string) =>
  (await read).positions.get(turnId)?.position;

test('what follows the turns known so far needs no reading; each turn knows how many came before it', async () => {
  let written = 3;
  const { session, reads } = counted(() => turns(0, written));
  expect(await positionOf(session.read('s', turns(0, 3)), 't2')).toBe(2);
  written = 8;
  expect(await positionOf(session.read('s', turns(3, 8)), 't7')).toBe(7);
  expect(await positionOf(session.read('s', turns(1, 3)), 't1')).toBe(1);
  expect(reads()).toBe(1);
});

test('a session that was never seen, or forgotten, is read as a whole', async () => {
  const { session, reads } = counted(() => turns(0, 8));
  expect(await positionOf(session.read('s', turns(6, 8)), 't6')).toBe(6);
  session.clear();
  expect(await positionOf(session.read('s'), 't1')).toBe(1);
  expect(reads()).toBe(2);
});

test.each([
  ['staging port', '5433', 'staging port: 5433'],
  ['Staging ports', 'staging port is 5433', 'staging port is 5433'],
  ['port', 'staging port is 5433', 'port: staging port is 5433'],
])('the fact %s, %s is indexed as "%s": a concept that begins its value is not said twice', (concept, value, text) => {
  const node = makeNode({ written_by: 'claude', facts: [{ concept, value, polarity: 'positive', evidence: ['t'] }] });
  const [fact] = rowsOf(node, { turns: new Map(), positions: new Map() }).filter(({ kind }) => kind === 'fact');
  expect(fact?.text).toBe(text);
});
