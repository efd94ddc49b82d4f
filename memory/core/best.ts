/** Collects the best of many without sorting them all. */
export interface Best {
  /** A score below it would not be among the best; 0 while there is room. */
  least(): number;
  add(id: number, score: number): void;
  /** Best first; ties by number. */
  sorted(): { readonly id: number; readonly score: number }[];
}

/** A heap of `limit` entries, the worst on top. */
export function createBest(limit: number): Best {
  const ids: number[] = [];
  const scores: number[] = [];

  const isWorse = (one: number, other: number): boolean => {
    const [left, right] = [scores[one] as number, scores[other] as number];
    return left < right || (left === right && (ids[one] as number) > (ids[other] as number));
  };

  function swap(one: number, other: number): void {
    [ids[one], ids[other]] = [ids[other] as number, ids[one] as number];
    [scores[one], scores[other]] = [scores[other] as number, scores[one] as number];
  }

  function rise(from: number): void {
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!isWorse(at, parent)) return;
      swap(at, parent);
      at = parent;
    }
  }

  function sink(): void {
    for (let at = 0; ; ) {
      const left = at * 2 + 1;
      if (left >= ids.length) return;
      const child = left + 1 < ids.length && isWorse(left + 1, left) ? left + 1 : left;
      if (!isWorse(child, at)) return;
      swap(child, at);
      at = child;
    }
  }

  return {
    least: () => (ids.length < limit ? 0 : (scores[0] as number)),
    add(id, score) {
      if (ids.length < limit) {
        ids.push(id);
        scores.push(score);
        rise(ids.length - 1);
        return;
      }
      const worst = scores[0] as number;
      if (limit === 0 || score < worst || (score === worst && id > (ids[0] as number))) return;
      ids[0] = id;
      scores[0] = score;
      sink();
    },
    sorted: () =>
      ids
        .map((id, at) => ({ id, score: scores[at] as number }))
        .sort((one, other) => other.score - one.score || one.id - other.id),
  };
}
