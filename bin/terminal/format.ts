import { CometError } from '../../common/errors.ts';

// C0 and C1 controls but for tab and newline, zero-width, bidi and tag characters: what is remembered came from anywhere
// and must neither drive the terminal it is shown on nor say what nobody sees.
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the very characters that are taken out
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

/** Without anythingthat a terminal would obey. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '');
}

/** The same JSON, with escapes in place of what a terminal would obey. */
export function escaped(json: string): string {
  return json.replace(UNPRINTABLE, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** `printable`, on one line. */
export function oneLine(text: string): string {
  return printable(text).replace(/\s+/g, ' ').trim();
}

/**
 * A statement on one line, without a concept that was only made of words of its value, as "tax or cents". A "not"
 * before a value that says its own would turn it around.
 */
export function factText({ concept, value }: { readonly concept: string; readonly value: string }): string {
  const isRepeated = concept.split(/,? or |, /).every((word) => value.includes(word));
  return oneLine(isRepeated ? value : `${concept}: ${value}`);
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
