/** A cut that has not paid off yet. */
export interface Investment {
  /** Its immediate cost in USD. */
  readonly usd: number;
  /** Requests within which the cut should pay off, and how many of them are left. */
  readonly horizon: number;
  readonly left: number;
}

/** The cost of a conversation compared with its untouched cost. */
export interface Balance {
  readonly untouchedUsd: number;
  /** Negative when the conversation cost more. */
  readonly savedUsd: number;
  readonly investments: readonly Investment[];
  /** Consecutive requests that ended with a net loss. */
  readonly streak: number;
}

export interface BalanceChange {
  readonly untouchedUsd: number;
  readonly savedUsd: number;
  /** Price of one token of uncached input. */
  readonly tokenUsd: number;
  /** For the first request with a cut: the minimum that each later request saves; null otherwise. */
  readonly returnUsd: number | null;
}

export interface LossRule {
  /** Share of the untouched cost that memory may cost without being a loss. */
  readonly tolerance: number;
  /** Tolerated in any case, in tokens of uncached input: a young conversation has nothing to save yet. */
  readonly credit: number;
  /** Maximum number of requests for a cut to pay off. */
  readonly longestHorizon: number;
}

export const NEW_BALANCE: Balance = { untouchedUsd: 0, savedUsd: 0, investments: [], streak: 0 };

/** Trimming ends after this many consecutive requests with a net loss. */
export const LOSS_LIMIT = 3;

/**
 * A net loss: the conversation has cost more than untouched, beyond what its cuts may still pay back and what memory may
 * cost. The outstanding cost of a cut falls linearly to zero over its horizon.
 */
export function updateBalance(balance: Balance, movement: BalanceChange, rule: LossRule): Balance {
  const untouchedUsd = balance.untouchedUsd + movement.untouchedUsd;
  const savedUsd = balance.savedUsd + movement.savedUsd;
  const running = balance.investments.map((one) => ({ ...one, left: one.left - 1 })).filter(({ left }) => left > 0);
  const made = toInvestment(movement, rule);
  const investments = made === null ? running : [...running, made];
  const tolerated = Math.max(rule.tolerance * untouchedUsd, rule.credit * movement.tokenUsd);
  const isLoss = savedUsd + sumOutstanding(investments) < -tolerated;
  return { untouchedUsd, savedUsd, investments, streak: isLoss ? balance.streak + 1 : 0 };
}

/** What cuts cost and may still pay back, in USD. */
export function sumOutstanding(investments: readonly Investment[]): number {
  return investments.reduce((sum, { usd, horizon, left }) => sum + (usd * left) / horizon, 0);
}

function toInvestment({ savedUsd, returnUsd }: BalanceChange, { longestHorizon }: LossRule): Investment | null {
  if (returnUsd === null || returnUsd <= 0 || savedUsd >= 0) return null;
  const horizon = Math.min(longestHorizon, Math.ceil(-savedUsd / returnUsd));
  return { usd: -savedUsd, horizon, left: horizon };
}
