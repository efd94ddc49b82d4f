/** What one model family costs, in USD per million tokens; cache prices relative to `inputPrice`. */
export interface ModelPrices {
  readonly inputPrice: number;
  readonly outputPrice: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  /** Shorter prefixes are silently not cached. */
  readonly minCacheTokens: number;
  readonly contextTokens: number;
  /** Source and date of the row. */
  readonly source: string;
}

type Row = readonly [
  family: string,
  inputPrice: number,
  outputPrice: number,
  cacheRead: number,
  minCacheTokens: number,
  contextTokens: number,
  source: string,
];

const M = 1_000_000;
const K200 = 200_000;

const ROWS: readonly Row[] = [
  ['fable-5.1', 10, 50, 0.025, 512, M, 'price trackers, Sep 2026, not confirmed; 5.2 assumed alike'],
  ['fable-5', 10, 50, 0.1, 512, M, 'models overview and prompt-caching page, Aug 2026'],
  ['opus-5.5', 4, 20, 0.05, 512, M, 'model page, Sep 2026'],
  ['opus-5', 5, 25, 0.1, 512, M, 'model page, Jul 2026'],
  ['sonnet-5.5', 2, 10, 0.05, 512, M, 'models overview and prompt-caching page, Sep 2026'],
  ['sonnet-5', 2, 10, 0.1, 1024, M, 'models overview, Aug 2026'],
  ['haiku-5.5', 0.1, 0.5, 0.1, 4096, M, 'models overview, Oct 2026; minimum not published, the other Haiku’s taken'],
  ['opus-4.8', 5, 25, 0.1, 1024, M, 'prompt-caching page, Aug 2026; window as in Claude Code 2.1.197, Nov 2026'],
  ['opus-4.7', 5, 25, 0.1, 2048, M, 'prompt-caching page, Aug 2026'],
  ['opus-4.6', 5, 25, 0.1, 4096, M, 'models overview and prompt-caching page, Aug 2026'],
  ['sonnet-4.6', 3, 15, 0.1, 1024, M, 'models overview and prompt-caching page, Aug 2026'],
  ['opus-4.5', 5, 25, 0.1, 4096, K200, 'models overview and prompt-caching page, Aug 2026'],
  ['sonnet-4.5', 3, 15, 0.1, 1024, K200, 'models overview and prompt-caching page, Aug 2026'],
  ['haiku-4.5', 1, 5, 0.1, 4096, K200, 'models overview and prompt-caching page, Aug 2026'],
  ['opus-4', 15, 75, 0.1, 1024, K200, 'prices page, 2025; Opus 4 and 4.1'],
  ['sonnet-4', 3, 15, 0.1, 1024, K200, 'prices page, 2025'],
  ['claude-3.7', 3, 15, 0.1, 1024, K200, 'prices page, 2025'],
  ['claude-3-haiku', 0.8, 4, 0.1, 2048, K200, 'prices page, 2025'],
  ['claude-3', 3, 15, 0.1, 1024, K200, 'prices page, 2025'],
];

/** For unknown families: common prices and the smallest context window. */
const UNKNOWN: Row = ['unknown', 5, 25, 0.1, 4096, K200, 'assumed: the commonest prices, the smallest window'];

const BUILT = new Map([...ROWS, UNKNOWN].map((row) => [row[0], build(row)]));

/** Prices of a family as `modelTraits` names it. */
export function findPrices(family: string): ModelPrices {
  return BUILT.get(family) ?? build(UNKNOWN);
}

function build([, inputPrice, outputPrice, cacheRead, minCacheTokens, contextTokens, source]: Row): ModelPrices {
  // The same for every model: prompt-caching page, Aug 2026.
  const writes = { cacheWrite5m: 1.25, cacheWrite1h: 2 };
  return { inputPrice, outputPrice, cacheRead, ...writes, minCacheTokens, contextTokens, source };
}
