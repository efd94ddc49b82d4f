/** The same numbers with room for one at `index`; itself where there is room. */
export function grown(held: Uint32Array<ArrayBuffer>, index: number): Uint32Array<ArrayBuffer> {
  if (index < held.length) return held;
  const larger = new Uint32Array(Math.max(index + 1, held.length * 2));
  larger.set(held);
  return larger;
}
