/** Two nodes by their ids, and how alike they are. */
export interface Near {
  readonly left: string;
  readonly right: string;
  /** More is nearer; what it counts is said where pairs are taken. */
  readonly likeness: number;
}

export interface ClusterRule {
  readonly least: number;
  readonly most: number;
}

/**
 * What hangs together by its nearest pairs first; a pair that would make a cluster of more than `most` is left out.
 * Nothing is in two clusters, and the order in which pairs come does not matter.
 *
 * @returns members in order of their ids, clusters in order of their first member
 */
export function clustersOf(pairs: readonly Near[], { least, most }: ClusterRule): readonly (readonly string[])[] {
  const roots = new Map<string, string>();
  const members = new Map<string, readonly string[]>();
  const rootOf = (id: string): string => {
    let root = id;
    for (let up = roots.get(root); up !== undefined && up !== root; up = roots.get(root)) root = up;
    roots.set(id, root);
    return root;
  };
  const own = (root: string): readonly string[] => members.get(root) ?? [root];
  for (const { left, right } of nearestFirst(pairs)) {
    const [one, other] = [rootOf(left), rootOf(right)];
    const joined = [...own(one), ...own(other)];
    if (one === other || joined.length > most) continue;
    roots.set(other, one);
    members.set(one, joined);
    members.delete(other);
  }
  const found = [...members.values()].filter(({ length }) => length >= least).map((ids) => ids.toSorted());
  return found.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

/** Each pair once, with its greatest likeness; equal ones in order of their ids. */
export function nearestFirst(pairs: readonly Near[]): readonly Near[] {
  const best = new Map<string, Near>();
  for (const { left, right, likeness } of pairs) {
    if (left === right) continue;
    const [first, second] = left < right ? [left, right] : [right, left];
    const key = `${first}\n${second}`;
    const known = best.get(key)?.likeness ?? Number.NEGATIVE_INFINITY;
    if (likeness > known) best.set(key, { left: first, right: second, likeness });
  }
  return [...best]
    .sort(([a, one], [b, other]) => other.likeness - one.likeness || (a < b ? -1 : 1))
    .map(([, pair]) => pair);
}
