/** What model calls of ours took. */
export interface Spent {
  readonly calls: number;
  readonly tokens: number;
  readonly costUsd: number;
}

/** The use of one day (UTC). */
export interface Ledger {
  spent(spent: Spent & { /** Whose turns it was about. */ readonly sessionId?: string }): void;
  today(): Spent & { /** `YYYY-MM-DD` */ readonly day: string };
}

const NOTHING: Spent = { calls: 0, tokens: 0, costUsd: 0 };

export function createLedger(now: () => number, kept: (Spent & { readonly day: string }) | null = null): Ledger {
  let { day, ...used } = kept ?? { day: '', ...NOTHING };
  const turn = (): void => {
    const today = new Date(now()).toISOString().slice(0, 10);
    if (today !== day) [day, used] = [today, NOTHING];
  };
  return {
    spent({ calls, tokens, costUsd }) {
      turn();
      used = { calls: used.calls + calls, tokens: used.tokens + tokens, costUsd: used.costUsd + costUsd };
    },
    today() {
      turn();
      return { day, calls: used.calls, tokens: used.tokens, costUsd: used.costUsd };
    },
  };
}
