import { expect, test } from 'vitest';
import { nearestOfKinds, ofKind } from '../../../../../memory/search/lancedb/retrieve-by-kind.ts';
import type { FoundRow, Hits } from '../../../../../memory/search/node-index.ts';

type Kind = FoundRow['kind'];

const LIMITS = { turn: 4, node: 2, fact: 2 };

/** A table of so many rows of each kind, turns nearest, facts farthest; notes what it was asked. */
function tableOf(counts: Record<Kind, number>) {
  const asked: (readonly Kind[] | undefined)[] = [];
  const rows = (['turn', 'node', 'fact'] as const).flatMap((kind) =>
    Array.from({ length: counts[kind] }, (_, at) => ({ kind, name: `${kind}${at}` })),
  );
  const kindAt = (slot: number): Kind | undefined => rows[slot]?.kind;
  return {
    asked,
    among: { held: () => true, without: new Set<never>(), kindAt },
    namesOf: ({ slots }: Hits) => slots.map((slot) => rows[slot]?.name),
    of: (kind: Kind) => (slot: number) => kindAt(slot) === kind,
    async nearest(kinds: readonly Kind[] | undefined, most: number): Promise<Hits> {
      asked.push(kinds);
      const slots = [...rows.keys()].filter((slot) => kinds?.includes(rows[slot]?.kind as Kind) ?? true).slice(0, most);
      return { slots, scores: slots.map((slot) => 1 - slot / 1_000) };
    },
  };
}

test('one search finds the nearest of every kind, each up to its limit', async () => {
  const { asked, among, namesOf, nearest } = tableOf({ turn: 3, node: 3, fact: 1 });
  const hits = await nearestOfKinds(LIMITS, among)(nearest);
  expect(asked).toEqual([undefined]);
  expect(namesOf(hits)).toEqual(['turn0', 'turn1', 'turn2', 'node0', 'node1', 'fact0']);
});

test('a kind that nearer rows crowd out is asked for by itself', async () => {
  const { asked, among, namesOf, of, nearest } = tableOf({ turn: 50, node: 5, fact: 5 });
  const hits = await nearestOfKinds(LIMITS, among)(nearest);
  expect(asked).toEqual([undefined, ['node'], ['fact']]);
  expect(ofKind(hits, of('turn'), 9).slots).toHaveLength(4);
  expect(namesOf(ofKind(hits, of('node'), 9))).toEqual(['node0', 'node1']);
  expect(namesOf(ofKind(hits, of('fact'), 9))).toEqual(['fact0', 'fact1']);
});

test('kinds whose lanes nobody wants are not asked for, nor those that are not there', async () => {
  const { asked, among, namesOf, nearest } = tableOf({ turn: 3, node: 3, fact: 0 });
  const held = (kind: Kind): boolean => kind !== 'fact';
  const turnsLeftOut = nearestOfKinds(LIMITS, { ...among, held, without: new Set(['meaning']) });
  expect(namesOf(await turnsLeftOut(nearest))).toEqual(['node0', 'node1']);
  expect(asked[0]).toEqual(['node']);
  expect(namesOf(await nearestOfKinds(LIMITS, { ...among, held: () => false })(nearest))).toEqual([]);
});
