import { memoize } from '../../common/map.ts';
import { countTokens } from '../../common/text.ts';
import {
  costUsd,
  createPrefixCache,
  estimateMessage,
  inputEquivalents,
  type Prompt,
  sumBill,
  type TokenEstimate,
} from '../ledger/cost.ts';
import type { Balance } from '../ledger/store.ts';
import type { MemorySource } from '../ports.ts';
import {
  allowStep,
  buildPlan,
  chooseReplayPlan,
  decideStep,
  isCut,
  type PlanConfig,
  type RecalledMemory,
  roundsBudget,
  type Step,
  type StepInput,
} from '../rewrite/build-plan.ts';
import type { CutRule } from '../rewrite/cut.ts';
import { BRIDGE, createPlanRecord, describeUse, type EpochPlan, locatePlan } from '../rewrite/plan.ts';
import { PlanIndex } from '../rewrite/plan-store.ts';
import { countHeldTurns } from '../rewrite/render.ts';
import { type ConversationView, describeMessage, type MessageInfo, NO_SYSTEM } from '../wire/conversation.ts';
import { extendLineage } from '../wire/message.ts';
import { findModelTraits } from '../wire/models.ts';
import { findFreshPrompt, findHeadEnd, splitParts, splitRounds, splitTurns, sumTokens } from '../wire/turns.ts';
import type { PastConversation, PastMessage, PastRequest } from './request.ts';

export interface SimulationRule {
  readonly cut: CutRule | null;
  readonly plan: Omit<PlanConfig, 'memoryDeadlineMs'>;
  /** Instead of what the transcript says. */
  readonly model?: string;
  readonly ttl?: '5m' | '1h';
}

/** One request as Claude Code sent it and as it would be sent with memory. */
export type SimulatedRequest = ReturnType<typeof simulateConversation>[number];

/**
 * Tokens that memory adds, as measured on real sessions (`npm run bench:replay`, docs/SAVINGS.md): a session's start, a
 * recall and the share of prompts with one, and for each turn that a cut drops its line and its quote.
 */
export const ASSUMED_MEMORY = { start: 200, recall: 450, recallShare: 0.25, line: 120, quote: 400 } as const;

/** Tools and system prompt where the transcript has no usage. */
const HEAD_TOKENS = 12_000;
const LEAST_HEAD_TOKENS = 1_000;
export const DEFAULT_TTL = '5m';

/**
 * Plays a conversation against the prices of the prompt cache, untouched and with the product's own decisions on what to
 * cut. Pure: it reads no text for meaning, so sizes of what memory adds are assumed, and every turn is taken to be
 * remembered by the time of the next request.
 */
export function simulateConversation(conversation: PastConversation, rule: SimulationRule) {
  const caches = { direct: createPrefixCache(), sent: createPrefixCache() };
  const views = createViews(rule, findHeadTokens(conversation));
  const memory = createAssumedMemory(conversation, rule);
  let balance: Paid = { untouchedUsd: 0, savedUsd: 0 };
  return conversation.requests.map((request) => {
    const { view, prompt, model } = views.next(request);
    const bill = { atMs: request.atMs, scale: 1, minTokens: findModelTraits(model).minCacheTokens };
    const direct = caches.direct.bill(prompt, bill).bill;
    const { plan, isCut } = conversation.agentId === '' ? memory.next(request, view, balance) : UNCHANGED;
    const sent = caches.sent.bill(plan === null ? prompt : applyToPrompt(prompt, plan, view), bill).bill;
    const [untouchedUsd, sentUsd] = [costUsd(model, direct, 0), costUsd(model, sent, 0)];
    balance = {
      untouchedUsd: balance.untouchedUsd + untouchedUsd,
      savedUsd: balance.savedUsd + untouchedUsd - sentUsd,
    };
    // `isCut`: the first request with a new cut.
    return { atMs: request.atMs, model, direct, sent, isCut };
  });
}

type Paid = Pick<Balance, 'untouchedUsd' | 'savedUsd'>;

const UNCHANGED = { plan: null, isCut: false } as const;

export type SimulatedCost = ReturnType<typeof sumRequests>;

export function sumRequests(requests: readonly SimulatedRequest[]) {
  return {
    requests: requests.length,
    cuts: requests.filter(({ isCut }) => isCut).length,
    direct: sumSide(requests, 'direct'),
    sent: sumSide(requests, 'sent'),
  };
}

function sumSide(requests: readonly SimulatedRequest[], side: 'direct' | 'sent') {
  const sum = { tokens: 0, equivalents: 0, usd: 0, peak: 0 };
  for (const { model, [side]: bill } of requests) {
    const tokens = sumBill(bill);
    sum.tokens += tokens;
    /** Of uncached input, which usage limits count. */
    sum.equivalents += inputEquivalents(model, bill);
    sum.usd += costUsd(model, bill, 0);
    sum.peak = Math.max(sum.peak, tokens);
  }
  return sum;
}

/** Tokens of tools and system prompt: what the API counted in the first request, without its messages. */
export function findHeadTokens({ requests }: PastConversation): number {
  const counted = requests.find(({ promptTokens }) => promptTokens > 0);
  if (counted === undefined) return HEAD_TOKENS;
  return Math.max(LEAST_HEAD_TOKENS, counted.promptTokens - sumTokens(counted.messages.map(estimateMessage)));
}

/** Describes each message once: every request repeats the transcript. */
export function createViews(rule: SimulationRule, headTokens: number) {
  let previous: { messages: readonly PastMessage[]; lineage: readonly string[] } = { messages: [], lineage: [] };

  const describe = memoize((message: PastMessage) => {
    const bytes = Buffer.byteLength(JSON.stringify(message));
    return { info: describeMessage(message, { start: 0, end: bytes }), estimate: estimateMessage(message), bytes };
  });

  function getLineage(messages: readonly PastMessage[], infos: readonly MessageInfo[]): string[] {
    let same = 0;
    while (same < messages.length && messages[same] === previous.messages[same]) same += 1;
    const lineage = previous.lineage.slice(0, same);
    for (const { hash } of infos.slice(same)) lineage.push(extendLineage(lineage.at(-1) ?? '', hash));
    previous = { messages, lineage };
    return lineage;
  }

  return {
    next(request: PastRequest) {
      const { messages } = request;
      const all = messages.map(describe);
      const ttl = rule.ttl ?? request.ttl ?? DEFAULT_TTL;
      const model = rule.model ?? request.model;
      const estimates = all.map(({ estimate }) => estimate);
      const infos = all.map(({ info }) => info);
      const lineage = getLineage(messages, infos);
      const last = all.length - 1;
      infos[last] = withBreakpoint(infos[last] as MessageInfo, ttl);
      estimates[last] = { ...(estimates[last] as TokenEstimate), ttl };
      const head = [{ digest: 'head', tokens: headTokens, blocks: 1, ttl, hasImage: false }];
      const prompt: Prompt = { seed: model, settings: '', head, messages: estimates, autoTtl: null };
      const bytes = { head: 4 * headTokens, messages: all.reduce((sum, one) => sum + one.bytes, 0) };
      return { view: createView(infos, lineage, { model, bytes }), prompt, model };
    },
  };
}

function withBreakpoint(info: MessageInfo, ttl: string): MessageInfo {
  const { blocks } = info.shape;
  const marked = blocks.map((block, at) => (at === blocks.length - 1 ? { ...block, ttls: [ttl] } : block));
  return { ...info, shape: { ...info.shape, blocks: marked } };
}

/** In place of bodies: decisions depend on the length only. */
const SPACE = Buffer.alloc(32 * 1024 * 1024);

function createView(
  infos: readonly MessageInfo[],
  lineage: readonly string[],
  { model, bytes }: { readonly model: string; readonly bytes: { readonly head: number; readonly messages: number } },
): ConversationView {
  return {
    body: SPACE.subarray(0, bytes.head + bytes.messages),
    scan: { messages: [{ start: 0, end: bytes.messages }], fields: new Map(), system: null },
    infos,
    lineage,
    model,
    manualThinking: false,
    effort: '',
    takesSystemMessages: findModelTraits(model).systemMessages,
    hasTools: true,
    maxTokens: 0,
    userId: '',
    system: NO_SYSTEM,
  };
}

/** The plans of a conversation, made by the product's rules over a memory of assumed size. */
function createAssumedMemory({ sessionId }: PastConversation, { cut: rule, plan }: SimulationRule) {
  const config = { ...plan, memoryDeadlineMs: 0 };
  const index = new PlanIndex();
  const endHashes = new Set<string>();
  let [prompts, made] = [0, 0];

  function stepInput(view: ConversationView, atMs: number, balance: Paid): StepInput {
    const match = index.match(view, sessionId);
    return {
      view,
      match,
      knownSession: index.wasRewritten(sessionId),
      resumedFromMs: null,
      isDurable: ({ endHash }) => endHashes.has(endHash),
      countHeld(turns) {
        const held = turns.map(({ tokens }) => ({ tokens, lines: [] }));
        return countHeldTurns(held, config.preambleTokens);
      },
      rule,
      nowMs: atMs,
      balance,
      ownTokens: countTokens(match?.plan.systemBlock ?? ''),
      roundsTokens: roundsBudget(config),
      hasLateLines: false,
    };
  }

  function recall(view: ConversationView, step: Step): RecalledMemory {
    const isFresh = findFreshPrompt(view) >= 0;
    prompts += isFresh ? 1 : 0;
    const { recallShare, recall: tokens, start, quote } = ASSUMED_MEMORY;
    const isDue = isFresh && Math.floor(prompts * recallShare) > Math.floor((prompts - 1) * recallShare);
    const cut = step.kind === 'epoch' ? step.cut : null;
    const absorbed = cut === null ? [] : splitTurns(view).slice(0, cut.through);
    return {
      brief: [],
      sessionLines: prompts === 1 ? [getLine('start', start)] : [],
      library: [],
      facts: [],
      recalled: isDue && prompts > 1 ? [getLine(`recall ${prompts}`, tokens)] : [],
      quotes: new Map(absorbed.map((turn) => [turn.endHash, getText(turn.endHash, Math.min(quote, turn.tokens))])),
      isComplete: true,
    };
  }

  function decide(view: ConversationView, atMs: number, balance: Paid) {
    const input = stepInput(view, atMs, balance);
    const step = decideStep(input);
    const use = describeUse(view, atMs);
    if (step.kind === 'replay') {
      const plan = chooseReplayPlan(view, input.match, input.knownSession);
      if (plan !== null && plan === input.match?.plan) index.apply({ kind: 'served', planId: plan.id, ...use });
      return { plan, isCut: false };
    }
    made += 1;
    const seed = { id: `${made}`, createdAtMs: atMs, fence: 'f'.repeat(12) };
    const allowedTokens = allowStep(input, step, config);
    const plan = buildPlan(MEMORY, { view, sessionId, step, allowedTokens, ...seed }, recall(view, step), config);
    index.apply(createPlanRecord(step.kind === 'extend' ? step.plan : null, plan, use));
    return { plan, isCut: isCut(step) };
  }

  return {
    next({ kind, atMs }: PastRequest, view: ConversationView, balance: Paid) {
      if (kind === 'compaction')
        return { plan: chooseReplayPlan(view, index.match(view, sessionId), false), isCut: false };
      const decided = decide(view, atMs, balance);
      const turns = splitTurns(view);
      const running = turns.at(-1);
      const parts = running === undefined ? [] : splitParts(view, splitRounds(view, running));
      for (const { endHash } of [...turns.slice(0, -1), ...parts]) endHashes.add(endHash);
      return decided;
    },
  };
}

/** A node for each turn or part. */
const MEMORY: MemorySource = {
  captureTurns: () => undefined,
  awaitCaptures: async () => undefined,
  nodesCovering: (turnIds) => new Map(turnIds.map((id) => [id, [id]])),
  prepareNodes: () => undefined,
  lines: (nodeIds) =>
    nodeIds.map((nodeId) => ({ nodeId, text: getText(nodeId, ASSUMED_MEMORY.line), origin: 'assistant' })),
  quotes: async () => new Map(),
  sessionContext: async () => ({ brief: [], lines: [] }),
  recall: async () => [],
  factChanges: async () => [],
};

function getLine(nodeId: string, tokens: number) {
  return { nodeId, text: getText(nodeId, tokens), clean: true };
}

/** A text of this many tokens that differs by name. */
function getText(name: string, tokens: number): string {
  const most = 4 * tokens;
  return name.slice(0, most).padEnd(most, ' .');
}

/** What the plan sends, as `applyPlan` would write it. */
function applyToPrompt(prompt: Prompt, plan: EpochPlan, view: ConversationView): Prompt {
  const location = locatePlan(plan, view.lineage);
  if (location === null) return prompt;
  const head = findHeadEnd(view);
  const messages: TokenEstimate[] = [];
  const isUser = ({ role }: MessageInfo): boolean => role === 'user';
  for (const [index, message] of prompt.messages.entries()) {
    if (plan.cut !== null && index >= head && index < location.cutEnd) continue;
    if (location.rounds.some(({ start, end }) => index >= start && index < end)) continue;
    const cut = index === location.cutEnd ? plan.cut : null;
    if (cut !== null) messages.push(textEstimate(BRIDGE));
    const started = location.rounds.find(
      ({ start }) => index < start && !view.infos.slice(index + 1, start).some(isUser),
    );
    const injections = plan.injections.filter(({ anchor }) => anchor === view.lineage[index]);
    const inside = injections.filter(({ channel }) => channel === 'block').map(({ text }) => text);
    const instruction = started !== undefined && isUser(view.infos[index] as MessageInfo) ? [started.cut.preamble] : [];
    messages.push(withTexts(message, [...(cut === null ? [] : [cut.preamble]), ...inside, ...instruction]));
    for (const { channel, text } of injections) if (channel === 'system') messages.push(textEstimate(text));
  }
  const system =
    plan.systemBlock === null ? [] : [{ ...textEstimate(plan.systemBlock), ttl: prompt.head[0]?.ttl ?? null }];
  return { ...prompt, head: [...prompt.head, ...system], messages };
}

function withTexts(message: TokenEstimate, texts: readonly string[]): TokenEstimate {
  if (texts.length === 0) return message;
  const added = sumTokens(texts.map(textEstimate));
  const digest = `${message.digest}\n${texts.join('\n')}`;
  return { ...message, digest, tokens: message.tokens + added, blocks: message.blocks + texts.length };
}

function textEstimate(text: string): TokenEstimate {
  return { digest: text, tokens: Math.ceil(Buffer.byteLength(text) / 4), blocks: 1, ttl: null, hasImage: false };
}
