import { setTimeout as after } from 'node:timers/promises';
import type { Receipt } from '../../../proxy/ledger/index.ts';
import type { EngineServices } from '../service.ts';
import { recalledFor } from '../summary.ts';
import { type CostRow, getRow } from './cost.ts';

type Services = Pick<EngineServices, 'memory' | 'receipts' | 'ledger' | 'titles' | 'policy' | 'costs' | 'removals'>;

/** A store that is opening has no titles yet; `problems` says that it opens. */
const OPENING_MS = 1_000;
const LIVE_MS = 86_400_000;
const MAX_SESSIONS = 20;
/** Of text in prompts, about. */
const CHARS_PER_TOKEN = 4;

/** The sessions that sent a request within a day, newest first, and what memory has to do. */
export async function overviewView(services: Services, nowMs: number) {
  const { memory, receipts, titles, policy, costs, removals } = services;
  const { library } = memory;
  const newest = newestBySession(receipts.list(), nowMs - LIVE_MS);
  const ids = [...newest.keys()];
  const knownTitles = await Promise.race([library.nameSessions(ids), after(OPENING_MS, null, { ref: false })]);
  const own = await titles.of(ids);
  const { queue, problems } = memory.maintenance.status();
  const hidden = removals.hidden();
  return {
    nodes: library.list({}).filter(({ node_id }) => !hidden.has(node_id)).length,
    queue,
    paused: policy.pauses(),
    savings: costs().savings,
    problems,
    sessions: [...newest].map(([session_id, { latest, billed }]) => {
      const { title = '', project = '' } = knownTitles?.get(session_id) ?? {};
      return {
        session_id,
        title: own.get(session_id) ?? title,
        project,
        at: latest.at,
        /** The answer to its newest request has not ended. */
        streaming: latest.status === 0,
        // All of the newest request, also while its answer streams.
        ...getFigures(services, session_id, latest, billed),
        phases: latest.phases ?? [],
      };
    }),
  };
}

interface Newest {
  readonly latest: Receipt;
  /** The newest of which the bill is known. */
  readonly billed: Receipt | undefined;
}

/** @param receipts  newest first */
function newestBySession(receipts: readonly Receipt[], sinceMs: number): Map<string, Newest> {
  const newest = new Map<string, Newest>();
  for (const receipt of receipts) {
    if (Date.parse(receipt.at) < sinceMs) break;
    if (receipt.class !== 'main') continue;
    const { latest = receipt, billed } = newest.get(receipt.session_id) ?? {};
    if (!newest.has(receipt.session_id) && newest.size === MAX_SESSIONS) continue;
    const isBilled = receipt.economics.billed !== null;
    newest.set(receipt.session_id, { latest, billed: billed ?? (isBilled ? receipt : undefined) });
  }
  return newest;
}

/** As billed; before that, of its bytes at what a byte of the newest bill was. */
function getTokens({ received, sent, economics }: Receipt, billed: Receipt | undefined) {
  const { received_tokens, sent_tokens } = economics;
  if (economics.billed !== null || billed === undefined) return { received_tokens, sent_tokens };
  const rate = billed.economics.sent_tokens / billed.sent.bytes;
  return { received_tokens: Math.round(received.bytes * rate), sent_tokens: Math.round(sent.bytes * rate) };
}

function getFigures({ ledger }: Services, sessionId: string, receipt: Receipt, billed: Receipt | undefined) {
  const totals = ledger.conversation(sessionId)?.totals;
  const cost: Partial<CostRow> = totals === undefined ? {} : getRow(totals);
  const recalled = receipt.added.filter(({ current }) => current === true);
  const chars = recalled.reduce((sum, { text }) => sum + text.length, 0);
  return {
    requests: cost.requests ?? 0,
    epoch: receipt.epoch,
    decision: receipt.economics.decision,
    ...getTokens(receipt, billed),
    recalled_tokens: Math.ceil(chars / CHARS_PER_TOKEN),
    recalled: recalledFor(receipt).length,
    /** Of the whole session. */
    saved_usd: cost.net_saved_usd ?? 0,
    untouched_usd: cost.untouched_usd ?? 0,
    sent_usd: cost.sent_usd ?? 0,
    trimming_off: (billed ?? receipt).economics.trimming_off,
  };
}
