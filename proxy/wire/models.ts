/** What one model family accepts and costs. Prices in USD per million tokens, multipliers relative to `inputPrice`. */
export interface ModelTraits {
  readonly family: string;
  /** Takes `role: "system"` inside `messages`. */
  readonly systemMessages: boolean;
  /** Preserved thinking: signatures are bound to system, tools and every earlier message. */
  readonly bindsThinking: boolean;
  readonly thinking: 'adaptive' | 'manual' | 'both' | 'none';
  /** Keeps the thinking of earlier turns in context; the others keep the running turn's only. */
  readonly keepsThinking: boolean;
  /** A trailing assistant message is continued instead of refused. */
  readonly prefill: boolean;
  /** Below this many tokens a prefix is silently not cached. */
  readonly minCacheTokens: number;
  readonly cacheRead: number;
  readonly cacheWrite5m: number;
  readonly cacheWrite1h: number;
  readonly inputPrice: number;
  readonly outputPrice: number;
  readonly contextTokens: number;
}

type Row = readonly [
  family: string,
  match: RegExp,
  flags: string,
  thinking: ModelTraits['thinking'],
  minCacheTokens: number,
  cacheRead: number,
  inputPrice: number,
  outputPrice: number,
  contextTokens: number,
];

const M = 1_000_000;
const K200 = 200_000;

/**
 * Flags: `s` system messages, `b` binds thinking, `k` keeps thinking, `p` prefill.
 *
 * Sources, all read up to Oct 2026: prices and windows, platform.claude.com models overview; minimum lengths, its
 * prompt-caching page; binding, its preserved-thinking/prefix-checks page; system messages, its
 * mid-conversation-system-messages page, and anthropics/claude-code#61242 (refused on Opus 4.7, May 2026).
 */
const ROWS: readonly Row[] = [
  // Read 0.025: price trackers, Sep 2026, not confirmed; 5.2 assumed alike (prefix-checks page lists it, Oct 2026).
  ['fable-5.1', /\b(?:fable|mythos)-5[-.][1-9]\b/, 'sbk', 'adaptive', 512, 0.025, 10, 50, M],
  // Models overview, Aug 2026: $10/$50; minimum 512, prompt-caching page, Aug 2026.
  ['fable-5', /\b(?:fable|mythos)-5\b/, 'sk', 'adaptive', 512, 0.1, 10, 50, M],
  // Model page, Sep 2026: $4/$20, cache read $0.20 (0.05).
  ['opus-5.5', /\bopus-5[-.]5\b/, 'sbk', 'adaptive', 512, 0.05, 4, 20, M],
  // Model page, Jul 2026: $5/$25, cache read $0.50.
  ['opus-5', /\bopus-5\b/, 'sk', 'adaptive', 512, 0.1, 5, 25, M],
  // Models overview, Sep 2026: $2/$10; read 0.05, prompt-caching page, Sep 2026.
  ['sonnet-5.5', /\bsonnet-5[-.]5\b/, 'sbk', 'adaptive', 512, 0.05, 2, 10, M],
  // $2/$10, Aug 2026. The docs leave it out of the system-message list, Claude Code 2.1.197 sends them (Nov 2026).
  ['sonnet-5', /\bsonnet-5\b/, 'sk', 'adaptive', 1024, 0.1, 2, 10, M],
  // Models overview, Oct 2026: from $0.10/$0.50; minimum length not published: the other Haiku's is taken.
  ['haiku-5.5', /\bhaiku-5[-.]5\b/, 'sbk', 'adaptive', 4096, 0.1, 0.1, 0.5, M],
  // Minimum 1024, prompt-caching page, Aug 2026; 1M window seen as the default in Claude Code 2.1.197, Nov 2026.
  ['opus-4.8', /\bopus-4[-.]8\b/, 'sk', 'adaptive', 1024, 0.1, 5, 25, M],
  // Minimum 2048, prompt-caching page, Aug 2026; manual thinking refused from 4.7 on.
  ['opus-4.7', /\bopus-4[-.]7\b/, 'k', 'adaptive', 2048, 0.1, 5, 25, M],
  // Both thinking modes, no prefill from 4.6 on: platform errors page, Aug 2026.
  ['opus-4.6', /\bopus-4[-.]6\b/, 'k', 'both', 4096, 0.1, 5, 25, M],
  ['sonnet-4.6', /\bsonnet-4[-.]6\b/, 'k', 'both', 1024, 0.1, 3, 15, M],
  // Keeps thinking from Opus 4.5 on: thinking page, Aug 2026.
  ['opus-4.5', /\bopus-4[-.]5\b/, 'kp', 'manual', 4096, 0.1, 5, 25, K200],
  ['sonnet-4.5', /\bsonnet-4[-.]5\b/, 'p', 'manual', 1024, 0.1, 3, 15, K200],
  ['haiku-4.5', /\bhaiku-4[-.]5\b/, 'p', 'manual', 4096, 0.1, 1, 5, K200],
  // Opus 4 and 4.1, prices page, 2025.
  ['opus-4', /\bopus-4\b/, 'p', 'manual', 1024, 0.1, 15, 75, K200],
  ['sonnet-4', /\bsonnet-4\b/, 'p', 'manual', 1024, 0.1, 3, 15, K200],
  // Claude 3.7: manual thinking; the other 3.x: none. Prices page, 2025.
  ['claude-3.7', /\b3[-.]7\b/, 'p', 'manual', 1024, 0.1, 3, 15, K200],
  ['claude-3-haiku', /\b3(?:[-.]5)?-haiku\b/, 'p', 'none', 2048, 0.1, 0.8, 4, K200],
  ['claude-3', /\bclaude-3\b/, 'p', 'none', 1024, 0.1, 3, 15, K200],
];

/** For a name no row knows: whatever could make a rewrite fail or lose is assumed, nothing sent is ruled out. */
const UNKNOWN = build(['unknown', /$^/, 'sbk', 'both', 4096, 0.1, 5, 25, K200]);

const BUILT = ROWS.map((row) => ({ match: row[1], traits: build(row) }));

/** The traits of a model id as requests carry it (`claude-opus-4-8`, dated, with `[1m]` or a vendor prefix). */
export function modelTraits(model: string): ModelTraits {
  const name = model.toLowerCase();
  return BUILT.find((entry) => entry.match.test(name))?.traits ?? UNKNOWN;
}

function build([
  family,
  ,
  flags,
  thinking,
  minCacheTokens,
  cacheRead,
  inputPrice,
  outputPrice,
  window,
]: Row): ModelTraits {
  return {
    family,
    systemMessages: flags.includes('s'),
    bindsThinking: flags.includes('b'),
    thinking,
    keepsThinking: flags.includes('k'),
    prefill: flags.includes('p'),
    minCacheTokens,
    cacheRead,
    // One rule for every model: prompt-caching page, Aug 2026.
    cacheWrite5m: 1.25,
    cacheWrite1h: 2,
    inputPrice,
    outputPrice,
    contextTokens: window,
  };
}
