import { projectNames } from './format.ts';
import type { UiGraph } from './types.ts';

export const COLORS_BY = ['project', 'age', 'importance'] as const;
export type ColorBy = (typeof COLORS_BY)[number];

/** Distinct for the eye on light and dark ground. */
const PALETTE = [
  '#3b76d8',
  '#c2691c',
  '#2f8f5b',
  '#a5509f',
  '#b3902a',
  '#28919b',
  '#c4475a',
  '#6a63c9',
  '#7a8250',
  '#8a6d5a',
];
const IMPORTANCE = { HIGH: '#c4475a', MED: '#3b76d8', LOW: '#8a93a1' };
/** Whatever memories are colored by. */
const KINDS = { topic: '#5b6472', file: '#a3792f' };
/** Projects in the legend. */
const NAMED = 6;
const [OLD, NEW] = [
  [0x9a, 0xa3, 0xb2],
  [0x1f, 0x6f, 0xeb],
] as const;

type Node = UiGraph['nodes'][number];

/** Of each node; topics and files have one of their own. */
export function nodeColors(nodes: readonly Node[], by: ColorBy): string[] {
  const getColor = memoryColors(nodes, by);
  return nodes.map((node) => (node.kind === 'memory' ? getColor(node) : KINDS[node.kind]));
}

function memoryColors(nodes: readonly Node[], by: ColorBy): (node: Node) => string {
  if (by === 'importance') return ({ importance }) => IMPORTANCE[importance];
  if (by === 'age') {
    const [from, to] = timeRange(nodes);
    return ({ at }) => between(to === from ? 1 : (at - from) / (to - from));
  }
  const places = new Map(getProjects(nodes).map((project, at) => [project, at]));
  return ({ project }) => PALETTE[(places.get(project) ?? 0) % PALETTE.length] as string;
}

/** Those with the most memories first. */
function getProjects(nodes: readonly Node[]): string[] {
  const counts = new Map<string, number>();
  for (const { kind, project } of nodes) if (kind === 'memory') counts.set(project, (counts.get(project) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one).map(([project]) => project);
}

/** What the colors say; of many projects the largest. */
export function legend(nodes: readonly Node[], by: ColorBy): { readonly name: string; readonly color: string }[] {
  const kinds = (['topic', 'file'] as const)
    .filter((kind) => nodes.some((node) => node.kind === kind))
    .map((kind) => ({ name: kind, color: KINDS[kind] }));
  return [...memoryLegend(nodes, by), ...kinds];
}

function memoryLegend(nodes: readonly Node[], by: ColorBy) {
  if (by === 'importance') {
    return Object.entries(IMPORTANCE).map(([name, color]) => ({ name: name.toLowerCase(), color }));
  }
  if (by === 'age')
    return [between(0), between(1)].map((color, at) => ({ name: ['oldest', 'newest'][at] ?? '', color }));
  const names = projectNames(getProjects(nodes).slice(0, NAMED));
  return names.map((name, at) => ({ name, color: PALETTE[at] as string }));
}

function between(part: number): string {
  const mixed = OLD.map((old, at) => Math.round(old + (NEW[at] as number) * part - old * part));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** Oldest and newest. */
export function timeRange(nodes: readonly Node[]): readonly [number, number] {
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { at } of nodes) {
    if (at < from) from = at;
    if (at > to) to = at;
  }
  return nodes.length === 0 ? [0, 0] : [from, to];
}

/** Neighbours of each node, by index. */
export function neighbors({ nodes, links }: Pick<UiGraph, 'nodes' | 'links'>): readonly (readonly number[])[] {
  const all: number[][] = nodes.map(() => []);
  for (const [from, to] of links) {
    all[from]?.push(to);
    all[to]?.push(from);
  }
  return all;
}

/** A node and all within `depth` links of it. */
export function around(start: number, depth: number, near: readonly (readonly number[])[]): ReadonlySet<number> {
  const seen = new Set([start]);
  for (let ring = [start], step = 0; step < depth; step += 1) {
    ring = ring.flatMap((at) => near[at] ?? []).filter((at) => !seen.has(at));
    for (const at of ring) seen.add(at);
  }
  return seen;
}

/** Of this many nodes all are drawn in full size; more of them are smaller, and cost less to draw. */
const ROOMY = 800;

/** Radius in pixels. @param nodes  in the whole graph: a larger graph has smaller nodes */
export function nodeSize(links: number, nodes = 1): number {
  const scale = Math.max(0.45, Math.sqrt(ROOMY / Math.max(ROOMY, nodes)));
  return scale * (2.5 + Math.min(9, Math.sqrt(links) * 1.4));
}

/** Beginning of a layout: a spiral in order of time, so that the same memory begins in the same place. */
export function spiral(length: number): Float32Array {
  const places = new Float32Array(length * 2);
  for (let at = 0; at < length; at += 1) {
    const [radius, angle] = [10 * Math.sqrt(at), at * 2.399963];
    places[2 * at] = radius * Math.cos(angle);
    places[2 * at + 1] = radius * Math.sin(angle);
  }
  return places;
}

const [PER_NODE, PER_LINK] = [10, 3];

/** Nodes and links in the form that the layout computes on: position, forces, mass, convergence, size, whether fixed. */
export function layoutMatrices(places: Float32Array, links: readonly (readonly [number, number])[]) {
  const nodes = new Float32Array((places.length / 2) * PER_NODE);
  for (let at = 0; at < places.length / 2; at += 1) {
    nodes.set([places[2 * at] as number, places[2 * at + 1] as number, 0, 0, 0, 0, 1, 1, 1, 0], at * PER_NODE);
  }
  const edges = new Float32Array(links.length * PER_LINK);
  for (const [at, [from, to]] of links.entries()) {
    edges.set([from * PER_NODE, to * PER_NODE, 1], at * PER_LINK);
    for (const end of [from, to]) (nodes[end * PER_NODE + 6] as number) += 1;
  }
  return { nodes, edges };
}

/** x and y of each node. */
export function getPlaces(nodes: Float32Array): Float32Array {
  const places = new Float32Array((nodes.length / PER_NODE) * 2);
  for (let at = 0; at < places.length / 2; at += 1) {
    places[2 * at] = nodes[at * PER_NODE] as number;
    places[2 * at + 1] = nodes[at * PER_NODE + 1] as number;
  }
  return places;
}
