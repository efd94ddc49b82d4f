import { CometError } from '../../common/errors.ts';

export { counted } from '../../common/text.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

export function duration(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** `7d`, `12h`, `30m`, `2w`, or an ISO date or time. @throws CometError `usage` */
export function parseSince(text: string, nowMs: number): number {
  const span = spanOf(text);
  if (span !== null) return nowMs - span;
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw new CometError('usage', `--since expects 30m, 12h, 7d, 2w or a date (got "${text}")`);
  return at;
}

/** As milliseconds. @throws CometError `usage` */
export function parseSpan(text: string, name: string): number {
  const span = spanOf(text);
  if (span === null || span === 0) throw new CometError('usage', `${name} expects 30m, 12h, 7d or 2w (got "${text}")`);
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
    throw new CometError('usage', `${name} expects a positive integer (got "${text}")`);
  }
  return value;
}
