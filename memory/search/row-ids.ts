import { grown } from './grow-array.ts';
import type { IndexRow } from './node-index.ts';
import { hashOf, type TextIds } from './string-interner.ts';

type NamedRow = Pick<IndexRow, 'row_id' | 'node_id' | 'turn'>;

/** Slots by the ids of their rows. An id mostly repeats the names of its row's node and turn, which are held anyway. */
export interface RowIds {
  /** @param numbers  of the names of its node and turn */
  put(slot: number, row: NamedRow, numbers: { readonly node: number; readonly turn: number }): void;
  remove(slot: number): void;
  find(rowId: string): number | undefined;
  /** '' where there is no row. */
  idOf(slot: number): string;
  count(): number;
  clear(): void;
}

/** How an id is made of its node's name: with its turn's, with another text behind it, or not at all. */
const [GONE, OF_TURN, BEHIND, WHOLE] = [0, 1, 2, 3];
const FORM_BITS = 2;
const FIRST_PLACES = 1_024;
const FULL = 0.7;

export function createRowIds(names: TextIds): RowIds {
  /** By slot: the form, and above it the number of the text. */
  let forms = new Uint32Array(1_024);
  let nodes = new Uint32Array(1_024);
  let turns = new Uint32Array(1_024);
  /** Open-addressed: a slot plus one, and the hash of its id. Slots that are gone stay until there is more room. */
  let places = new Uint32Array(FIRST_PLACES);
  let hashes = new Uint32Array(FIRST_PLACES);
  let taken = 0;
  let live = 0;

  function formOf({ row_id, node_id, turn }: NamedRow): number {
    if (!row_id.startsWith(node_id)) return WHOLE | (names.of(row_id) << FORM_BITS);
    const rest = row_id.slice(node_id.length);
    return rest === `:${turn}` ? OF_TURN : BEHIND | (names.of(rest) << FORM_BITS);
  }

  function idOf(slot: number): string {
    const form = forms[slot] ?? GONE;
    const kind = form & 3;
    if (kind === GONE) return '';
    const text = names.text(kind === OF_TURN ? (turns[slot] as number) : form >>> FORM_BITS);
    if (kind === WHOLE) return text;
    return names.text(nodes[slot] as number) + (kind === OF_TURN ? ':' : '') + text;
  }

  function enter(hash: number, slot: number): void {
    const mask = places.length - 1;
    let place = hash & mask;
    while (places[place] !== 0) place = (place + 1) & mask;
    places[place] = slot + 1;
    hashes[place] = hash;
    taken += 1;
  }

  function makeRoom(): void {
    if (taken < places.length * FULL) return;
    const [oldPlaces, oldHashes] = [places, hashes];
    const size = live > taken / 2 ? places.length * 2 : places.length;
    places = new Uint32Array(size);
    hashes = new Uint32Array(size);
    taken = 0;
    for (const [at, held] of oldPlaces.entries()) {
      if (held !== 0 && forms[held - 1] !== GONE) enter(oldHashes[at] as number, held - 1);
    }
  }

  return {
    put(slot, row, { node, turn }) {
      forms = grown(forms, slot);
      nodes = grown(nodes, slot);
      turns = grown(turns, slot);
      makeRoom();
      nodes[slot] = node;
      turns[slot] = turn;
      forms[slot] = formOf(row);
      enter(hashOf(row.row_id), slot);
      live += 1;
    },
    remove(slot) {
      if (forms[slot] === GONE) return;
      forms[slot] = GONE;
      live -= 1;
    },
    find(rowId) {
      const mask = places.length - 1;
      const hash = hashOf(rowId);
      for (let place = hash & mask; places[place] !== 0; place = (place + 1) & mask) {
        const slot = (places[place] as number) - 1;
        if (hashes[place] === hash && forms[slot] !== GONE && idOf(slot) === rowId) return slot;
      }
      return undefined;
    },
    idOf,
    count: () => live,
    clear() {
      forms.fill(GONE);
      places.fill(0);
      taken = 0;
      live = 0;
    },
  };
}
