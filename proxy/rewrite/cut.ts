import type { Config } from '../../common/config.ts';
import { TTL_MS } from '../ledger/cost.ts';
import type { Balance } from '../ledger/store.ts';
import { type ConversationView, countRequestTokens, estimateTokens, type MessageInfo } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import {
  findHeadEnd,
  isToolRound,
  type PartSpan,
  splitParts,
  splitRounds,
  sumDroppable,
  sumPinnedTokens,
  sumTokens,
  type TurnSpan,
} from '../wire/turns.ts';
import type { Match, PlanLocation, PlanUse } from './plan.ts';
import type { countHeldTurns } from './render.ts';

export interface CutRule extends Omit<Config['trim'], 'mode' | 'deadlineMs'> {
  /** With a warm cache, cut once carrying the droppable turns has cost this many times the cut; 0 never waits. */
  readonly margin: number;
}

type CutContext = ReturnType<typeof buildCutContext>;

type CutReason = 'cold' | 'paid' | 'pressure' | 'target';

type KeepReason =
  | 'small'
  | 'too_few_turns'
  | 'not_durable'
  | 'too_much_state'
  | 'too_little'
  | 'not_paid'
  | 'not_affordable';

export type CutDecision =
  | { readonly kind: 'keep'; readonly because: KeepReason }
  | {
      readonly kind: 'cut';
      readonly because: CutReason;
      /** Turns `[0, through)` are absorbed; those before `absorbed` already were. */
      readonly through: number;
      /** Cost that the cut leaves of what it may cost, in tokens of uncached input. */
      readonly spare: number;
    };

export interface CutInput {
  /** Every turn of the request; the last one is the current prompt. */
  readonly turns: readonly TurnSpan[];
  /** Turns that the current plan already absorbs. */
  readonly absorbed: number;
  readonly isDurable: (turn: TurnSpan) => boolean;
  /** Of these leading turns, those whose state a preamble can hold. */
  readonly countHeld: (turns: readonly TurnSpan[]) => ReturnType<typeof countHeldTurns>;
  readonly context: CutContext;
  readonly beside: Beside;
}

/** What one cut rewrites or drops in addition to the turns that are asked about, and what carrying it has cost since the last. */
export interface Beside {
  readonly historyTokens: number;
  readonly droppedTokens: number;
  readonly carried: number;
}

/**
 * A cut is one leading range of whole turns, without the newest, and only of turns that durable nodes represent and
 * whose decisions, open items and values the preamble can hold.
 */
export function decideCut(input: CutInput, rule: CutRule): CutDecision {
  const { turns, absorbed, isDurable, context: scene, beside } = input;
  const history = sumTokens(turns.slice(absorbed)) + beside.historyTokens;
  if (history < rule.triggerTokens && !isOverTarget(scene, rule)) return { kind: 'keep', because: 'small' };
  const eligible = countEligibleTurns(turns, rule);
  const hasMore = beside.droppedTokens > 0;
  if (eligible <= absorbed && !hasMore) return { kind: 'keep', because: 'too_few_turns' };
  const through = absorbed + takeDurable(turns.slice(absorbed, eligible), isDurable).length;
  if (through === absorbed && !hasMore) return { kind: 'keep', because: 'not_durable' };
  const whole = decideRange(input, { through, tooFew: through < eligible ? 'not_durable' : 'too_little' }, rule);
  if (whole.kind === 'keep' || through === absorbed) return whole;
  // Reading nodes takes time, so only a cut that is due does it.
  const heldState = input.countHeld(turns.slice(0, through));
  if (heldState.turns <= absorbed && !hasMore) return { kind: 'keep', because: 'too_much_state' };
  const context = { ...scene, aroundTokens: scene.aroundTokens + heldState.tokens };
  const range = { through: Math.max(absorbed, heldState.turns), tooFew: 'too_much_state' } as const;
  return decideRange({ ...input, context }, range, rule);
}

/** Up to the first one that no durable node represents. */
function takeDurable<T extends TurnSpan>(spans: readonly T[], isDurable: CutInput['isDurable']): readonly T[] {
  const missing = spans.findIndex((span) => !isDurable(span));
  return missing < 0 ? spans : spans.slice(0, missing);
}

function decideRange(
  { turns, absorbed, context, beside }: CutInput,
  { through, tooFew }: { readonly through: number; readonly tooFew: KeepReason },
  rule: CutRule,
): CutDecision {
  const history = sumTokens(turns.slice(absorbed)) + beside.historyTokens;
  const droppedTokens = sumTokens(turns.slice(absorbed, through)) + beside.droppedTokens;
  if (droppedTokens < rule.minDropShare * history) return { kind: 'keep', because: tooFew };
  const tokens = { droppedTokens, keptTokens: history - droppedTokens };
  const reason = findReason({ turns, absorbed, context, beside }, tokens, rule);
  return typeof reason === 'string' ? { kind: 'keep', because: reason } : { kind: 'cut', ...reason, through };
}

function findReason(
  input: Omit<CutInput, 'isDurable' | 'countHeld'>,
  { droppedTokens, keptTokens }: { readonly droppedTokens: number; readonly keptTokens: number },
  rule: CutRule,
): { readonly because: CutReason; readonly spare: number } | 'not_paid' | 'not_affordable' {
  const { context: scene, beside } = input;
  const spare = Number.POSITIVE_INFINITY;
  if (scene.cold) return { because: 'cold', spare };
  if (isOverTarget(scene, rule)) return { because: 'target', spare };
  if (scene.requestTokens > rule.pressureShare * scene.contextTokens) return { because: 'pressure', spare };
  const { prices } = scene;
  const cost = cutCost(input, { rewrittenTokens: scene.aroundTokens + keptTokens - scene.freshTokens, prices }, rule);
  if (cost.carried + beside.carried < rule.margin * cost.once) return 'not_paid';
  if (rule.margin === 0) return { because: 'paid', spare };
  const left = scene.budget - (cost.once - scene.savingRequests * prices.read * droppedTokens);
  return left < 0 ? 'not_affordable' : { because: 'paid', spare: left };
}

function isOverTarget(scene: CutContext, rule: CutRule): boolean {
  return rule.targetTokens > 0 && scene.requestTokens > rule.targetTokens;
}

export interface CutRequest {
  readonly view: ConversationView;
  readonly match: Match | null;
  readonly nowMs: number;
  /** Tokens of memory text that a cut keeps. */
  readonly ownTokens: number;
  /** What the conversation has cost; null before its first answer. */
  readonly balance: Pick<Balance, 'untouchedUsd' | 'savedUsd'> | null;
}

/** Cache state, prices and sizes for a cut decision. @param dropped  messages that the current plan drops */
export function buildCutContext(
  { view, match, nowMs, ownTokens }: CutRequest,
  { dropped, budget }: { readonly dropped: readonly MessageInfo[]; readonly budget: number },
) {
  const headEnd = findHeadEnd(view);
  const head = sumTokens(view.infos.slice(0, headEnd));
  return {
    /** What a cut with a warm cache may cost now, in tokens of uncached input. */
    budget,
    /** Requests whose saving a cut counts on: this one, and in a tool loop the next, which nearly always comes. */
    savingRequests: isToolRound(view) ? 2 : 1,
    /** Of the kept tokens, those that this request sends for the first time: a cut does not write them again. */
    freshTokens: sumTokens(match === null ? [] : view.infos.slice(Math.max(headEnd, match.servedAt + 1))),
    ...findCacheState({ view, match, nowMs }),
    /** Tokens that a cut writes again in addition to preamble and kept turns: head and system block. */
    aroundTokens: head + sumPinnedTokens(view.infos.slice(headEnd)) + ownTokens,
    /** Tokens of the whole request without a cut, and of the model's context window. */
    requestTokens: countRequestTokens(view) - sumDroppable(dropped) + ownTokens,
    contextTokens: findModelTraits(view.model).contextTokens,
  };
}

/** Whether a known prefix has left the prompt cache, and what a cached token costs. */
export function findCacheState({ view, match, nowMs }: Pick<CutRequest, 'view' | 'match' | 'nowMs'>) {
  const traits = findModelTraits(view.model);
  const ttl = findTtl(view.infos);
  return {
    // A cache entry's lifetime starts with the request that last read it; another model or effort misses it.
    cold: match !== null && isExpired(view, findLastUse(match, view).atMs, nowMs),
    /** Of a cached token, relative to an uncached one. */
    prices: { read: traits.cacheRead, write: ttl === '1h' ? traits.cacheWrite1h : traits.cacheWrite5m },
  };
}

/** When the prompt cache of this model and effort last read what the plan sends; at 0 where it never did. */
export function findLastUse({ uses }: Match, { model, effort, infos }: ConversationView): PlanUse {
  // A system message that sets the effort is assumed to leave what precedes it in the cache.
  const isDirected = infos.some(({ pinned }) => pinned?.directive !== undefined);
  const own = uses.filter((use) => use.model === model && (isDirected || use.effort === effort));
  return { atMs: Math.max(0, ...own.map(({ atMs }) => atMs)), model, effort };
}

export function isExpired({ infos }: Pick<ConversationView, 'infos'>, atMs: number, nowMs: number): boolean {
  return atMs < nowMs - TTL_MS[findTtl(infos)];
}

/** The newest messages carry the cache breakpoint that the next request reads. */
function findTtl(infos: readonly MessageInfo[]): '5m' | '1h' {
  const newest = infos.slice(-4).flatMap((info) => info.shape.blocks.flatMap((block) => block.ttls ?? []));
  return newest.includes('1h') ? '1h' : '5m';
}

/**
 * What a cut costs, `once`: writing the kept prompt to the cache again instead of reading it; and what reading the
 * droppable turns has cost since the last cut, `carried`. In tokens of uncached input.
 *
 * The remaining length of a conversation is unknown. Cutting once the carried cost reaches the price of a cut costs at
 * most twice the optimum in hindsight, and for a history that grows steadily it is the optimal period: with growth g
 * per request and price C, C/m + r·g·m/2 per request is minimal where r·g·m²/2 = C.
 * Source: ski rental, Karlin, Manasse, Rudolph, Sleator 1988; economic order quantity, Harris 1913.
 */
export function cutCost(
  { turns, absorbed }: Pick<CutInput, 'turns' | 'absorbed'>,
  { rewrittenTokens, prices }: { readonly rewrittenTokens: number; readonly prices: CutContext['prices'] },
  rule: Pick<CutRule, 'keepTurns' | 'keepTokens'>,
): { readonly once: number; readonly carried: number } {
  const upTo: number[] = [0];
  for (const turn of turns) upTo.push((upTo.at(-1) as number) + turn.tokens);
  let carried = 0;
  for (let index = absorbed; index < turns.length; index += 1) {
    const through = Math.max(absorbed, countEligibleTurns(turns, rule, index + 1));
    const droppable = (upTo[through] as number) - (upTo[absorbed] as number);
    carried += prices.read * droppable * (turns[index] as TurnSpan).requests;
  }
  return { once: (prices.write - prices.read) * rewrittenTokens, carried };
}

/** How many of the first `count` turns may be cut: not the running one, and `keepTurns` and `keepTokens` stay. */
export function countEligibleTurns(
  turns: readonly TurnSpan[],
  rule: Pick<CutRule, 'keepTurns' | 'keepTokens'>,
  count = turns.length,
): number {
  const most = Math.max(0, count - 1);
  let [through, tokens] = [most, 0];
  while (through > 0 && (most - through < rule.keepTurns || tokens < rule.keepTokens)) {
    through -= 1;
    tokens += turns[through]?.tokens ?? 0;
  }
  return through;
}

/** Turns with the token counts that a plan sends: a preamble counts in place of the rounds it replaces. */
export function measureSentTurns(
  { infos }: Pick<ConversationView, 'infos'>,
  turns: readonly TurnSpan[],
  location: PlanLocation | null,
): readonly TurnSpan[] {
  if (location === null || location.rounds.length === 0) return turns;
  return turns.map((turn) => {
    const rounds = location.rounds.filter(({ start, end }) => start < turn.end && end > turn.start);
    const tokens = rounds.reduce((sum, { start, end, cut }) => {
      const preamble = start > turn.start ? estimateTokens(Buffer.byteLength(cut.preamble)) : 0;
      return sum - sumDroppable(infos.slice(Math.max(start, turn.start), Math.min(end, turn.end))) + preamble;
    }, turn.tokens);
    return rounds.length === 0 ? turn : { ...turn, tokens };
  });
}

/** Tool rounds of the running turn to drop, including those already dropped. */
export interface RoundsToCut {
  readonly because: CutReason;
  /** Messages `[start, end)`. */
  readonly start: number;
  readonly end: number;
  /** Parts that replace them, oldest first; the last part may cover rounds that stay, too. */
  readonly parts: readonly PartSpan[];
}

/** `context` is that of a cut between turns: `decideRoundCut` adds what surrounds the rounds. */
export interface RoundCutInput extends Pick<CutInput, 'isDurable' | 'context' | 'beside'> {
  readonly view: ConversationView;
  readonly turn: TurnSpan;
  /** End of the rounds of this turn that the current plan drops; 0 when it drops none. */
  readonly absorbedEnd: number;
  /** Of the preamble of the turns that go with the rounds, and of those whose state it cannot hold. */
  readonly countBeside: () => number;
}

/** Applies the rule for whole turns to the tool rounds of the running turn. */
export function decideRoundCut(input: RoundCutInput, rule: CutRule): RoundsToCut | null {
  const { view, turn, absorbedEnd, isDurable, context: scene, beside, countBeside } = input;
  const rounds = splitRounds(view, turn);
  const first = rounds[0];
  if (first === undefined) return null;
  // A part can be dropped only when all parts before it are durable.
  const parts = takeDurable(splitParts(view, rounds), isDurable);
  const durableEnd = parts.at(-1)?.end ?? 0;
  const cut = decideCut(
    {
      turns: [...rounds, requestedAnswer(view, turn)],
      absorbed: countAbsorbed(rounds, absorbedEnd),
      isDurable: (round) => round.end <= durableEnd,
      // The state of rounds is always in their preamble.
      countHeld: (store) => ({ turns: store.length, tokens: countBeside() }),
      context: { ...scene, aroundTokens: scene.aroundTokens + sumTokens(view.infos.slice(turn.start, first.start)) },
      beside,
    },
    roundRule(rule),
  );
  const end = cut.kind === 'keep' ? 0 : (rounds[cut.through - 1]?.end ?? 0);
  if (cut.kind === 'keep' || end <= absorbedEnd) return null;
  return { because: cut.because, start: first.start, end, parts: parts.filter((part) => part.start < end) };
}

interface KeptTurnsInput extends Pick<CutInput, 'turns' | 'absorbed' | 'isDurable'> {
  readonly view: ConversationView;
  readonly location: PlanLocation | null;
}

export type IdleRounds = ReturnType<typeof findIdleRounds>;

/**
 * The rounds that may go of the complete turns that stay: all but the newest rounds of the conversation. A turn keeps its
 * prompt, its answer and the rounds after its last durable part.
 */
export function findIdleRounds(input: KeptTurnsInput, rule: CutRule) {
  const { view, turns, absorbed, location, isDurable } = input;
  const running = turns.at(-1);
  const newest = running === undefined ? [] : splitRounds(view, running);
  let kept = { rounds: newest.length, tokens: sumTokens(newest) };
  const candidates: Omit<RoundsToCut, 'because'>[] = [];
  let [droppedTokens, carriedTokens] = [0, 0];
  for (let at = turns.length - 2; at >= Math.max(absorbed, countEligibleTurns(turns, rule)); at -= 1) {
    const turn = turns[at] as TurnSpan;
    const rounds = splitRounds(view, turn);
    let count = rounds.length;
    while (count > 0 && (kept.rounds < rule.keepRounds || kept.tokens < rule.keepRoundTokens)) {
      count -= 1;
      kept = { rounds: kept.rounds + 1, tokens: kept.tokens + (rounds[count]?.tokens ?? 0) };
    }
    const parts = takeDurable(splitParts(view, rounds), isDurable);
    const mayGo = rounds.slice(0, count).filter(({ end }) => end <= (parts.at(-1)?.end ?? 0));
    const added = mayGo.filter(({ end }) => end > roundsEnd(location, turn));
    if (added.length === 0) continue;
    const [start, end] = [mayGo[0]?.start as number, mayGo.at(-1)?.end as number];
    candidates.push({ start, end, parts: parts.filter((part) => part.start < end) });
    const tokens = sumTokens(added);
    droppedTokens += tokens;
    carriedTokens += tokens * turns.slice(at + 1).reduce((sum, { requests }) => sum + requests, 0);
  }
  /** `carriedTokens`: what reading them has cost since their turns ended. */
  return { rounds: candidates.reverse(), droppedTokens, carriedTokens };
}

/** End of the rounds of this turn that the plan drops; 0 when it drops none. */
export function roundsEnd(location: PlanLocation | null, { start, end }: Pick<TurnSpan, 'start' | 'end'>): number {
  return location?.rounds.find((rounds) => rounds.start > start && rounds.start < end)?.end ?? 0;
}

/** `decideCut` treats the last unit as the running one. */
function requestedAnswer({ infos }: Pick<ConversationView, 'infos'>, turn: TurnSpan): TurnSpan {
  return { ...turn, start: infos.length, end: infos.length, tokens: 0, requests: 0 };
}

function countAbsorbed(rounds: readonly TurnSpan[], absorbedEnd: number): number {
  return rounds.filter((round) => round.end <= absorbedEnd).length;
}

function roundRule(rule: CutRule): CutRule {
  return { ...rule, keepTurns: rule.keepRounds, keepTokens: rule.keepRoundTokens };
}

/** What reading the droppable rounds of a turn has cost while it ran, since the last cut in it. */
export function carriedByRounds(
  view: ConversationView,
  { turn, absorbedEnd }: Pick<RoundCutInput, 'turn' | 'absorbedEnd'>,
  { rule, prices }: { readonly rule: CutRule } & Pick<CutContext, 'prices'>,
): number {
  const rounds = splitRounds(view, turn);
  const turns = [...rounds, requestedAnswer(view, turn)];
  const absorbed = countAbsorbed(rounds, absorbedEnd);
  return cutCost({ turns, absorbed }, { rewrittenTokens: 0, prices }, roundRule(rule)).carried;
}

/** The turns that a cut of rounds takes with it, in addition to the turn that runs. */
export function besideRounds({ turns, absorbed, isDurable, countHeld, context, beside }: CutInput, rule: CutRule) {
  const going = takeDurable(turns.slice(absorbed, countEligibleTurns(turns, rule)), isDurable);
  const through = absorbed + going.length;
  return {
    beside: {
      historyTokens: sumTokens(turns.slice(absorbed, -1)),
      droppedTokens: beside.droppedTokens + sumTokens(going),
      carried:
        beside.carried + cutCost({ turns, absorbed }, { rewrittenTokens: 0, prices: context.prices }, rule).carried,
    },
    countBeside: () => {
      if (through === 0) return 0;
      const heldState = countHeld(turns.slice(0, through));
      return heldState.tokens + sumTokens(turns.slice(Math.max(absorbed, heldState.turns), through));
    },
  };
}

/** Parts of the running turn that a cut could need; empty while the rounds are far from the trigger. */
export function selectParts({ view, turn, absorbedEnd, isDurable }: RoundCutInput, rule: CutRule): PartSpan[] {
  const rounds = splitRounds(view, turn);
  const carried = sumTokens(rounds.filter((round) => round.end > absorbedEnd));
  return carried < rule.triggerTokens * 0.75 ? [] : splitParts(view, rounds).filter((part) => !isDurable(part));
}
