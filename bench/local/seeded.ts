/** The same seed gives the same numbers, on every machine. */
export interface Seeded {
  /** Whole, from 0 to below `most`. */
  below(most: number): number;
  pickOne<T>(choices: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (most: number): number => Math.floor(next() * most);
  return {
    below,
    pickOne: (choices) => choices[below(choices.length)] as (typeof choices)[number],
    shuffled: (items) => {
      const left = [...items];
      return Array.from({ length: left.length }, () => left.splice(below(left.length), 1)[0] as (typeof left)[number]);
    },
  };
}
