import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { type Clock, DAY_MS } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { writePrivateFile } from '../../common/files.ts';
import type { Log } from '../../common/log.ts';
import { LruMap } from '../../common/map.ts';
import { localDay } from '../../common/text.ts';

const amount = z.number().nonnegative();

/** One rate limit of the login or key, as last reported. */
const QuotaWindow = z.strictObject({
  /** The distinguishing part of the header's name: `5h`, `7d`, … or `tokens`, `requests`, … */
  name: z.string().max(60),
  /** 0 is unused, 1 is used up; may exceed 1. */
  utilization: amount,
  /** At most eight days after the report. */
  resetAtMs: amount,
});
export type QuotaWindow = Readonly<z.infer<typeof QuotaWindow>>;

/** What our own calls took for the turns of one session; `atMs`: of the last call. */
const SessionUsage = z.strictObject({ sessionId: z.string().max(200), tokens: amount, atMs: amount });
export type SessionUsage = Readonly<z.infer<typeof SessionUsage>>;

/**
 * Our own calls wait above a share of a limit (the rest belongs to the user), beyond their tokens per day, and
 * while the recent sessions have cost `costShare` more with them than without comet-cc; beyond its own tokens (0: no
 * limit) a session gets none.
 */
export type QuotaRule = Pick<Config['models'], 'maxUtilization' | 'dailyTokens' | 'sessionTokens' | 'costShare'>;

/** Of the recent sessions, at API prices. */
export interface RecentCost {
  readonly untouchedUsd: number;
  readonly sentUsd: number;
  /** Of memory's own calls, and how many they were. */
  readonly ownUsd: number;
  readonly ownCalls: number;
}

/** `spent`: the budget of the session, which does not come back. */
export type QuotaDecision =
  | { readonly kind: 'allow' }
  | { readonly kind: 'defer'; readonly untilMs: number; readonly because: string }
  | { readonly kind: 'spent'; readonly because: string };

export interface ModelQuota {
  /** @param sessionId  whose turns the call is for; absent for a call over the memories of several */
  decide(sessionId?: string): QuotaDecision;
}

/** Header names are in lower case. */
type RateLimitResponse = { readonly status: number; readonly headers: Readonly<Record<string, string>> };

const LONGEST_MS = 8 * DAY_MS;
/** Assumed duration of a limit without a reset time. */
const UNDATED_MS = 15 * 60_000;
const MOST_WINDOWS = 32;
const MOST_SESSIONS = 500;
/** Some ten summaries: the first sessions have calls before they have cost much. */
const CREDIT_USD = 0.25;
const HEADER =
  /^anthropic-ratelimit-(unified-)?([a-z0-9][a-z0-9_-]{0,40}?)-(status|reset|utilization|limit|remaining)$/;
/** The overall limit, without a window name. */
const WHOLE = /^anthropic-ratelimit-(unified)-(status|reset)$/;
/** Paid extra usage; its unavailability is no limit on the plan itself. */
const NO_LIMIT = /^(overage|fallback)/;
const NUMBER = /^\d{1,15}(\.\d{1,15})?$/;

type Fields = Partial<Record<string, string>>;

/** The limits that one response reports; unreadable ones are skipped. Never throws. */
export function readQuota({ status, headers }: RateLimitResponse, nowMs: number): QuotaWindow[] {
  const fieldsByWindow = new Map<string, Fields>();
  for (const [header, value] of Object.entries(headers)) {
    const match = WHOLE.exec(header);
    const [, , name = '', field = ''] = match === null ? (HEADER.exec(header) ?? []) : ['', '', match[1], match[2]];
    if (name === '' || NO_LIMIT.test(name)) continue;
    const fields = fieldsByWindow.get(name) ?? {};
    const former = fields[field];
    // `unified-5h` and `5h` are one limit; keep the values of both.
    fieldsByWindow.set(name, { ...fields, [field]: former === undefined ? String(value) : `${former},${value}` });
  }
  const inPercent = [...fieldsByWindow.values()].some(({ utilization }) => parts(utilization).some(isPercent));
  const windows = [...fieldsByWindow].flatMap(([name, fields]): QuotaWindow[] => {
    const utilization = getUtilization(fields, inPercent);
    return utilization === null ? [] : [{ name, utilization, resetAtMs: getReset(fields['reset'], nowMs) }];
  });
  const pauseMs = status === 429 ? getReset(headers['retry-after'], nowMs) : 0;
  if (pauseMs > nowMs) windows.push({ name: 'retry-after', utilization: 1, resetAtMs: pauseMs });
  return windows.slice(0, MOST_WINDOWS);
}

/** Newer reports replace older ones of the same limit; limits that have reset are dropped. */
export function mergeQuota(windows: readonly QuotaWindow[], fresh: readonly QuotaWindow[], nowMs: number) {
  const newest = new Map([...windows, ...fresh].map((window) => [window.name, window]));
  return [...newest.values()].filter((window) => isRunning(window, nowMs)).slice(-MOST_WINDOWS);
}

interface QuotaUse {
  readonly rule: QuotaRule;
  readonly tokensToday: number;
  readonly tokensOfSession?: number;
  readonly recent?: RecentCost | null;
  readonly nowMs: number;
}

/** If several limits apply, reports the one that lasts longest. */
export function decideQuota(
  windows: readonly QuotaWindow[],
  { rule, nowMs, tokensToday, tokensOfSession = 0, recent = null }: QuotaUse,
): QuotaDecision {
  if (rule.sessionTokens > 0 && tokensOfSession >= rule.sessionTokens) {
    const because = `our own calls have taken ${tokensOfSession} of the ${rule.sessionTokens} tokens allowed for this session`;
    return { kind: 'spent', because };
  }
  const reasons = windows
    .filter((window) => isRunning(window, nowMs) && window.utilization >= rule.maxUtilization)
    .map((window) => ({ untilMs: window.resetAtMs, because: getSaid(window, rule) }));
  if (tokensToday >= rule.dailyTokens) {
    const untilMs = new Date(nowMs).setHours(24, 0, 0, 0);
    const because = `our own calls have taken ${tokensToday} of the ${rule.dailyTokens} tokens allowed for a day`;
    reasons.push({ untilMs, because });
  }
  if (recent !== null && exceedsShare(recent, rule)) {
    const because = `with more calls of our own, recent sessions would cost ${Math.round(1_000 * rule.costShare) / 10} % more than without comet-cc (models.costShare)`;
    reasons.push({ untilMs: nowMs + UNDATED_MS, because });
  }
  const longest = reasons.toSorted((a, b) => b.untilMs - a.untilMs)[0];
  return longest === undefined ? { kind: 'allow' } : { kind: 'defer', ...longest };
}

/** Expects that the next call costs as much as those before. */
function exceedsShare({ untouchedUsd, sentUsd, ownUsd, ownCalls }: RecentCost, { costShare }: QuotaRule): boolean {
  const nextUsd = ownCalls === 0 ? 0 : ownUsd / ownCalls;
  return ownUsd + nextUsd > untouchedUsd - sentUsd + Math.max(costShare * untouchedUsd, CREDIT_USD);
}

/** Bounds the wait if the clock was set back. */
function isRunning({ resetAtMs }: QuotaWindow, nowMs: number): boolean {
  return resetAtMs > nowMs && resetAtMs <= nowMs + LONGEST_MS;
}

function getSaid({ name, utilization }: QuotaWindow, rule: QuotaRule): string {
  if (name === 'retry-after') return 'the API asked for a pause';
  const limit = name === 'unified' ? 'the usage limit' : `the ${name} limit`;
  const used = Math.floor(utilization * 100);
  return `${limit} is ${used} % used, and our own calls stop at ${Math.round(rule.maxUtilization * 100)} %`;
}

/** The highest utilization reported for one limit; null if none is readable. */
function getUtilization(fields: Fields, inPercent: boolean): number | null {
  const shares = parts(fields['utilization']).flatMap((text) => getShare(text, inPercent));
  const [limit, remaining] = [parts(fields['limit']), parts(fields['remaining'])].map((each) => each.map(Number));
  const most = Math.max(...(limit ?? []));
  const left = Math.min(...(remaining ?? []));
  if (most > 0 && Number.isFinite(most) && Number.isFinite(left)) shares.push(Math.max(0, 1 - left / most));
  if (/\b(rejected|blocked|exceeded)\b/i.test(fields['status'] ?? '')) shares.push(1);
  return shares.length === 0 ? null : Math.max(...shares);
}

/** Reads 0.81, 81 or 81 %. Values up to 2 are fractions unless another value of the response is a percentage. */
function getShare(text: string, inPercent: boolean): number[] {
  const bare = text.replace('%', '');
  const value = Number(bare);
  return [isPercent(text) || (inPercent && /^\d+$/.test(bare)) ? value / 100 : value];
}

const isPercent = (text: string): boolean => text.endsWith('%') || Number(text) > 2;

/** Unix seconds or milliseconds, seconds from now, or a date; past and distant times are ignored. */
function getReset(value: string | undefined, nowMs: number): number {
  const times = parts(value, /^.{1,40}$/).map((text) => {
    const stamp = NUMBER.test(text) ? Number(text) : Number.NaN;
    if (Number.isNaN(stamp)) return Date.parse(text);
    if (stamp < 1e8) return nowMs + stamp * 1_000;
    return stamp < 1e11 ? stamp * 1_000 : stamp;
  });
  const last = Math.max(...times.filter((time) => time > nowMs && time <= nowMs + LONGEST_MS));
  return Number.isFinite(last) ? last : nowMs + UNDATED_MS;
}

/** A repeated header arrives joined by commas. */
function parts(value: string | undefined, pattern = /^\d{1,15}(\.\d{1,15})?\s*%?$/): string[] {
  const texts = (value ?? '').split(',').map((text) => text.trim());
  return texts.filter((text) => pattern.test(text)).slice(0, 16);
}

const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 1_800_000;

export type Backoff = ReturnType<typeof createBackoff>;

/** Closed after a failure for one minute, doubled for each further failure up to 30, and while the quota defers. */
export function createBackoff(clock: Clock, quota: ModelQuota) {
  let pauseMs = 0;
  let openAtMs = 0;
  const isSpent = (sessionId?: string): boolean => quota.decide(sessionId).kind === 'spent';
  const waitMs = (): number => {
    const now = clock.now();
    const decision = quota.decide();
    const quotaMs = decision.kind === 'defer' ? decision.untilMs : 0;
    // If the clock was set back, wait no longer than the pause itself.
    if (openAtMs > now + pauseMs) openAtMs = now + pauseMs;
    return Math.max(0, Math.max(openAtMs, quotaMs) - now);
  };
  return {
    isOpen: (sessionId?: string): boolean => waitMs() === 0 && !isSpent(sessionId),
    /** Whether waiting is useless for this session. */
    isSpent,
    /** 0 when it is open. */
    waitMs,
    /** '' when it is open. */
    because(sessionId?: string): string {
      const decision = quota.decide(sessionId);
      if (decision.kind !== 'allow') return decision.because;
      return waitMs() === 0 ? '' : 'the model failed; waiting before the next attempt';
    },
    failed(): void {
      pauseMs = pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
      openAtMs = clock.now() + pauseMs;
    },
    succeeded(): void {
      pauseMs = 0;
      openAtMs = 0;
    },
  };
}

/** Decides whether our own model calls may run now and counts their usage across restarts. */
export type Budget = Awaited<ReturnType<typeof openBudget>>;

const Kept = z
  .strictObject({
    /** `YYYY-MM-DD`, local. */
    day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
    calls: amount,
    tokens: amount,
    cost_usd: amount,
    limits: z.array(QuotaWindow).max(100),
    /** Least recently used first. */
    sessions: z.array(SessionUsage).default([]),
  })
  .transform(({ cost_usd: costUsd, limits: windows, ...rest }) => ({ ...rest, costUsd, windows }));
export type StoredUsage = z.infer<typeof Kept>;

export type UsageStore = ReturnType<typeof createUsageFile>;

interface BudgetParts {
  readonly rule: QuotaRule;
  readonly store: UsageStore;
  readonly getRecentCost?: () => RecentCost;
  readonly clock: Clock;
  readonly log: Log;
}

export async function openBudget({ rule, store, getRecentCost, clock, log }: BudgetParts) {
  const kept = await store.load();
  const ledger = createUsageCounter(clock.now, kept);
  const sessions = new LruMap<string, SessionUsage>(MOST_SESSIONS);
  for (const each of kept?.sessions ?? []) sessions.set(each.sessionId, each);
  let windows = kept?.windows ?? [];
  let isDirty = false;
  let saving: Promise<void> | null = null;

  const getTokens = (sessionId = ''): number => sessions.peek(sessionId)?.tokens ?? 0;

  function decide(sessionId?: string): QuotaDecision {
    const recent = getRecentCost?.() ?? null;
    const used = { tokensToday: ledger.today().tokens, tokensOfSession: getTokens(sessionId), recent };
    return decideQuota(windows, { rule, ...used, nowMs: clock.now() });
  }

  /** One write at a time; changes during a write go into the next one. */
  function save(): void {
    isDirty = true;
    saving ??= write();
  }

  async function write(): Promise<void> {
    while (isDirty) {
      isDirty = false;
      try {
        await store.save({ ...ledger.today(), windows, sessions: [...sessions.values()] });
      } catch (error) {
        log.warn("could not write today's model usage; a restart would lose it", { error });
      }
    }
    saving = null;
  }

  return {
    /** Reads the rate-limit headers of an API response. Synchronous; never throws. */
    observeLimits(answer: RateLimitResponse): void {
      const before = decide();
      windows = mergeQuota(windows, readQuota(answer, clock.now()), clock.now());
      const after = decide();
      if (after.kind === before.kind) return;
      log.info(after.kind === 'allow' ? 'model calls resume' : 'model calls wait', { ...after });
      save();
    },
    record(spent: Spent): void {
      ledger.record(spent);
      const { sessionId = '', tokens } = spent;
      if (sessionId !== '')
        sessions.set(sessionId, { sessionId, tokens: getTokens(sessionId) + tokens, atMs: clock.now() });
      save();
    },
    today: ledger.today,
    decide,
    /** Limits that have not reset, as last reported. */
    limits: (): readonly QuotaWindow[] => mergeQuota(windows, [], clock.now()),
    /** Sessions that took tokens within a day, newest first. */
    recentSessions(): (SessionUsage & { readonly isSpent: boolean })[] {
      const sinceMs = clock.now() - DAY_MS;
      const recent = [...sessions.values()].filter(({ atMs }) => atMs >= sinceMs).reverse();
      return recent.map((each) => ({ ...each, isSpent: decide(each.sessionId).kind === 'spent' }));
    },
    /** Resolves once everything is on disk. */
    close: async (): Promise<void> => void (await saving),
  };
}

type Usage = Readonly<typeof NOTHING>;

type Spent = Usage & { readonly sessionId?: string | undefined };

export type UsageCounter = ReturnType<typeof createUsageCounter>;

const NOTHING = { calls: 0, tokens: 0, costUsd: 0 };

export function createUsageCounter(now: () => number, kept: (Usage & { readonly day: string }) | null = null) {
  let { day, ...used } = kept ?? { day: '', ...NOTHING };
  const turn = (): void => {
    const today = localDay(now());
    if (today !== day) [day, used] = [today, NOTHING];
  };
  return {
    record({ calls, tokens, costUsd }: Spent): void {
      turn();
      used = { calls: used.calls + calls, tokens: used.tokens + tokens, costUsd: used.costUsd + costUsd };
    },
    today() {
      turn();
      return { day, ...used };
    },
  };
}

/** Stores the model usage of today and of each session, and the last reported limits. An unreadable file counts as empty. */
export function createUsageFile(file: string, log: Log) {
  return {
    async load(): Promise<StoredUsage | null> {
      try {
        return Kept.parse(JSON.parse(await readFile(file, 'utf8')));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          log.warn("could not read today's model usage; counting from zero", { file, error });
        return null;
      }
    },
    save: ({ costUsd, windows, ...rest }: StoredUsage): Promise<void> =>
      writePrivateFile(file, `${JSON.stringify({ ...rest, cost_usd: costUsd, limits: windows })}\n`),
  };
}
