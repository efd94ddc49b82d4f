/** What one model accepts and bills. Written from the vendor's documentation; the product has a table of its own. */
export interface ModelRules {
  /** Only blocks of the same family read each other's signatures. */
  readonly family: string;
  readonly systemMessages: boolean;
  readonly bindsThinking: boolean;
  readonly thinking: 'adaptive' | 'manual' | 'both' | 'none';
  /** Earlier turns' thinking counts; other models count the running turn's only. */
  readonly keepsThinking: boolean;
  readonly prefill: boolean;
  readonly contextTokens: number;
  readonly minCacheTokens: number;
  /** Price of a cached token in uncached ones. */
  readonly cacheRead: number;
}

/** Price of a token written to the cache in uncached ones: prompt-caching page, Aug 2026. */
export const CACHE_WRITE = { '5m': 1.25, '1h': 2 } as const;

const UNKNOWN: ModelRules = {
  family: 'unknown',
  systemMessages: false,
  bindsThinking: true,
  thinking: 'both',
  keepsThinking: true,
  prefill: false,
  contextTokens: 200_000,
  minCacheTokens: 4_096,
  cacheRead: 0.025,
};

const known = new Map<string, ModelRules>();

export function getRules(model: string): ModelRules {
  const found = known.get(model) ?? readName(model.toLowerCase());
  known.set(model, found);
  return found;
}

function readName(name: string): ModelRules {
  const legacy = /\b3(?:[-.]([57]))?-(haiku|sonnet|opus)\b/.exec(name);
  if (legacy) return build(String(legacy[2]), 3 + Number(legacy[1] ?? 0) / 10);
  // A date behind the name is no minor version.
  const match = /\b(fable|mythos|opus|sonnet|haiku)-(\d)(?:[-.](\d)(?!\d))?(?!\d)/.exec(name);
  if (!match) return UNKNOWN;
  return build(String(match[1]).replace('mythos', 'fable'), Number(match[2]) + Number(match[3] ?? 0) / 10);
}

function build(tier: string, version: number): ModelRules {
  return {
    family: `${tier} ${version}`,
    systemMessages: version >= 5 || (tier === 'opus' && version === 4.8),
    bindsThinking: version >= (tier === 'fable' ? 5.1 : 5.5),
    thinking: getThinking(tier, version),
    keepsThinking: version >= 4.6 || (tier === 'opus' && version === 4.5),
    prefill: version < 4.6,
    contextTokens: version >= 4.6 ? 1_000_000 : 200_000,
    minCacheTokens: getMinCacheTokens(tier, version),
    cacheRead: tier === 'fable' && version > 5 ? 0.025 : tier !== 'haiku' && version >= 5.5 ? 0.05 : 0.1,
  };
}

function getThinking(tier: string, version: number): ModelRules['thinking'] {
  if (version >= 4.7) return 'adaptive';
  if (version === 4.6) return 'both';
  return version >= 4 || (tier === 'sonnet' && version === 3.7) ? 'manual' : 'none';
}

function getMinCacheTokens(tier: string, version: number): number {
  if (tier === 'haiku') return version < 4 ? 2_048 : 4_096;
  if (tier === 'fable' || version >= 5.5) return 512;
  if (tier === 'sonnet') return 1_024;
  return { 5: 512, 4.7: 2_048, 4.6: 4_096, 4.5: 4_096 }[version] ?? 1_024;
}
