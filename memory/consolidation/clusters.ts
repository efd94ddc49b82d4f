/** Two nodes by their ids, and how alike they are. */
export interface NodePair {
  readonly left: string;
  readonly right: string;
  /** More is nearer; what it counts is said where pairs are taken. */
  readonly similarity: number;
}

export interface ClusterRule {
  readonly minSize: number;
  readonly maxSize: number;
}

/**
 * What hangs together by its nearest pairs first; a pair that would make a cluster of more than `most` is left out.
 * Nothing is in two clusters, and the order in which pairs come does not matter.
 *
 * @returns members in order of their ids, clusters in order of their first member
 */
export function findClusters(
  pairs: readonly NodePair[],
  { minSize, maxSize }: ClusterRule,
): readonly (readonly string[])[] {
  const roots = new Map<string, string>();
  const members = new Map<string, readonly string[]>();
  const rootOf = (id: string): string => {
    let root = id;
    for (let up = roots.get(root); up !== undefined && up !== root; up = roots.get(root)) root = up;
    roots.set(id, root);
    return root;
  };
  const own = (root: string): readonly string[] => members.get(root) ?? [root];
  for (const { left, right } of sortPairs(pairs)) {
    const [one, other] = [rootOf(left), rootOf(right)];
    const joined = [...own(one), ...own(other)];
    if (one === other || joined.length > maxSize) continue;
    roots.set(other, one);
    members.set(one, joined);
    members.delete(other);
  }
  const found = [...members.values()].filter(({ length }) => length >= minSize).map((ids) => ids.toSorted());
  return found.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

/** Each pair once, with its greatest similarity; equal ones in order of their ids. */
export function sortPairs(pairs: readonly NodePair[]): readonly NodePair[] {
  const best = new Map<string, NodePair>();
  for (const { left, right, similarity } of pairs) {
    if (left === right) continue;
    const [first, second] = left < right ? [left, right] : [right, left];
    const key = `${first}\n${second}`;
    const known = best.get(key)?.similarity ?? Number.NEGATIVE_INFINITY;
    if (similarity > known) best.set(key, { left: first, right: second, similarity });
  }
  return [...best]
    .sort(([a, one], [b, other]) => other.similarity - one.similarity || (a < b ? -1 : 1))
    .map(([, pair]) => pair);
}
