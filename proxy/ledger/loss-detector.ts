/** A cut that has not paid for itself yet. */
export interface Investment {
  /** What it cost at once, USD. */
  readonly usd: number;
  /** Requests within which it is to come back, and how many of them are still to come. */
  readonly horizon: number;
  readonly left: number;
}

/** How a conversation stands against what it would have cost untouched. */
export interface Balance {
  readonly untouchedUsd: number;
  /** Less than nothing: it has cost more. */
  readonly savedUsd: number;
  readonly investments: readonly Investment[];
  /** Requests in a row at whose end there was a net loss. */
  readonly streak: number;
}

export interface BalanceChange {
  readonly untouchedUsd: number;
  readonly savedUsd: number;
  /** Price of one token of uncached input. */
  readonly tokenUsd: number;
  /** For the request that begins with a cut: what each later request saves by it, at the least. */
  readonly returnUsd: number | null;
}

export interface LossRule {
  /** Share of the untouched price that memory may cost before it counts as a loss. */
  readonly tolerance: number;
  /** What it may cost in any case, in tokens of uncached input: a young conversation has nothing to save yet. */
  readonly credit: number;
  /** No cut is given more requests than this to pay for itself. */
  readonly longestHorizon: number;
}

export const NEW_BALANCE: Balance = { untouchedUsd: 0, savedUsd: 0, investments: [], streak: 0 };

/** So many requests in a row with a net loss end trimming. */
export const LOSS_LIMIT = 3;

/**
 * A net loss: the conversation so far has cost more than it would have untouched, beyond what its cuts may still owe
 * and what memory may cost. A cut owes what it cost at once, less with each request, nothing after its horizon.
 */
export function updateBalance(balance: Balance, movement: BalanceChange, rule: LossRule): Balance {
  const untouchedUsd = balance.untouchedUsd + movement.untouchedUsd;
  const savedUsd = balance.savedUsd + movement.savedUsd;
  const running = balance.investments.map((one) => ({ ...one, left: one.left - 1 })).filter(({ left }) => left > 0);
  const made = investmentOf(movement, rule);
  const investments = made === null ? running : [...running, made];
  const tolerated = Math.max(rule.tolerance * untouchedUsd, rule.credit * movement.tokenUsd);
  const isLoss = savedUsd + sumOutstanding(investments) < -tolerated;
  return { untouchedUsd, savedUsd, investments, streak: isLoss ? balance.streak + 1 : 0 };
}

/** What cuts have cost and may still bring back, USD. */
export function sumOutstanding(investments: readonly Investment[]): number {
  return investments.reduce((sum, { usd, horizon, left }) => sum + (usd * left) / horizon, 0);
}

function investmentOf({ savedUsd, returnUsd }: BalanceChange, { longestHorizon }: LossRule): Investment | null {
  if (returnUsd === null || returnUsd <= 0 || savedUsd >= 0) return null;
  const horizon = Math.min(longestHorizon, Math.ceil(-savedUsd / returnUsd));
  return { usd: -savedUsd, horizon, left: horizon };
}
