/** A secret in a text, `[start, end)` in UTF-16 units. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** The type shown in the mark: lower case and dashes. */
  readonly type: string;
}

/** Merges overlapping spans; the type of the first listed one wins. The result is ascending and disjoint. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const sorted = spans.map((span, rank) => ({ ...span, rank })).sort((a, b) => a.start - b.start);
  const merged: (Span & { readonly rank: number })[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last === undefined || span.start >= last.end) {
      merged.push(span);
      continue;
    }
    const first = span.rank < last.rank ? span : last;
    merged[merged.length - 1] = { ...first, start: last.start, end: Math.max(last.end, span.end) };
  }
  return merged;
}

/** Whether the span contains one of the ascending, disjoint `parts`. */
export function containsSpan(span: Span, parts: readonly Span[]): boolean {
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((parts[middle] as Span).start < span.start) low = middle + 1;
    else high = middle;
  }
  const first = parts[low];
  return first !== undefined && first.end <= span.end;
}

/** Rules of another library; yields to the event loop. */
export type SecretScanner = (text: string) => Promise<readonly Span[]>;
