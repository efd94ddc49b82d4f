import { diffLines } from 'diff';

export interface DiffRow {
  readonly kind: 'place' | 'same' | 'removed' | 'added';
  readonly text: string;
}

export interface Change {
  /** Where in the body. */
  readonly place: string;
  readonly removed: string;
  readonly added: string;
  /** That were removed; their text may be gone. */
  readonly bytes: number;
}

/** Longer texts are shown one after the other. */
const MOST_CHARS = 60_000;

/** One row for each line, under the place of its change. */
export function diffRows(changes: readonly Change[]): readonly DiffRow[] {
  return changes.flatMap((change) => [{ kind: 'place' as const, text: change.place }, ...rowsOf(change)]);
}

function rowsOf({ removed, added, bytes }: Change): DiffRow[] {
  if (removed === '' && bytes > 0) {
    return [{ kind: 'removed', text: `${bytes} bytes whose text is no longer kept` }, ...linesOf('added', added)];
  }
  if (removed === '' || added === '' || removed.length + added.length > MOST_CHARS) {
    return [...linesOf('removed', removed), ...linesOf('added', added)];
  }
  return diffLines(removed, added).flatMap((part) =>
    linesOf(part.added ? 'added' : part.removed ? 'removed' : 'same', part.value),
  );
}

function linesOf(kind: DiffRow['kind'], text: string): DiffRow[] {
  if (text === '') return [];
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => ({ kind, text: line }));
}
