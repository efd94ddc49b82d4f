type Row = readonly [
  family: string,
  /** As in `claude-NAME`, separated by spaces. */
  names: string,
  flags: string,
  thinking: 'adaptive' | 'manual' | 'both' | 'none',
  inputPrice: number,
  outputPrice: number,
  cacheRead: number,
  minCacheTokens: number,
  contextTokens: number,
  source: string,
];

const M = 1_000_000;
const K200 = 200_000;
const PAGES = 'models overview and prompt-caching page';
const TRACKERS = 'price trackers, Sep 2026, not confirmed';

/**
 * Flags: `s` system messages, `b` binds thinking, `p` prefill.
 *
 * Sources, all read up to Oct 2026: binding, the preserved-thinking/prefix-checks page of platform.claude.com; system
 * messages, its mid-conversation-system-messages page, and anthropics/claude-code#61242 (refused on Opus 4.7, May
 * 2026); thinking modes, its thinking page.
 */
const ROWS: readonly Row[] = [
  // 5.2 as 5.1: the prefix-checks page lists it, Oct 2026. Its prices are assumed to be those of 5.1.
  ['fable-5.1', 'fable-5-1 fable-5-2 mythos-5-1 mythos-5-2', 'sb', 'adaptive', 10, 50, 0.025, 512, M, TRACKERS],
  ['fable-5', 'fable-5 mythos-5', 's', 'adaptive', 10, 50, 0.1, 512, M, `${PAGES}, Aug 2026`],
  ['opus-5.5', 'opus-5-5', 'sb', 'adaptive', 4, 20, 0.05, 512, M, 'model page, Sep 2026'],
  ['opus-5', 'opus-5', 's', 'adaptive', 5, 25, 0.1, 512, M, 'model page, Jul 2026'],
  ['sonnet-5.5', 'sonnet-5-5', 'sb', 'adaptive', 2, 10, 0.05, 512, M, `${PAGES}, Sep 2026`],
  // The docs leave it out of the system-message list, Claude Code 2.1.197 sends them (Nov 2026).
  ['sonnet-5', 'sonnet-5', 's', 'adaptive', 2, 10, 0.1, 1024, M, 'models overview, Aug 2026'],
  // The minimum is not published: that of the other Haiku.
  ['haiku-5.5', 'haiku-5-5', 'sb', 'adaptive', 0.1, 0.5, 0.1, 4096, M, 'models overview, Oct 2026'],
  // The window as in Claude Code 2.1.197, Nov 2026.
  ['opus-4.8', 'opus-4-8', 's', 'adaptive', 5, 25, 0.1, 1024, M, 'prompt-caching page, Aug 2026'],
  // Manual thinking refused from 4.7 on.
  ['opus-4.7', 'opus-4-7', '', 'adaptive', 5, 25, 0.1, 2048, M, 'prompt-caching page, Aug 2026'],
  // Both thinking modes, no prefill from 4.6 on: platform errors page, Aug 2026.
  ['opus-4.6', 'opus-4-6', '', 'both', 5, 25, 0.1, 4096, M, `${PAGES}, Aug 2026`],
  ['sonnet-4.6', 'sonnet-4-6', '', 'both', 3, 15, 0.1, 1024, M, `${PAGES}, Aug 2026`],
  ['opus-4.5', 'opus-4-5', 'p', 'manual', 5, 25, 0.1, 4096, K200, `${PAGES}, Aug 2026`],
  ['sonnet-4.5', 'sonnet-4-5', 'p', 'manual', 3, 15, 0.1, 1024, K200, `${PAGES}, Aug 2026`],
  ['haiku-4.5', 'haiku-4-5', 'p', 'manual', 1, 5, 0.1, 4096, K200, `${PAGES}, Aug 2026`],
  ['opus-4', 'opus-4 opus-4-0 opus-4-1', 'p', 'manual', 15, 75, 0.1, 1024, K200, 'prices page, 2025; Opus 4 and 4.1'],
  ['sonnet-4', 'sonnet-4 sonnet-4-0', 'p', 'manual', 3, 15, 0.1, 1024, K200, 'prices page, 2025'],
  // Claude 3.7: manual thinking; the other 3.x: none.
  ['claude-3.7', '3-7-sonnet', 'p', 'manual', 3, 15, 0.1, 1024, K200, 'prices page, 2025'],
  ['claude-3-haiku', '3-haiku 3-5-haiku', 'p', 'none', 0.8, 4, 0.1, 2048, K200, 'prices page, 2025'],
  ['claude-3', '3-opus 3-sonnet 3-5-sonnet', 'p', 'none', 3, 15, 0.1, 1024, K200, 'prices page, 2025'],
];

/** For unknown models, what could make a rewrite fail or lose: the strictest rules, the cheapest cache. */
const UNKNOWN: Row = ['unknown', '', 'b', 'both', 5, 25, 0.025, 4096, K200, 'assumed: common prices, cheapest cache'];

const UNKNOWN_TRAITS = build(UNKNOWN);
const BY_NAME = new Map(
  ROWS.flatMap((row) => {
    const traits = build(row);
    return row[1].split(' ').map((name) => [name, traits]);
  }),
);
const MODEL_ID = /(?:^|[./])claude-([a-z0-9.-]{1,60}?)(?:-latest|[-@]\d{8})?(?:-v\d+(?::\d+)?)?(?:\[\w+\])?$/;

/** Takes dated ids, `[1m]` and vendor prefixes. A version that is not in the table is unknown. */
export function findModelTraits(model: string) {
  return BY_NAME.get(MODEL_ID.exec(model.toLowerCase())?.[1]?.replaceAll('.', '-') ?? '') ?? UNKNOWN_TRAITS;
}

/** What a model family accepts and costs: USD per million tokens, cache prices relative to `inputPrice`. */
function build([family, , flags, thinking, inputPrice, outputPrice, ...rest]: Row) {
  const [cacheRead, minCacheTokens, contextTokens, source] = rest;
  return {
    family,
    /** Accepts `role: "system"` inside `messages`. */
    systemMessages: flags.includes('s'),
    /** Binds thinking signatures to system, tools and every earlier message. */
    bindsThinking: flags.includes('b'),
    thinking,
    /** Continues a trailing assistant message instead of refusing it. */
    prefill: flags.includes('p'),
    inputPrice,
    outputPrice,
    cacheRead,
    // The same for every model: prompt-caching page, Aug 2026.
    cacheWrite5m: 1.25,
    cacheWrite1h: 2,
    /** Shorter prefixes are silently not cached. */
    minCacheTokens,
    contextTokens,
    /** Source and date of the prices. */
    source,
  };
}
