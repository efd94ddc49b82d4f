import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/async.ts';
import { CometError } from '../../common/errors.ts';
import type { Origin } from '../../common/turn.ts';

export { formatCount as counted } from '../../common/text.ts';

const UNITS: Readonly<Record<string, number>> = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS };

export const SPEAKERS: Readonly<Record<Origin, string>> = {
  user: 'you',
  assistant: 'Claude',
  tool: 'files and tools',
  external: 'outside',
};

/** Of `written_by`; other values are names of models. */
export const WRITERS: Readonly<Record<string, string>> = {
  user: 'you',
  local: 'rules',
  claude: 'Claude',
  document: 'a document',
  consolidation: 'merging',
  bundle: 'grouping',
};

/** The last six characters of an id, which tell it apart and are accepted for it. */
export const shortId = (id: string): string => id.slice(-6);

/** Lines as a model gets them, with short ids and without codes. */
export function withoutCodes(text: string): string {
  return text
    .replace(/\[mem_\d{8}_\d{6}_([0-9a-f]{6})\] (\d{4}-\d\d-\d\d) (?:\([A-Z]:[^()\n]{1,80}\) )?/g, '$1  $2 ')
    .replace(/\bmem_\d{8}_\d{6}_([0-9a-f]{6})\b/g, '$1');
}

export function duration(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1000)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`;
  return `${Math.floor(ms / DAY_MS)} d ${Math.floor((ms % DAY_MS) / HOUR_MS)} h`;
}

export const count = (value: number): string => Math.round(value).toLocaleString('en-US');

/** `7d`, `12h`, `30m`, `2w`, or an ISO date (its beginning here) or time. @throws CometError `usage` */
export function parseSince(text: string, nowMs: number): number {
  const span = getSpan(text);
  if (span !== null) return nowMs - span;
  // A date alone would be one of UTC.
  const at = isDay(text.slice(0, 10)) ? Date.parse(text.length > 10 ? text : `${text}T00:00`) : Number.NaN;
  if (Number.isNaN(at)) throw new CometError('usage', `--since expects 30m, 12h, 7d, 2w or a date (got "${text}")`);
  return at;
}

/** As milliseconds. @throws CometError `usage` */
export function parseSpan(text: string, name: string): number {
  const span = getSpan(text);
  if (span === null || span === 0) throw new CometError('usage', `${name} expects 30m, 12h, 7d or 2w (got "${text}")`);
  return span;
}

/** Of a calendar: `Date` takes 2026-02-30 for a day in March. */
export function isDay(text: string): boolean {
  const atMs = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text);
}

/** Short enough that `Date` has what is so long from now. */
function getSpan(text: string): number | null {
  const span = /^(\d{1,6})\s*([mhdw])$/.exec(text.trim());
  return span === null ? null : Number(span[1]) * (UNITS[span[2] as string] as number);
}

/** @throws CometError `usage` */
export function parseCount(text: string, name: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new CometError('usage', `${name} expects a positive integer (got "${text}")`);
  return value;
}

/** A line of the inbox for a terminal: short ids of memories and titles of pages, without their addresses. */
export function inboxLine(line: string): string {
  return line
    .replace(/\[(mem_\w+)\]\([^()\s]*\)/g, (_, id: string) => shortId(id))
    .replace(/\[([^[\]]*)\]\(\.\.\/topics\/[^()\s]*\)/g, '$1');
}
