/** Whose memories may be recalled, narrowest first. */
export const SCOPES = ['session', 'project', 'all'] as const;
export type Scope = (typeof SCOPES)[number];

/** What memory may do. `private`: recall and trim without capture. `off`: nothing. */
export const MODES = ['on', 'private', 'off'] as const;
export type Mode = (typeof MODES)[number];

/** Several rules apply together; each can only restrict, so the narrowest mode and scope apply. */
export interface PolicyRule {
  readonly mode: Mode;
  readonly scope: Scope;
}

/** What applies to a request. A plan in force is replayed in any mode: upstream would refuse anything else. */
export interface EffectivePolicy {
  readonly captures: boolean;
  /** The plan may be extended: text trimmed or added. */
  readonly adds: boolean;
  readonly scope: Scope;
}

export function effectivePolicy(rules: readonly PolicyRule[]): EffectivePolicy {
  const mode = MODES.findLast((each) => rules.some((rule) => rule.mode === each)) ?? 'on';
  const scope = SCOPES.find((each) => rules.some((rule) => rule.scope === each)) ?? 'all';
  return { captures: mode === 'on', adds: mode !== 'off', scope };
}

export function getMode({ captures, adds }: Pick<EffectivePolicy, 'captures' | 'adds'>): Mode {
  if (captures) return 'on';
  return adds ? 'private' : 'off';
}
