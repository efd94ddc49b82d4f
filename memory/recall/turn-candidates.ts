import type { Found } from '../search/node-index.ts';

/** Lanes that find turns by themselves, and by the facts that rest on them. */
export const OWN_LANES = ['raw', 'meaning', 'expanded', 'window', 'entity'] as const;
export const FACT_LANES = ['fact', 'factMeaning'] as const;

type Ranks<L extends string> = Readonly<Record<L, Uint32Array>>;

/**
 * The turns that lanes found, in columns: a thousand are ranked at once, and objects would cost more than the ranking.
 * A turn that stands in several nodes has several rows. Ranks begin with 1; 0 is not found.
 */
export interface FoundTurns {
  readonly rows: {
    readonly count: number;
    /** Of the row itself, or of the fact that led to its turn where nothing else did. */
    readonly slots: Uint32Array;
    readonly nodes: Uint32Array;
    /** Place of its turn among the turns. */
    readonly turns: Uint32Array;
    readonly ranks: Ranks<(typeof OWN_LANES)[number]>;
  };
  readonly turns: {
    readonly count: number;
    /** See `RowReader`. */
    readonly numbers: Uint32Array;
    readonly ranks: Ranks<(typeof FACT_LANES)[number]>;
    /** Place of the turn of a number; undefined where it was not found. */
    readonly placeOf: (number: number) => number | undefined;
  };
}

export function turnsIn({ lanes, rows }: Found): FoundTurns {
  const most = mostTurns({ lanes, rows });
  const column = (): Uint32Array => new Uint32Array(most);
  const [slots, nodes, turns, numbers] = [column(), column(), column(), column()];
  const ranks = { raw: column(), meaning: column(), expanded: column(), window: column(), entity: column() };
  const factRanks = { fact: column(), factMeaning: column() };
  const bySlot = new Map<number, number>();
  const byNumber = new Map<number, number>();
  let count = 0;

  function add(slot: number, number: number): number {
    const known = byNumber.get(number);
    const turn = known ?? byNumber.size;
    if (known === undefined) {
      byNumber.set(number, turn);
      numbers[turn] = number;
    }
    slots[count] = slot;
    nodes[count] = rows.nodeOf(slot);
    turns[count] = turn;
    return count++;
  }

  for (const lane of OWN_LANES) {
    const found = lanes[lane].slots;
    for (let at = 0; at < found.length; at += 1) {
      const slot = found[at] as number;
      let row = bySlot.get(slot);
      if (row === undefined) {
        row = add(slot, rows.turnOf(slot));
        bySlot.set(slot, row);
      }
      ranks[lane][row] = at + 1;
    }
  }
  for (const lane of FACT_LANES) {
    for (const [at, slot] of lanes[lane].slots.entries()) {
      for (let nth = 0, number = rows.sourceOf(slot, 0); number !== 0; number = rows.sourceOf(slot, ++nth)) {
        const turn = byNumber.get(number) ?? (turns[add(slot, number)] as number);
        factRanks[lane][turn] ||= at + 1;
      }
    }
  }
  return {
    rows: { count, slots, nodes, turns, ranks },
    turns: { count: byNumber.size, numbers, ranks: factRanks, placeOf: (number) => byNumber.get(number) },
  };
}

function mostTurns({ lanes, rows }: Found): number {
  let most = 0;
  for (const lane of OWN_LANES) most += lanes[lane].slots.length;
  for (const lane of FACT_LANES) {
    for (const slot of lanes[lane].slots) for (let nth = 0; rows.sourceOf(slot, nth) !== 0; nth += 1) most += 1;
  }
  return most;
}
