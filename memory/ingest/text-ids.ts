import { grown } from './grow-array.ts';

/**
 * Texts by whole numbers from 0 on, each held once, as bytes: half a million words take 10 MB, as strings in a map
 * they take 30. Held in memory.
 */
export interface TextIds {
  find(text: string): number | undefined;
  /** The number of a text that is not known yet is new. */
  of(text: string): number;
  /** @throws RangeError for a number that was never given */
  text(id: number): string;
  size(): number;
  clear(): void;
}

const FIRST_PLACES = 1_024;
const FULL = 0.7;
/** The first byte of each: how many bytes a unit of its takes. */
const [NARROW, WIDE] = [1, 2];
const UNITS_AT_ONCE = 1_000;

interface State {
  /** Open-addressed: a number plus one, 0 where there is none. */
  places: Uint32Array<ArrayBuffer>;
  bytes: Uint8Array<ArrayBuffer>;
  /** Where the bytes of a number begin; those of the next begin where they end. */
  starts: Uint32Array<ArrayBuffer>;
  count: number;
}

export function createTextIds(): TextIds {
  const state: State = {
    places: new Uint32Array(FIRST_PLACES),
    bytes: new Uint8Array(FIRST_PLACES),
    starts: new Uint32Array(FIRST_PLACES),
    count: 0,
  };
  return {
    find(text) {
      const place = state.places[getPlace(state, text)] as number;
      return place === 0 ? undefined : place - 1;
    },
    of(text) {
      const place = getPlace(state, text);
      const held = state.places[place] as number;
      if (held !== 0) return held - 1;
      state.places[place] = state.count + 1;
      write(state, text);
      makeRoom(state);
      return state.count - 1;
    },
    text: (id) => readText(state, id),
    size: () => state.count,
    clear() {
      state.places.fill(0);
      state.count = 0;
    },
  };
}

function unitAt(bytes: Uint8Array, at: number, width: number): number {
  const low = bytes[at] as number;
  return width === NARROW ? low : low | ((bytes[at + 1] as number) << 8);
}

function isText({ bytes, starts }: State, id: number, text: string): boolean {
  const start = starts[id] as number;
  const width = bytes[start] as number;
  if ((starts[id + 1] as number) - start !== 1 + text.length * width) return false;
  for (let at = 0, byte = start + 1; at < text.length; at += 1, byte += width) {
    if (unitAt(bytes, byte, width) !== text.charCodeAt(at)) return false;
  }
  return true;
}

/** Slot of the text, or the free slot for it. */
function getPlace(state: State, text: string): number {
  const { places } = state;
  const mask = places.length - 1;
  let place = getHash(text) & mask;
  for (let held = places[place] as number; held !== 0; held = places[place] as number) {
    if (isText(state, held - 1, text)) break;
    place = (place + 1) & mask;
  }
  return place;
}

function write(state: State, text: string): void {
  const { count } = state;
  const width = getWidth(text);
  const start = state.starts[count] as number;
  const end = start + 1 + text.length * width;
  state.starts = grown(state.starts, count + 1);
  state.starts[count + 1] = end;
  if (end > state.bytes.length) {
    const larger = new Uint8Array(Math.max(end, Math.ceil(state.bytes.length * 1.5)));
    larger.set(state.bytes);
    state.bytes = larger;
  }
  const { bytes } = state;
  bytes[start] = width;
  for (let at = 0, byte = start + 1; at < text.length; at += 1, byte += width) {
    const unit = text.charCodeAt(at);
    bytes[byte] = unit;
    if (width === WIDE) bytes[byte + 1] = unit >>> 8;
  }
  state.count += 1;
}

function makeRoom(state: State): void {
  const { count } = state;
  if (count < state.places.length * FULL) return;
  const places = new Uint32Array(state.places.length * 2);
  const mask = places.length - 1;
  for (let id = 0; id < count; id += 1) {
    let place = getHash(readText(state, id)) & mask;
    while (places[place] !== 0) place = (place + 1) & mask;
    places[place] = id + 1;
  }
  state.places = places;
}

function readText({ bytes, starts, count }: State, id: number): string {
  if (!(id >= 0 && id < count)) throw new RangeError(`no text has the number ${id}`);
  const [start, end] = [starts[id] as number, starts[id + 1] as number];
  const width = bytes[start] as number;
  let text = '';
  for (let from = start + 1; from < end; from += UNITS_AT_ONCE * width) {
    const units = new Uint16Array((Math.min(end, from + UNITS_AT_ONCE * width) - from) / width);
    for (let at = 0; at < units.length; at += 1) units[at] = unitAt(bytes, from + at * width, width);
    text += String.fromCharCode(...units);
  }
  return text;
}

function getWidth(text: string): number {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 255) return WIDE;
  return NARROW;
}

/** FNV-1a, its upper bits mixed into the lower ones. */
function getHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash ^= hash >>> 15;
  return (hash ^ (hash >>> 7)) >>> 0;
}
