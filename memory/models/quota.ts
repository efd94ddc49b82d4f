/** One limit of the login or key, as last heard of. */
export interface QuotaWindow {
  /** `5h`, `7d`, … or `tokens`, `requests`, …: the part of the header's name that tells it from others. */
  readonly name: string;
  /** 0 unused, 1 used up; may be more. */
  readonly utilization: number;
  /** When it starts anew; never more than eight days ahead of when it was heard of. */
  readonly resetAtMs: number;
}

export interface QuotaRule {
  /** Share of a limit from which on our own calls wait; the rest is the user's. */
  readonly maxUtilization: number;
  /** Tokens that our own calls may take in one day (UTC). */
  readonly dailyTokens: number;
}

export type QuotaDecision =
  | { readonly kind: 'allow' }
  | { readonly kind: 'defer'; readonly untilMs: number; readonly because: string };

/** Whether the model may be asked now. */
export interface ModelQuota {
  decide(): QuotaDecision;
}

export interface RateLimitResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

const DAY_MS = 86_400_000;
const LONGEST_MS = 8 * DAY_MS;
/** A limit that does not say when it ends is believed for so long. */
const UNDATED_MS = 15 * 60_000;
const MOST_WINDOWS = 32;
const HEADER =
  /^anthropic-ratelimit-(unified-)?([a-z0-9][a-z0-9_-]{0,40}?)-(status|reset|utilization|limit|remaining)$/;
/** The limit as a whole, without a window of its own. */
const WHOLE = /^anthropic-ratelimit-(unified)-(status|reset)$/;
/** Paid extra use: that it is not to be had uses nothing up. */
const NO_LIMIT = /^(overage|fallback)/;
const NUMBER = /^\d{1,15}(\.\d{1,15})?$/;

type Fields = Partial<Record<string, string>>;

/** The limits that one answer tells of; none where it tells of none that can be understood. Never throws. */
export function readQuota({ status, headers }: RateLimitResponse, nowMs: number): QuotaWindow[] {
  const found = new Map<string, Fields>();
  for (const [header, value] of Object.entries(headers)) {
    const match = WHOLE.exec(header);
    const [, , name = '', field = ''] = match === null ? (HEADER.exec(header) ?? []) : ['', '', match[1], match[2]];
    if (name === '' || NO_LIMIT.test(name)) continue;
    const known = found.get(name) ?? {};
    const former = known[field];
    // `unified-5h` and `5h` are one limit: no word about it hides another.
    found.set(name, { ...known, [field]: former === undefined ? String(value) : `${former},${value}` });
  }
  const inPercent = [...found.values()].some(({ utilization }) => parts(utilization).some(isPercent));
  const windows = [...found].flatMap(([name, fields]): QuotaWindow[] => {
    const utilization = utilizationOf(fields, inPercent);
    return utilization === null ? [] : [{ name, utilization, resetAtMs: resetOf(fields['reset'], nowMs) }];
  });
  const pauseMs = status === 429 ? resetOf(headers['retry-after'], nowMs) : 0;
  if (pauseMs > nowMs) windows.push({ name: 'retry-after', utilization: 1, resetAtMs: pauseMs });
  return windows.slice(0, MOST_WINDOWS);
}

/** What is known after `fresh` was heard: a limit's newest word counts, and what has started anew is forgotten. */
export function mergeQuota(known: readonly QuotaWindow[], fresh: readonly QuotaWindow[], nowMs: number): QuotaWindow[] {
  const newest = new Map([...known, ...fresh].map((window) => [window.name, window]));
  return [...newest.values()].filter((window) => isRunning(window, nowMs)).slice(-MOST_WINDOWS);
}

/** Whether a model call of ours may be made now; of several reasons against it the one that lasts longest. */
export function decideQuota(
  windows: readonly QuotaWindow[],
  { rule, tokensToday, nowMs }: { readonly rule: QuotaRule; readonly tokensToday: number; readonly nowMs: number },
): QuotaDecision {
  const reasons = windows
    .filter((window) => isRunning(window, nowMs) && window.utilization >= rule.maxUtilization)
    .map((window) => ({ untilMs: window.resetAtMs, because: saidOf(window, rule) }));
  if (tokensToday >= rule.dailyTokens) {
    const untilMs = (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS;
    const because = `our own calls have taken ${tokensToday} of the ${rule.dailyTokens} tokens allowed for a day`;
    reasons.push({ untilMs, because });
  }
  const longest = reasons.toSorted((a, b) => b.untilMs - a.untilMs)[0];
  return longest === undefined ? { kind: 'allow' } : { kind: 'defer', ...longest };
}

/** A clock that was set back makes no limit last longer than any does. */
function isRunning({ resetAtMs }: QuotaWindow, nowMs: number): boolean {
  return resetAtMs > nowMs && resetAtMs <= nowMs + LONGEST_MS;
}

function saidOf({ name, utilization }: QuotaWindow, rule: QuotaRule): string {
  if (name === 'retry-after') return 'the API asked for a pause';
  const limit = name === 'unified' ? 'the usage limit' : `the ${name} limit`;
  const used = Math.floor(utilization * 100);
  return `${limit} is ${used} % used, and our own calls stop at ${Math.round(rule.maxUtilization * 100)} %`;
}

/** Of several words about one limit the worst; null where none is understood. */
function utilizationOf(fields: Fields, inPercent: boolean): number | null {
  const shares = parts(fields['utilization']).flatMap((text) => shareOf(text, inPercent));
  const [limit, remaining] = [parts(fields['limit']), parts(fields['remaining'])].map((each) => each.map(Number));
  const most = Math.max(...(limit ?? []));
  const left = Math.min(...(remaining ?? []));
  if (most > 0 && Number.isFinite(most) && Number.isFinite(left)) shares.push(Math.max(0, 1 - left / most));
  if (/\b(rejected|blocked|exceeded)\b/i.test(fields['status'] ?? '')) shares.push(1);
  return shares.length === 0 ? null : Math.max(...shares);
}

/** A share as 0.81, 81 or 81 %. Up to 2 it is a fraction, unless others beside it are plainly in percent. */
function shareOf(text: string, inPercent: boolean): number[] {
  const bare = text.replace(/\s*%$/, '');
  const value = Number(bare);
  return [isPercent(text) || (inPercent && /^\d+$/.test(bare)) ? value / 100 : value];
}

function isPercent(text: string): boolean {
  return text.endsWith('%') || Number(text) > 2;
}

/** Unix seconds or milliseconds, seconds from now, or a date; what is past or far off is not believed. */
function resetOf(value: string | undefined, nowMs: number): number {
  const times = parts(value, /^.{1,40}$/).map((text) => {
    const stamp = NUMBER.test(text) ? Number(text) : Number.NaN;
    if (Number.isNaN(stamp)) return Date.parse(text);
    if (stamp < 1e8) return nowMs + stamp * 1_000;
    return stamp < 1e11 ? stamp * 1_000 : stamp;
  });
  const last = Math.max(...times.filter((time) => time > nowMs && time <= nowMs + LONGEST_MS));
  return Number.isFinite(last) ? last : nowMs + UNDATED_MS;
}

/** A header that came twice is joined by commas. */
function parts(value: string | undefined, pattern = /^\d{1,15}(\.\d{1,15})?\s*%?$/): string[] {
  const texts = (value ?? '').split(',').map((text) => text.trim());
  return texts.filter((text) => pattern.test(text)).slice(0, 16);
}
