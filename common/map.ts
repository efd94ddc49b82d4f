/** Keeps the most recently used entries, up to `limit` in size together; `peek` does not count as use. */
export class LruMap<K, V> extends Map<K, V> {
  readonly #limit: number;
  readonly #sizeOf: (value: V) => number;
  #used = 0;

  constructor(limit: number, getSize: (value: V) => number = () => 1) {
    super();
    this.#limit = limit;
    this.#sizeOf = getSize;
  }

  override get(key: K): V | undefined {
    const value = super.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  peek(key: K): V | undefined {
    return super.get(key);
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    this.#used += this.#sizeOf(value);
    for (const oldest of this.keys()) {
      if (this.#used <= this.#limit) break;
      this.delete(oldest);
    }
    return this;
  }

  override delete(key: K): boolean {
    const value = this.peek(key);
    if (value !== undefined) this.#used -= this.#sizeOf(value);
    return super.delete(key);
  }

  override clear(): void {
    super.clear();
    this.#used = 0;
  }

  getOrCreate(key: K, create: () => V): V {
    const value = this.get(key) ?? create();
    this.set(key, value);
    return value;
  }
}

/** Computes once for each object, which may not change; the result stays as long as the object. */
export function memoize<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const results = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const result = results.get(key) ?? { value: compute(key) };
    results.set(key, result);
    return result.value;
  };
}

/** In order, `length` at a time; fewer at the end. */
export function slices<T>(items: readonly T[], length: number): T[][] {
  const count = Math.ceil(items.length / length);
  return Array.from({ length: count }, (_, at) => items.slice(at * length, (at + 1) * length));
}

/** How often each item occurs, in order of first occurrence. */
export function tally<T>(items: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
}

export function grouped<T>(items: readonly T[], getKey: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = getKey(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
