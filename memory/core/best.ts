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
  const ids = new Uint32Array(limit);
  const scores = new Float64Array(limit);
  let count = 0;

  const isWorse = (one: number, other: number): boolean => {
    const [left, right] = [scores[one] as number, scores[other] as number];
    return left < right || (left === right && (ids[one] as number) > (ids[other] as number));
  };

  function swap(one: number, other: number): void {
    const [id, score] = [ids[one] as number, scores[one] as number];
    ids[one] = ids[other] as number;
    scores[one] = scores[other] as number;
    ids[other] = id;
    scores[other] = score;
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
      if (left >= count) return;
      const child = left + 1 < count && isWorse(left + 1, left) ? left + 1 : left;
      if (!isWorse(child, at)) return;
      swap(child, at);
      at = child;
    }
  }

  return {
    least: () => (count < limit ? 0 : (scores[0] as number)),
    add(id, score) {
      if (count < limit) {
        ids[count] = id;
        scores[count] = score;
        rise(count);
        count += 1;
        return;
      }
      const worst = scores[0] as number;
      if (limit === 0 || score < worst || (score === worst && id > (ids[0] as number))) return;
      ids[0] = id;
      scores[0] = score;
      sink();
    },
    sorted: () =>
      Array.from(ids.subarray(0, count), (id, at) => ({ id, score: scores[at] as number })).sort(
        (one, other) => other.score - one.score || one.id - other.id,
      ),
  };
}
