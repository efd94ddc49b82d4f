import { expect, test } from 'vitest';
import { nearestOfKinds, ofKind } from '../../../../memory/adapters/lane-kinds.ts';
import type { FoundRow, LaneHit } from '../../../../memory/ports.ts';

type Kind = FoundRow['kind'];

const LIMITS = { turn: 4, node: 2, fact: 2 };
const EVERY = { held: () => true, without: new Set<never>() };

/** A table of so many rows of each kind, turns nearest, facts farthest; notes what it was asked. */
function tableOf(counts: Record<Kind, number>) {
  const asked: (readonly Kind[] | undefined)[] = [];
  const rows = (['turn', 'node', 'fact'] as const).flatMap((kind) =>
    Array.from({ length: counts[kind] }, (_, at) => ({ kind, row_id: `${kind}${at}` })),
  );
  const all = rows.map((row, at): LaneHit => ({ row: row as FoundRow, score: 1 - at / 1_000 }));
  return {
    asked,
    nearest: async (kinds: readonly Kind[] | undefined, most: number) => {
      asked.push(kinds);
      return all.filter(({ row }) => kinds?.includes(row.kind) ?? true).slice(0, most);
    },
  };
}

test('one search finds the nearest of every kind, each up to its limit', async () => {
  const { asked, nearest } = tableOf({ turn: 3, node: 3, fact: 1 });
  const hits = await nearestOfKinds(LIMITS, EVERY)(nearest);
  expect(asked).toEqual([undefined]);
  expect(hits.map(({ row }) => row.row_id)).toEqual(['turn0', 'turn1', 'turn2', 'node0', 'node1', 'fact0']);
});

test('a kind that nearer rows crowd out is asked for by itself', async () => {
  const { asked, nearest } = tableOf({ turn: 50, node: 5, fact: 5 });
  const hits = await nearestOfKinds(LIMITS, EVERY)(nearest);
  expect(asked).toEqual([undefined, ['node'], ['fact']]);
  expect(ofKind(hits, 'turn', 9).length).toBe(4);
  expect(ofKind(hits, 'node', 9).map(({ row }) => row.row_id)).toEqual(['node0', 'node1']);
  expect(ofKind(hits, 'fact', 9).map(({ row }) => row.row_id)).toEqual(['fact0', 'fact1']);
});

test('kinds whose lanes nobody wants are not asked for, nor those that are not there', async () => {
  const { asked, nearest } = tableOf({ turn: 3, node: 3, fact: 0 });
  const held = (kind: Kind): boolean => kind !== 'fact';
  const turnsLeftOut = nearestOfKinds(LIMITS, { held, without: new Set(['meaning']) });
  expect((await turnsLeftOut(nearest)).map(({ row }) => row.kind)).toEqual(['node', 'node']);
  expect(asked[0]).toEqual(['node']);
  expect(await nearestOfKinds(LIMITS, { held: () => false, without: new Set() })(nearest)).toEqual([]);
});
