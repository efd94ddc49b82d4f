import { canonical, isObject, type Json } from './json.ts';
import { CACHE_WRITE, getRules } from './models.ts';
import { getDigest, type Item } from './stream.ts';

/** Prompt tokens of one request, as the API reports them. */
export interface PromptUsage {
  /** Behind the last breakpoint, or uncached. */
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
}

export interface CacheRequest {
  readonly account: string;
  readonly model: string;
  readonly body: Json;
  /** What the model sees. */
  readonly items: readonly Item[];
  /** Start of the request; TTLs run from here. */
  readonly atMs: number;
}

export interface PromptCache {
  /** Bills the request and takes its writes in. */
  bill(request: CacheRequest): PromptUsage;
}

// Blocks looked at per breakpoint, itself included: prompt-caching page, Aug 2026.
const LOOKBACK = 20;
const TTL_MS: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 };

interface Entry {
  readonly ttl: string;
  expiresAtMs: number;
}

/** Exact prefixes over tools, system, messages; one per model and account. */
export function createPromptCache(): PromptCache {
  const entries = new Map<string, Entry>();
  const live = (key: string | undefined, atMs: number) => {
    const entry = key === undefined ? undefined : entries.get(key);
    return entry && entry.expiresAtMs > atMs ? entry : undefined;
  };
  return {
    bill(request) {
      const { atMs } = request;
      const { positions, breakpoints } = layOut(request);
      const total = positions.at(-1)?.tokens ?? 0;
      const read = findHit(positions, breakpoints, (key) => live(key, atMs) !== undefined);
      refresh(positions, breakpoints, read, (key) => live(key, atMs), atMs);
      const written = { '5m': 0, '1h': 0 };
      let done = positions[read]?.tokens ?? 0;
      const { minCacheTokens } = getRules(request.model);
      for (const { at, ttl } of breakpoints) {
        const position = positions[at];
        if (!position || position.tokens < minCacheTokens) continue;
        if (!live(position.key, atMs)) entries.set(position.key, { ttl, expiresAtMs: atMs + ttlMs(ttl) });
        if (at <= read) continue;
        written[ttl === '1h' ? '1h' : '5m'] += position.tokens - done;
        done = position.tokens;
      }
      return {
        input: total - done,
        cacheRead: positions[read]?.tokens ?? 0,
        cacheWrite5m: written['5m'],
        cacheWrite1h: written['1h'],
      };
    },
  };
}

/** Prompt cost in tokens of uncached input. */
export function promptCost(model: string, usage: PromptUsage): number {
  return (
    usage.input +
    usage.cacheRead * getRules(model).cacheRead +
    usage.cacheWrite5m * CACHE_WRITE['5m'] +
    usage.cacheWrite1h * CACHE_WRITE['1h']
  );
}

interface Position {
  readonly key: string;
  /** Cumulative. */
  readonly tokens: number;
}

interface Breakpoint {
  readonly at: number;
  readonly ttl: string;
}

function layOut(request: CacheRequest) {
  const { items } = request;
  const positions: Position[] = [];
  const breakpoints: Breakpoint[] = [];
  let key = getDigest(`${request.account}\n${request.model}\n${canonical(request.body.speed ?? null)}`);
  let tokens = 0;
  let inMessages = false;
  for (const [at, item] of items.entries()) {
    if (item.part === 'messages' && !inMessages) {
      inMessages = true;
      key = getDigest(key + settings(request));
    }
    key = getDigest(key + item.part + item.digest);
    tokens += item.tokens;
    positions.push({ key, tokens });
    if (item.ttl !== null) breakpoints.push({ at, ttl: item.ttl });
  }
  const auto = isObject(request.body.cache_control) ? request.body.cache_control : null;
  const last = items.length - 1;
  if (auto && breakpoints.at(-1)?.at !== last) {
    breakpoints.push({ at: last, ttl: typeof auto.ttl === 'string' ? auto.ttl : '5m' });
  }
  return { positions, breakpoints };
}

/** What invalidates the messages but neither tools nor system: prompt-caching page, Aug 2026. */
function settings({ body, items }: CacheRequest): string {
  const effort = isObject(body.output_config) ? body.output_config.effort : null;
  const images = items.some((item) => holdsImage(item.block));
  return canonical([body.thinking ?? null, body.tool_choice ?? null, effort ?? null, images]);
}

function holdsImage(block: Json): boolean {
  if (block.type === 'image') return true;
  return Array.isArray(block.content) && block.content.some((part) => isObject(part) && part.type === 'image');
}

function findHit(positions: readonly Position[], breakpoints: readonly Breakpoint[], isLive: (key: string) => boolean) {
  for (const { at } of breakpoints.toReversed()) {
    for (let back = at; back >= 0 && back > at - LOOKBACK; back -= 1) {
      const key = positions[back]?.key;
      if (key !== undefined && isLive(key)) return back;
    }
  }
  return -1;
}

function refresh(
  positions: readonly Position[],
  breakpoints: readonly Breakpoint[],
  read: number,
  getEntry: (key: string | undefined) => Entry | undefined,
  atMs: number,
): void {
  for (const at of [read, ...breakpoints.map((breakpoint) => breakpoint.at)]) {
    if (at > read) continue;
    const entry = getEntry(positions[at]?.key);
    if (entry) entry.expiresAtMs = atMs + ttlMs(entry.ttl);
  }
}

function ttlMs(ttl: string): number {
  return TTL_MS[ttl] ?? 300_000;
}
