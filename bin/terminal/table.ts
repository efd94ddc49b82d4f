import displayWidth from 'string-width';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Columns that a terminal gives to a text: two for East Asian wide characters and pictographs, none for marks. */
export { default as displayWidth } from 'string-width';

/** At most `width` columns, cut after a word, or within one that takes most of them, and marked with an ellipsis. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  const head = beginning(text, width - 1);
  const space = text[head.length] === ' ' ? head.length : head.lastIndexOf(' ');
  return `${space > head.length / 3 ? head.slice(0, space).replace(/[\s,;:…]{1,9}$/, '') : head}…`;
}

/** As much of `text` as takes at most `width` columns. */
function beginning(text: string, width: number): string {
  let taken = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += displayWidth(segment);
    if (used > width) break;
    taken += segment;
  }
  return taken;
}

/** Lines of at most `width` columns, broken between words; the last of `rows` ends in an ellipsis where more would follow. */
export function wrapped(text: string, width: number, rows = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = [];
  let rest = text;
  while (displayWidth(rest) > width && lines.length < rows - 1) {
    const fitting = beginning(rest, width);
    const space = rest[fitting.length] === ' ' ? fitting.length : fitting.lastIndexOf(' ');
    const end = space > 0 ? space : fitting.length;
    if (end === 0) break;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return [...lines, truncate(rest, width)];
}

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row, at: number) => string;
  /** Takes what the others leave, at least 12 columns. */
  readonly stretch?: boolean;
  readonly right?: boolean;
  /** Left out where the terminal is too narrow for all. */
  readonly spare?: boolean;
  /** Colours a cell once it has its width. */
  readonly paint?: (text: string, row: Row) => string;
}

/** Lines of a table whose cells are single lines; the first is the heading. */
export function table<Row>(rows: readonly Row[], width: number, columns: readonly Column<Row>[]): string[] {
  const headings = columns.map(({ title }) => title);
  const cells = rows.map((row, nth) => columns.map(({ cell }) => cell(row, nth)));
  const natural = headings.map((_, at) =>
    Math.max(...[headings, ...cells].map((line) => displayWidth(line[at] ?? ''))),
  );
  const fixed = columns.reduce((sum, column, at) => sum + (column.stretch ? 0 : (natural[at] as number)), 0);
  const stretching = columns.filter((column) => column.stretch).length;
  const left = Math.floor((width - fixed - 2 * (columns.length - 1)) / Math.max(1, stretching));
  const widths = columns.map((column, at) =>
    column.stretch ? Math.min(natural[at] as number, Math.max(12, left)) : (natural[at] as number),
  );
  const isNarrow = widths.reduce((sum, each) => sum + each + 2, -2) > width;
  const spare = isNarrow ? columns.findLast((column) => column.spare) : undefined;
  if (spare !== undefined) return table(rows, width, columns.toSpliced(columns.indexOf(spare), 1));
  const line = (texts: readonly string[], row?: Row): string =>
    columns
      .map((column, at) => {
        const width = widths[at] as number;
        const cell = truncate(texts[at] ?? '', width);
        const painted = row === undefined || cell === '' ? cell : (column.paint?.(cell, row) ?? cell);
        const space = ' '.repeat(at === columns.length - 1 && !column.right ? 0 : width - displayWidth(cell));
        return column.right ? space + painted : painted + space;
      })
      .join('  ')
      .trimEnd();
  return [line(headings), ...rows.map((row, nth) => line(cells[nth] ?? [], row))];
}
