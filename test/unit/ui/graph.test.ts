import { expect, it } from 'vitest';
import {
  around,
  getPlaces,
  layoutMatrices,
  legend,
  neighbors,
  nodeColors,
  nodeSize,
  spiral,
  timeRange,
} from '../../../ui/graph.ts';
import type { UiGraph } from '../../../ui/types.ts';

const nodes = [3, 1, 2, 5].map((at, place) => ({
  ...{ id: `n${place}`, title: '', project: place < 2 ? 'a' : 'b', at, kind: 'memory' as const },
  importance: place === 0 ? ('HIGH' as const) : ('LOW' as const),
}));
const links = [
  [0, 1, 'link' as const],
  [1, 2, 'link' as const],
  [2, 3, 'link' as const],
] satisfies UiGraph['links'];

it('says what the colours mean, the largest projects first', () => {
  const [node] = nodes as [UiGraph['nodes'][number]];
  const topic = { ...node, id: 'topic:a', kind: 'topic' as const, project: 'c' };
  const all = [...nodes, { ...node, project: 'b' }, topic];
  const names = legend(all, 'project');
  expect(names.map(({ name }) => name)).toEqual(['b', 'a', 'topic']);
  const colors = nodeColors(all, 'project');
  expect([colors[3], colors[0], colors[5]]).toEqual(names.map(({ color }) => color));
  expect(legend(nodes, 'importance').map(({ name }) => name)).toEqual(['high', 'med', 'low']);
  expect(legend(nodes, 'age')).toHaveLength(2);
});

it('finds the neighbours of a node to a depth', () => {
  const near = neighbors({ nodes, links });
  expect(near).toEqual([[1], [0, 2], [1, 3], [2]]);
  expect([...around(0, 2, near)]).toEqual([0, 1, 2]);
  expect([...around(0, 0, near)]).toEqual([0]);
});

it('colours by project, age and importance', () => {
  const [one, two, three] = nodeColors(nodes, 'project');
  expect([one === two, two === three]).toEqual([true, false]);
  expect(nodeColors(nodes, 'age').slice(1)).toEqual(['#9aa3b2', '#7b96c0', '#1f6feb']);
  expect(new Set(nodeColors(nodes, 'importance')).size).toBe(2);
  expect([timeRange(nodes), timeRange([])]).toEqual([
    [1, 5],
    [0, 0],
  ]);
});

it('grows a node with its links, up to a limit', () => {
  const sizes = [0, 1, 9, 100, 10_000].map((links) => nodeSize(links));
  expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
  expect(sizes.at(-1)).toBe(sizes.at(-2));
  expect(nodeSize(9, 10_000)).toBeLessThan(nodeSize(9, 100));
});

it('gives the layout its nodes and links, and reads the places back', () => {
  const places = spiral(4);
  const matrices = layoutMatrices(places, [[0, 3]]);
  expect(getPlaces(matrices.nodes)).toEqual(places);
  expect([...matrices.edges]).toEqual([0, 30, 1]);
  expect(matrices.nodes[36]).toBe(2);
});
