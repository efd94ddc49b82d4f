import { clustersOf, type Near, nearestFirst } from './clusters.ts';
import type { DreamRule } from './dream-rule.ts';
import { isSettled } from './merge-choice.ts';
import { groupKey } from './merged-node.ts';
import type { MemoryNode } from './node.ts';

/** A tag on more than this share of a project's nodes says nothing about what belongs together. */
const COMMON_TAG = 0.25;
const FEW = 8;

export interface Group {
  readonly members: readonly string[];
  /** Share of its pairs that are near. */
  readonly density: number;
}

/** Nodes without a parent that belong together: alike, or less alike but under one telling tag. */
export function chooseGroups(
  nodes: ReadonlyMap<string, MemoryNode>,
  pairs: readonly Near[],
  rule: DreamRule & { readonly sparesStandIns: boolean },
): readonly Group[] {
  const isFree = (node: MemoryNode | undefined): node is MemoryNode =>
    node !== undefined && node.parent_node_id === null && isSettled(node, rule);
  const telling = tellingTags([...nodes.values()]);
  const near = nearestFirst(pairs).filter(({ left, right, likeness }) => {
    const [one, other] = [nodes.get(left), nodes.get(right)];
    if (!isFree(one) || !isFree(other) || groupKey(one) !== groupKey(other)) return false;
    const sharesTag = one.topic_tags.some((tag) => telling(one.project, tag) && other.topic_tags.includes(tag));
    return likeness >= (sharesTag ? rule.tagged : rule.group);
  });
  return clustersOf(near, rule.cluster).map((members) => {
    const own = new Set(members);
    const inside = near.filter(({ left, right }) => own.has(left) && own.has(right)).length;
    return { members, density: inside / ((members.length * (members.length - 1)) / 2) };
  });
}

function tellingTags(nodes: readonly MemoryNode[]): (project: string, tag: string) => boolean {
  const uses = new Map<string, number>();
  const sizes = new Map<string, number>();
  for (const { project, topic_tags } of nodes) {
    sizes.set(project, (sizes.get(project) ?? 0) + 1);
    for (const tag of new Set(topic_tags)) {
      uses.set(`${project}\n${tag}`, (uses.get(`${project}\n${tag}`) ?? 0) + 1);
    }
  }
  return (project, tag) => {
    const most = Math.max(FEW, (sizes.get(project) ?? 0) * COMMON_TAG);
    return !tag.includes(':') && (uses.get(`${project}\n${tag}`) ?? 0) <= most;
  };
}

/** The pairs that are to be linked, nearest first, so that no node gets more links than the rule has. */
export function chooseLinks(
  nodes: ReadonlyMap<string, MemoryNode>,
  pairs: readonly Near[],
  rule: DreamRule & { readonly sparesStandIns: boolean },
): ReadonlyMap<string, readonly string[]> {
  const links = new Map<string, readonly string[]>();
  const own = (node: MemoryNode): readonly string[] => links.get(node.node_id) ?? node.links;
  for (const { left, right, likeness } of nearestFirst(pairs)) {
    if (likeness < rule.link) break;
    const [one, other] = [nodes.get(left), nodes.get(right)];
    if (one === undefined || other === undefined || one.project !== other.project) continue;
    if (![one, other].every((node) => isSettled(node, rule))) continue;
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      if (own(from).length >= rule.links || own(from).includes(to.node_id)) continue;
      links.set(from.node_id, [...own(from), to.node_id]);
    }
  }
  return links;
}
