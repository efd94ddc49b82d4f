import { type CutRule, countEligibleTurns, findIdleRounds } from '../../proxy/rewrite/cut.ts';
import { findHeadTokens, type PastConversation, type PastRequest } from '../../proxy/transcript/index.ts';
import { ASSUMED_MEMORY, createViews, type SimulationRule } from '../../proxy/transcript/plan.ts';
import type { ConversationView } from '../../proxy/wire/conversation.ts';
import { findModelTraits } from '../../proxy/wire/models.ts';
import { findHeadEnd, splitRounds, splitTurns, sumTokens, type TurnSpan } from '../../proxy/wire/turns.ts';

const TTL_MS = { '5m': 300_000, '1h': 3_600_000 } as const;

interface Round {
  readonly atMs: number;
  readonly headTokens: number;
  /** Of all messages. */
  readonly tokens: number;
  /** Leading messages that the request before sent as well, and their tokens. */
  readonly shared: number;
  readonly known: number;
  /** Tokens that each allowed cut saves, by the message index that it ends at. */
  readonly cuts: ReadonlyMap<number, number>;
}

/**
 * The least prompt cost of a conversation for a planner that knows every later request, in tokens of uncached input: the
 * product's keep rules, preambles of the same assumed size, and no other text of memory. Dynamic programming forward over
 * (request, end of the cut): a cut costs the same whatever was cut before, so the best state before it is known.
 */
export function findLeastCost(
  conversation: PastConversation,
  rule: SimulationRule & { readonly cut: CutRule },
): number {
  const headTokens = findHeadTokens(conversation);
  const views = createViews(rule, headTokens);
  let previous: PastRequest | null = null;
  const rounds = conversation.requests.map((request) => {
    const { view, prompt } = views.next(request);
    const billed = prompt.messages;
    const shared = countShared(request, previous);
    previous = request;
    const known = sumTokens(billed.slice(0, shared));
    return {
      atMs: request.atMs,
      headTokens,
      tokens: sumTokens(billed),
      shared,
      known,
      cuts: listCuts(view, billed, rule.cut),
    };
  });
  const [first] = conversation.requests;
  return first === undefined ? 0 : getLeastCost(rounds, rule, first);
}

/** Leading messages that the request before sent as well; a rewind and a compaction share fewer than it had. */
function countShared({ messages }: PastRequest, before: PastRequest | null): number {
  let shared = 0;
  while (before !== null && shared < messages.length && messages[shared] === before.messages[shared]) shared += 1;
  return shared;
}

/** Of each message. */
type Billed = readonly { readonly tokens: number }[];

/** Of the tokens left out, and at most: what quotes take. As in `renderPreamble`. */
const QUOTED = { share: 0.25, most: 10_000 };

/** The ends of cuts that the keep rules allow, and how many tokens less each sends. */
function listCuts(view: ConversationView, billed: Billed, rule: CutRule): Map<number, number> {
  const turns = splitTurns(view);
  const cuts = new Map<number, number>();
  const getTokens = ({ start, end }: { readonly start: number; readonly end: number }): number =>
    sumTokens(billed.slice(start, end));
  const getIdle = (absorbed: number) => {
    const input = { view, turns, absorbed, location: null, isDurable: () => true };
    const { rounds } = findIdleRounds(input, rule);
    const tokens = rounds.reduce((sum, one) => sum + getTokens(one) - ASSUMED_MEMORY.line * one.parts.length, 0);
    return { tokens, end: rounds.at(-1)?.end ?? 0 };
  };
  const head = sumTokens(billed.slice(0, findHeadEnd(view)));
  let [absorbed, quotes, saved] = [-head, 0, 0];
  let idle = getIdle(0);
  if (idle.end > 0) cuts.set(idle.end, idle.tokens);
  for (const [at, turn] of turns.slice(0, countEligibleTurns(turns, rule)).entries()) {
    absorbed += getTokens(turn);
    quotes += Math.min(ASSUMED_MEMORY.quote, turn.tokens);
    saved = absorbed - Math.min(quotes, QUOTED.share * absorbed, QUOTED.most);
    idle = getIdle(at + 1);
    cuts.set(turn.end, saved + idle.tokens);
  }
  saved += idle.tokens;
  const running = turns.at(-1);
  for (const round of running === undefined ? [] : listRounds(view, running, rule)) {
    saved += getTokens(round);
    cuts.set(round.end, saved - ASSUMED_MEMORY.line);
  }
  return cuts;
}

/** The rounds of the running turn that may be cut. */
function listRounds(view: ConversationView, turn: TurnSpan, rule: CutRule): TurnSpan[] {
  const rounds = splitRounds(view, turn);
  const last = { ...turn, tokens: 0, requests: 0 };
  const keep = { keepTurns: rule.keepRounds, keepTokens: rule.keepRoundTokens };
  return rounds.slice(0, countEligibleTurns([...rounds, last], keep));
}

function getLeastCost(
  rounds: readonly Round[],
  rule: SimulationRule,
  { model: own, ttl: ownTtl }: PastRequest,
): number {
  const traits = findModelTraits(rule.model ?? own);
  const ttl = rule.ttl ?? ownTtl ?? '5m';
  const write = ttl === '1h' ? traits.cacheWrite1h : traits.cacheWrite5m;
  /** Least cost so far, and tokens saved, by the end of the cut; 0 is none. */
  let states = new Map([[0, { cost: 0, saved: 0 }]]);
  let previousMs = Number.NEGATIVE_INFINITY;
  for (const { atMs, headTokens, tokens, shared, known, cuts } of rounds) {
    const isWarm = atMs - previousMs <= TTL_MS[ttl];
    const best = Math.min(...[...states.values()].map(({ cost }) => cost));
    const next = new Map<number, { cost: number; saved: number }>();
    const put = (end: number, from: number, saved: number, cached: number): void => {
      const read = isWarm ? cached : 0;
      const cost = from + traits.cacheRead * read + write * (headTokens + tokens - saved - read);
      if (cost < (next.get(end)?.cost ?? Number.POSITIVE_INFINITY)) next.set(end, { cost, saved });
    };
    for (const [end, { cost, saved }] of states) {
      if (end <= shared) put(end, cost, saved, headTokens + known - saved);
    }
    put(0, best, 0, headTokens);
    for (const [end, saved] of cuts) put(end, best, saved, headTokens);
    states = next;
    previousMs = atMs;
  }
  return Math.min(...[...states.values()].map(({ cost }) => cost));
}
