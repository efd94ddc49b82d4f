import { createHash } from 'node:crypto';
import { LruMap } from '../../common/map.ts';
import type { Prompt } from './prompt-usage.ts';

/** Prompt tokens by price. */
export interface Bill {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
}

/** A cached prefix. */
export interface PrefixEntry {
  readonly key: string;
  readonly ttl: string;
  readonly expiresAtMs: number;
}

export interface BillRequest {
  /** Start of the request, from which TTLs run. */
  readonly atMs: number;
  /** Billed tokens per estimated token. */
  readonly scale: number;
  /** Shorter prefixes are not cached. */
  readonly minTokens: number;
}

/**
 * Models the API's prompt cache: exact prefixes, written at breakpoints, found by looking back at most 20 blocks from a
 * breakpoint, and valid for their TTL from the start of the request that last used them.
 *
 * Source: platform.claude.com build-with-claude/prompt-caching, Aug 2026.
 */
export interface PrefixCache {
  bill(prompt: Prompt, request: BillRequest): { readonly bill: Bill; readonly touched: readonly PrefixEntry[] };
  restore(entry: PrefixEntry): void;
}

const LOOKBACK = 20;
const TTL_MS: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 };
const MAX_ENTRIES = 20_000;

interface Position {
  readonly key: string;
  /** Cumulative. */
  readonly tokens: number;
  readonly blocks: number;
  readonly ttl: string | null;
}

export function createPrefixCache(): PrefixCache {
  const entries = new LruMap<string, PrefixEntry>(MAX_ENTRIES);
  const put = (entry: PrefixEntry): PrefixEntry => {
    entries.set(entry.key, entry);
    return entry;
  };
  return {
    restore: put,
    bill(prompt, { atMs, scale, minTokens }) {
      const positions = listPositions(prompt);
      const live = (at: number): PrefixEntry | undefined => {
        const entry = entries.peek(positions[at]?.key ?? '');
        return entry !== undefined && entry.expiresAtMs > atMs ? entry : undefined;
      };
      const breakpoints = positions.flatMap(({ ttl }, at) => (ttl === null ? [] : [at]));
      const read = findLongestRead(positions, breakpoints, (at) => live(at) !== undefined);
      const tokensAt = (at: number): number => scale * (positions[at]?.tokens ?? 0);
      const touched: PrefixEntry[] = [];
      const written = { '5m': 0, '1h': 0 };
      let done = tokensAt(read);
      for (const at of new Set([...(read < 0 ? [] : [read]), ...breakpoints])) {
        const { key, ttl } = positions[at] as Position;
        const known = live(at);
        const lives = known?.ttl ?? ttl ?? '5m';
        if (tokensAt(at) < minTokens) continue;
        touched.push(put({ key, ttl: lives, expiresAtMs: atMs + (TTL_MS[lives] ?? 300_000) }));
        if (at <= read) continue;
        written[ttl === '1h' ? '1h' : '5m'] += tokensAt(at) - done;
        done = tokensAt(at);
      }
      const input = tokensAt(positions.length - 1) - done;
      const bill = { input, cacheRead: tokensAt(read), cacheWrite5m: written['5m'], cacheWrite1h: written['1h'] };
      return { bill, touched };
    },
  };
}

function listPositions({ seed, settings, head, messages, autoTtl }: Prompt): Position[] {
  const positions: Position[] = [];
  const hasImage = messages.some((message) => message.hasImage);
  let key = seed;
  let tokens = 0;
  let blocks = 0;
  for (const [at, one] of [...head, ...messages].entries()) {
    if (at === head.length) key = `${key}\n${settings}\n${hasImage}`;
    key = createHash('sha256').update(key).update(one.digest).digest('base64');
    tokens += one.tokens;
    blocks += one.blocks;
    const isLast = at === head.length + messages.length - 1;
    positions.push({ key, tokens, blocks, ttl: one.ttl ?? (isLast ? autoTtl : null) });
  }
  return positions;
}

/** Index of the longest cached prefix; -1 without one. */
function findLongestRead(
  positions: readonly Position[],
  breakpoints: readonly number[],
  isLive: (at: number) => boolean,
): number {
  for (const from of breakpoints.toReversed()) {
    const end = positions[from]?.blocks ?? 0;
    for (let at = from; at >= 0 && end - (positions[at]?.blocks ?? 0) < LOOKBACK; at -= 1) {
      if (isLive(at)) return at;
    }
  }
  return -1;
}
