import { diffLines } from 'diff';

export interface DiffRow {
  readonly kind: 'place' | 'same' | 'removed' | 'added';
  readonly text: string;
}

export interface Change {
  /** `kept`: sent as it was received. */
  readonly kind?: 'kept' | 'changed';
  /** Where in the body. */
  readonly at: string;
  readonly removed: string;
  readonly added: string;
  /** That were removed; their text may be gone. */
  readonly bytes: number;
}

/** Lines of a message that was sent as it came. */
const KEPT_LINES = 6;
/** Longer texts are shown one after the other. */
const MOST_CHARS = 60_000;

/** One row for each line, under the place of its change. */
export function diffRows(changes: readonly Change[]): readonly DiffRow[] {
  return changes.flatMap((change) => [{ kind: 'place' as const, text: change.at }, ...getRows(change)]);
}

function getRows({ kind, removed, added, bytes }: Change): DiffRow[] {
  if (kind === 'kept') return keptRows(removed, bytes);
  if (removed === '' && bytes > 0) {
    return [{ kind: 'removed', text: `${bytes} bytes whose text is no longer kept` }, ...getLines('added', added)];
  }
  if (removed === '' || added === '' || removed.length + added.length > MOST_CHARS) {
    const left = bytes - new TextEncoder().encode(removed).length;
    const end = left > 0 ? `… and ${left} bytes that are not shown here` : '';
    return [...getLines('removed', removed), ...getLines('removed', end), ...getLines('added', added)];
  }
  return diffLines(removed, added).flatMap((part) =>
    getLines(part.added ? 'added' : part.removed ? 'removed' : 'same', part.value),
  );
}

function keptRows(text: string, bytes: number): DiffRow[] {
  const lines = getLines('same', text);
  const isShort = lines.length <= KEPT_LINES && new TextEncoder().encode(text).length >= bytes;
  return isShort ? lines : [...lines.slice(0, KEPT_LINES), { kind: 'same', text: '…' }];
}

function getLines(kind: DiffRow['kind'], text: string): DiffRow[] {
  if (text === '') return [];
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => ({ kind, text: line }));
}
