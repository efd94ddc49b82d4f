import stringWidth from 'string-width';
import { CometError } from '../common/errors.ts';

// C0 and C1 controls but for tab and newline, zero-width and bidi marks: what is remembered came from anywhere and
// must not drive the terminal it is shown on.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the very characters that are taken out
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

/** Without anything that a terminal would obey. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}

/** `printable`, on one line. */
export function oneLine(text: string): string {
  return printable(text).replace(/\s+/g, ' ').trim();
}

/** Columns that a terminal gives to `text`: two for East Asian wide characters and pictographs, none for marks. */
export function displayWidth(text: string): number {
  return stringWidth(text);
}

/** At most `width` columns, an ellipsis in the last where something was cut off. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let taken = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used += displayWidth(segment);
    if (used > width - 1) break;
    taken += segment;
  }
  return `${taken}…`;
}

export interface Column {
  readonly title: string;
  readonly cells: readonly string[];
  /** Takes what the others leave, at least 12 columns. */
  readonly stretch?: boolean;
  readonly right?: boolean;
  /** Colours a cell once it has its width. */
  readonly paint?: (text: string, row: number) => string;
}

/** Lines of a table whose cells are single lines; the first is the heading. */
export function table(columns: readonly Column[], width: number): string[] {
  const natural = columns.map((column) => Math.max(...[column.title, ...column.cells].map(displayWidth)));
  const fixed = columns.reduce((sum, column, at) => sum + (column.stretch ? 0 : (natural[at] as number)), 0);
  const stretching = columns.filter((column) => column.stretch).length;
  const left = Math.floor((width - fixed - 2 * (columns.length - 1)) / Math.max(1, stretching));
  const widths = columns.map((column, at) =>
    column.stretch ? Math.min(natural[at] as number, Math.max(12, left)) : (natural[at] as number),
  );
  const rows = columns[0]?.cells.length ?? 0;
  const line = (cellOf: (column: Column) => string, row: number): string =>
    columns
      .map((column, at) => {
        const width = widths[at] as number;
        const cell = truncate(cellOf(column), width);
        const painted = row < 0 || column.paint === undefined || cell === '' ? cell : column.paint(cell, row);
        const space = ' '.repeat(at === columns.length - 1 && !column.right ? 0 : width - displayWidth(cell));
        return column.right ? space + painted : painted + space;
      })
      .join('  ')
      .trimEnd();
  const body = Array.from({ length: rows }, (_, row) => line((column) => column.cells[row] ?? '', row));
  return [line((column) => column.title, -1), ...body];
}

/** "5 min ago"; a date after thirty days; a time to come is "now". */
export function ago(thenMs: number, nowMs: number): string {
  const past = nowMs - thenMs;
  if (past < MINUTE) return 'now';
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ago`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h ago`;
  if (past < 30 * DAY) return `${Math.floor(past / DAY)} d ago`;
  return new Date(thenMs).toISOString().slice(0, 10);
}

export function duration(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `7d`, `12h`, `30m`, `2w`, or an ISO date or time. @throws CometError `usage` */
export function parseSince(text: string, nowMs: number): number {
  const span = spanOf(text);
  if (span !== null) return nowMs - span;
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw new CometError('usage', `--since takes 30m, 12h, 7d, 2w or a date (got "${text}")`);
  return at;
}

/** As milliseconds. @throws CometError `usage` */
export function parseSpan(text: string, name: string): number {
  const span = spanOf(text);
  if (span === null || span === 0) throw new CometError('usage', `${name} takes 30m, 12h, 7d or 2w (got "${text}")`);
  return span;
}

function spanOf(text: string): number | null {
  const span = /^(\d+)\s*([mhdw])$/.exec(text.trim());
  return span === null ? null : Number(span[1]) * (UNITS[span[2] as string] as number);
}

/** @throws CometError `usage` */
export function parseCount(text: string, name: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) {
    throw new CometError('usage', `${name} takes a whole number above 0 (got "${text}")`);
  }
  return value;
}

/** Rank and score in each lane that found something. */
export function lanesText(lanes: Readonly<Record<string, { readonly rank: number; readonly score: number }>>): string {
  return Object.entries(lanes)
    .map(([lane, { rank, score }]) => `${lane} #${rank} ${score.toFixed(3)}`)
    .join(', ');
}
