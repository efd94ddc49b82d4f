/** Terms by small whole numbers, each for as long as the index is open. Held in memory. */
export interface TermIds {
  find(term: string): number | undefined;
  /** The number of a term that is not known yet is new. */
  of(term: string): number;
  clear(): void;
}

/** A shorter piece of a string does not keep the whole of it in memory. */
const OWN_UNITS = 12;

export function createTermIds(): TermIds {
  const ids = new Map<string, number>();
  return {
    find: (term) => ids.get(term),
    of(term) {
      const known = ids.get(term);
      if (known !== undefined) return known;
      const id = ids.size;
      ids.set(term.length > OWN_UNITS ? [...term].join('') : term, id);
      return id;
    },
    clear: () => ids.clear(),
  };
}
