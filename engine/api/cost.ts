import { amount, localDay, percentSaved } from '../../common/text.ts';
import type { CostLedger, Totals } from '../../proxy/ledger/index.ts';

/** Field names are those of `status --json`. */
export interface Costs {
  readonly tokens: Pick<Savings, 'original' | 'sent' | 'own' | 'net_saved'>;
  readonly savings: { readonly today: Savings; readonly week: Savings; readonly total: Savings };
  /** The newest days with requests, oldest first, in the zone of this machine. */
  readonly by_day: readonly (Pick<Savings, 'original' | 'sent' | 'own'> & { readonly day: string })[];
  readonly trimming_off: readonly {
    readonly session_id: string;
    /** First prompt of the session, '' where it is not known. */
    readonly title?: string;
    readonly at: string;
    readonly because: string;
  }[];
  /** Rewritten requests that upstream ever refused; each lost its plan, and the next request got a new one. */
  readonly healed: number;
}

const MOST_OFF = 20;
const MOST_DAYS = 14;

/** The savings of a period; tokens of prompts, money at API prices. */
const NO_SAVINGS = {
  requests: 0,
  /** Tokens as Claude Code sent them, as billed, and of our own model calls. */
  original: 0,
  sent: 0,
  own: 0,
  net_saved: 0,
  /** Of requests, in tokens of uncached input, which usage limits count. */
  saved_equivalents: 0,
  untouched_usd: 0,
  sent_usd: 0,
  own_usd: 0,
  net_saved_usd: 0,
};
type Savings = Readonly<typeof NO_SAVINGS>;

/** Spelled out: commands load this file, and the ledger costs them 70 ms. */
export const EMPTY_COSTS: Costs = {
  tokens: { original: 0, sent: 0, own: 0, net_saved: 0 },
  savings: { today: NO_SAVINGS, week: NO_SAVINGS, total: NO_SAVINGS },
  by_day: [],
  trimming_off: [],
  healed: 0,
};

export function getCosts(ledger: Pick<CostLedger, 'totals' | 'days' | 'disabledConversations'>, nowMs: number): Costs {
  const ever = ledger.totals(0);
  const total = getSavings(ever);
  const { original, sent, own, net_saved } = total;
  return {
    tokens: { original, sent, own, net_saved },
    savings: {
      today: getSavings(ledger.totals(nowMs)),
      // Not a number of hours: a day with a change of the clock has 23 or 25.
      week: getSavings(ledger.totals(new Date(nowMs).setDate(new Date(nowMs).getDate() - 6))),
      total,
    },
    by_day: ledger
      .days()
      .slice(-MOST_DAYS)
      .map(([day, { original, sent, ownTokens: own }]) => ({ day, original, sent, own })),
    trimming_off: ledger
      .disabledConversations()
      .slice(0, MOST_OFF)
      .map(({ id, off }) => ({
        session_id: id,
        at: new Date(off?.atMs ?? 0).toISOString(),
        because: off?.because ?? '',
      })),
    healed: ever.refused,
  };
}

export function getSavings(totals: Totals): Savings {
  const { requests, original, sent, ownTokens: own, untouchedUsd, sentUsd, ownUsd } = totals;
  return {
    requests,
    original,
    sent,
    own,
    net_saved: original - sent - own,
    saved_equivalents: Math.round(totals.untouchedEquivalents - totals.sentEquivalents),
    untouched_usd: cents(untouchedUsd),
    sent_usd: cents(sentUsd),
    own_usd: cents(ownUsd),
    net_saved_usd: cents(untouchedUsd - sentUsd - ownUsd),
  };
}

/** On the whole days from the one time until before the other, or where they are of one day, on that day so far. */
export function sumSaved(ledger: Pick<CostLedger, 'days'>, fromMs: number, toMs: number) {
  const [from, to] = [localDay(fromMs), localDay(toMs)];
  const days = ledger.days().filter(([day]) => day >= from && (day < to || from === to));
  const all = days.map(([, totals]) => getSavings(totals));
  const sum = (key: 'original' | 'sent' | 'net_saved_usd'): number => all.reduce((cost, each) => cost + each[key], 0);
  return { received: sum('original'), sent: sum('sent'), usd: sum('net_saved_usd'), isToday: from === to };
}

const cents = (usd: number): number => Number(usd.toFixed(6));

/** "saved 27 % of the context this week (312k of 1.2M tokens); memory's own model calls used 4.5k". */
export function savedLine({ original, sent, own }: Pick<Savings, 'original' | 'sent' | 'own'>, when: string): string {
  const percent = percentSaved(original, sent);
  const used = own === 0 ? '' : `; memory's own model calls used ${amount(own)}`;
  if (original === 0) return `no requests ${when}${used}`;
  if (sent > original)
    return `memory added ${amount(sent - original)} tokens to the context ${when} (${Math.abs(percent)} %)${used}`;
  return `saved ${percent} % of the context ${when} (${amount(original - sent)} of ${amount(original)} tokens)${used}`;
}
