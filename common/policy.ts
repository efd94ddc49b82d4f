/** Whose memories may be recalled, narrowest first. */
export const SCOPES = ['session', 'project', 'all'] as const;
export type Scope = (typeof SCOPES)[number];

/** What memory may do, most first. `private`: recall and trim, but take nothing in. `off`: add and take nothing. */
export const MODES = ['on', 'private', 'off'] as const;
export type Mode = (typeof MODES)[number];

/** Several rules apply together; each can only restrict. */
export interface PolicyRule {
  readonly mode: Mode;
  readonly scope: Scope;
}

/** What holds for a request. A plan in force is replayed whatever it says: anything else would be refused. */
export interface Consent {
  /** Its turn may be taken in. */
  readonly captures: boolean;
  /** Something may be cut or added that is not in the plan yet. */
  readonly adds: boolean;
  readonly scope: Scope;
}

export function effectivePolicy(rules: readonly PolicyRule[]): Consent {
  const mode = leastOf(
    MODES.toReversed(),
    rules.map((rule) => rule.mode),
  );
  const scope = leastOf(
    SCOPES,
    rules.map((rule) => rule.scope),
  );
  return { captures: mode === 'on', adds: mode !== 'off', scope };
}

export function modeOf({ captures, adds }: Pick<Consent, 'captures' | 'adds'>): Mode {
  if (captures) return 'on';
  return adds ? 'private' : 'off';
}

/** The first of `order` that was said; its last where nothing was. */
function leastOf<T>(order: readonly T[], said: readonly T[]): T {
  return order.find((one) => said.includes(one)) ?? (order.at(-1) as T);
}
