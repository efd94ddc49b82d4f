import type { Totals } from '../../../proxy/ledger/index.ts';
import { getSavings } from '../cost.ts';
import type { EngineServices } from '../service.ts';

const MAX_SESSIONS = 500;

/** Tokens of prompts, money at API prices; `own`: of memory's own model calls. */
export type CostRow = ReturnType<typeof getRow>;

export function getRow(totals: Totals) {
  const { requests, original, sent, own, untouched_usd, sent_usd, own_usd, net_saved_usd } = getSavings(totals);
  const cache = { cache_read: totals.cacheRead, cache_write: totals.cacheWrite5m + totals.cacheWrite1h };
  return { requests, original, sent, own, ...cache, untouched_usd, sent_usd, own_usd, net_saved_usd };
}

/** What was saved: by day, oldest first; by session, newest first; by project, by what it cost. */
export async function savingsView({ memory, ledger, titles }: Pick<EngineServices, 'memory' | 'ledger' | 'titles'>) {
  const counted = (await memory.library.listSessions()).flatMap((session) => {
    const totals = ledger.conversation(session.session_id)?.totals;
    return totals === undefined ? [] : [{ session, row: getRow(totals) }];
  });
  const first = counted.slice(0, MAX_SESSIONS);
  const own = await titles.of(first.map(({ session }) => session.session_id));
  const projects = new Map<string, CostRow>();
  for (const { session, row } of counted) projects.set(session.project, addCost(projects.get(session.project), row));
  return {
    days: ledger.days().map(([day, totals]) => ({ day, ...getRow(totals) })),
    sessions: first.map(({ session: { session_id, title, project, updated_at: at }, row }) => {
      return { session_id, title: own.get(session_id) ?? title, project, at, ...row };
    }),
    projects: [...projects]
      .map(([project, row]) => ({ project, ...row }))
      .sort((one, other) => other.untouched_usd - one.untouched_usd),
  };
}

function addCost(sum: CostRow | undefined, row: CostRow): CostRow {
  if (sum === undefined) return row;
  const names = Object.keys(row) as (keyof CostRow)[];
  return Object.fromEntries(names.map((name) => [name, Number((sum[name] + row[name]).toFixed(6))])) as CostRow;
}
