import type { Config } from '../../common/config.ts';
import { countTokens, fenceLines } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { GivenSlice, MemoryLine, MemorySource } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import {
  findFreshPrompt,
  findHeadEnd,
  findTypedPrompt,
  isMergedPrompt,
  isToolRound,
  type PartSpan,
  splitRounds,
  splitTurns,
  sumTokens,
  type TurnSpan,
} from '../wire/turns.ts';
import { allowTokens, getBudget, openAccount } from './cost.ts';
import {
  besideRounds,
  buildCutContext,
  type CutDecision,
  type CutInput,
  type CutRequest,
  type CutRule,
  carriedByRounds,
  countEligibleTurns,
  decideCut,
  decideRoundCut,
  findIdleRounds,
  type IdleRounds,
  measureSentTurns,
  type RoundCutInput,
  type RoundsToCut,
  roundsEnd,
  selectParts,
} from './cut.ts';
import {
  type Cut,
  type EpochPlan,
  type Injection,
  isEmptyPlan,
  locatePlan,
  type Match,
  type RoundCut,
} from './plan.ts';
import {
  type Line,
  type Rendered,
  renderPreamble,
  renderRetrieval,
  renderRoundsPreamble,
  renderSystemBlock,
  type SystemTexts,
} from './render.ts';

/** Why a request gets a new plan. `lost`: the plan is gone. `bypassed`: messages went upstream without the proxy. */
type EpochReason = 'first' | 'cut' | 'lost' | 'broken' | 'bypassed';

interface EpochStep {
  readonly kind: 'epoch';
  readonly because: EpochReason;
  /** The plan to build on; null for the first plan and when the old plan's prefix is gone. */
  readonly from: EpochPlan | null;
  /** Null when the cut does not change. */
  readonly cut: Extract<CutDecision, { kind: 'cut' }> | null;
  /** Tool rounds to drop of the running turn and of complete turns that stay. */
  readonly rounds: readonly RoundsToCut[];
  readonly strippedThrough: string | null;
}

export type Step =
  /** Replay the current plan, or pass the request through when there is none. */
  | { readonly kind: 'replay' }
  /** Keep the current plan; this prompt may recall memory. */
  | { readonly kind: 'extend'; readonly plan: EpochPlan }
  | EpochStep;

export interface StepInput extends CutRequest {
  /** A plan was once made for this session. */
  readonly knownSession: boolean;
  /** When the last answer came of a session that is seen for the first time, once its prompt cache has expired. */
  readonly resumedFromMs: number | null;
  readonly isDurable: (turn: TurnSpan) => boolean;
  readonly countHeld: CutInput['countHeld'];
  readonly rule: CutRule | null;
  readonly roundsTokens: number;
  /** A recall that missed its deadline has lines for the running turn. */
  readonly hasLateLines: boolean;
}

const NO_CUTS = { cut: null, rounds: [] } as const;

export function decideStep(input: StepInput): Step {
  const { view, match, knownSession, resumedFromMs } = input;
  const fresh = findFreshPrompt(view);
  const current = match !== null && locatePlan(match.plan, view.lineage) !== null ? match.plan : null;
  const startEpoch = (because: EpochReason, from: EpochPlan | null, cuts: Cuts = NO_CUTS): EpochStep => {
    return { kind: 'epoch', because, from, ...cuts, strippedThrough: findStripEnd(view, fresh) };
  };
  if (current === null) {
    const cuts = knownSession || resumedFromMs !== null ? decideCuts(input, null, fresh) : NO_CUTS;
    if (hasCut(cuts) || (knownSession && hasThinking(view))) return startEpoch('lost', null, cuts);
    return fresh < 0 ? { kind: 'replay' } : { ...startEpoch('first', null), strippedThrough: null };
  }
  // A plan refused for a signature is valid with the thinking stripped; after any other refusal start from scratch.
  if (current.broken === 'thinking') return startEpoch('broken', current);
  if (current.broken === 'structure') return startEpoch('broken', null, decideCuts(input, null, fresh));
  if (match !== null && hasUnproxiedMessages(view, match))
    return startEpoch('bypassed', current, decideCuts(input, current, fresh));
  if (match?.servedAt === view.lineage.length - 1) return { kind: 'replay' };
  const cuts = decideCuts(input, current, fresh);
  if (hasCut(cuts)) return startEpoch('cut', current, cuts);
  const typed = findTypedPrompt(view);
  // Beside text that the client added, more text changes nothing for the rules.
  const hasOwnText = fresh >= 0 || (view.infos[typed]?.typed ?? null) !== null;
  const mayAdd = hasOwnText || ((typed >= 0 || input.hasLateLines) && mayAddInLoop(view));
  return mayAdd ? { kind: 'extend', plan: current } : { kind: 'replay' };
}

/** Whether memory may know turns of a history, large enough for a cut, that did not come in this form before. */
export function mayBeUnknown({ view, match, knownSession, resumedFromMs, rule }: StepInput): boolean {
  if (!knownSession && resumedFromMs === null) return false;
  if (rule === null || sumTokens(view.infos) < rule.triggerTokens) return false;
  return match === null || locatePlan(match.plan, view.lineage) === null || hasUnproxiedMessages(view, match);
}

/** Whether it may be worth cutting a history that was never sent before through the product. */
export function mayBeResumed({ view, match, knownSession, rule }: StepInput): boolean {
  if (knownSession || match !== null || rule === null || findFreshPrompt(view) < 0) return false;
  return sumTokens(view.infos) >= rule.triggerTokens && view.infos.some(({ role }) => role === 'assistant');
}

/** Text after tool results ends a manual-thinking turn, and may not stand beside an open server tool. */
function mayAddInLoop(view: ConversationView): boolean {
  const turn = splitTurns(view).at(-1);
  return turn !== undefined && canCutInLoop(view) && splitRounds(view, turn).at(-1)?.end === turn.end;
}

type Cuts = Pick<EpochStep, 'cut' | 'rounds'>;

const hasCut = ({ cut, rounds }: Cuts): boolean => cut !== null || rounds.length > 0;

/**
 * At a prompt, cuts whole turns, and old rounds of complete turns that stay. Inside a tool loop, cuts rounds of the
 * running turn with them. One sum counts what carrying all of them has cost since the last cut.
 */
function decideCuts(input: StepInput, current: EpochPlan | null, fresh: number): Cuts {
  const { view, rule } = input;
  if (rule === null || (fresh < 0 && !canCutInLoop(view))) return NO_CUTS;
  const { idle, ...cutInput } = buildCutInput(input, current, rule);
  const roundInput = fresh >= 0 ? null : buildRoundInput(input, current, cutInput, rule);
  const running = roundInput === null ? null : decideRoundCut(roundInput, rule);
  // The round cut already rewrites everything after the head, so cutting turns as well costs nothing.
  const turnRule = running === null ? rule : { ...rule, margin: 0, triggerTokens: 0, minDropShare: 0 };
  const turns = decideCut(cutInput, turnRule);
  if (turns.kind === 'keep') return running === null ? NO_CUTS : { cut: null, rounds: [running] };
  const { because } = turns;
  const rounds = idle.map((each) => ({ ...each, because }));
  return {
    cut: turns.through > cutInput.absorbed ? turns : null,
    rounds: running === null ? rounds : [...rounds, running],
  };
}

/** With manual thinking, the running turn must start with its thinking, which a cut would strip. */
const canCutInLoop = (view: ConversationView): boolean => isToolRound(view) && hasLoopCuts(view);

function hasLoopCuts(view: ConversationView): boolean {
  return !view.manualThinking && findModelTraits(view.model).thinking !== 'manual';
}

const hasThinking = ({ infos }: ConversationView): boolean => infos.some((info) => info.hasThinking);

/** Thinking in an answer that did not pass the proxy is bound to the client's own prefix, not to the plan's. */
function hasUnproxiedMessages({ infos }: ConversationView, { plan, servedAt, signatures }: Match): boolean {
  if (isEmptyPlan(plan)) return false;
  const answer = infos[servedAt + 1];
  const isOther = answer?.hasThinking === true && signatures.length > 0 && !signatures.includes(answer.signature);
  return isOther || infos.some((info, index) => index > servedAt + 1 && info.hasThinking);
}

/** Turns that a cut could need and that have no durable node yet; empty while the history is far from the trigger. */
export function selectTurnsToPrepare(input: StepInput): TurnSpan[] {
  const { rule, isDurable, match } = input;
  if (rule === null) return [];
  const { turns, absorbed } = buildCutInput(input, match?.plan ?? null, rule);
  const history = sumTokens(turns.slice(absorbed));
  const trigger = rule.targetTokens > 0 ? Math.min(rule.triggerTokens, rule.targetTokens / 2) : rule.triggerTokens;
  if (history < trigger * 0.75) return [];
  return turns.slice(absorbed, countEligibleTurns(turns, rule)).filter((turn) => !isDurable(turn));
}

/** Parts of the running turn that a cut inside it could need. */
export function selectPartsToPrepare(input: StepInput): PartSpan[] {
  const { view, rule, match } = input;
  if (rule === null || !canCutInLoop(view)) return [];
  const plan = match?.plan ?? null;
  const roundInput = buildRoundInput(input, plan, buildCutInput(input, plan, rule), rule);
  return roundInput === null ? [] : selectParts(roundInput, rule);
}

function buildCutInput(input: StepInput, plan: EpochPlan | null, rule: CutRule) {
  const { view, isDurable, countHeld } = input;
  const location = plan === null ? null : locatePlan(plan, view.lineage);
  const turns = measureSentTurns(view, splitTurns(view), location);
  const absorbed = turns.filter((turn) => turn.end <= (location?.cutEnd ?? 0)).length;
  const spans = [...turns.slice(0, absorbed), ...(location?.rounds ?? [])];
  const dropped = spans.flatMap(({ start, end }) => view.infos.slice(start, end));
  const budget = getBudget(openAccount(input), rule.lossShare);
  const idle = hasLoopCuts(view) ? findIdleRounds({ view, turns, absorbed, location, isDurable }, rule) : NO_IDLE;
  const ownTokens = input.ownTokens + input.roundsTokens * idle.rounds.length;
  const context = buildCutContext({ ...input, ownTokens }, { dropped, budget });
  // The prompt cache holds only what a plan that is gone has sent.
  const cold = context.cold || plan === null;
  const finished = hasLoopCuts(view) ? turns.slice(absorbed, -1) : [];
  const carried = finished.reduce(
    (sum, turn) => sum + carriedByRounds(view, { turn, absorbedEnd: roundsEnd(location, turn) }, { rule, ...context }),
    0,
  );
  const { droppedTokens, carriedTokens } = idle;
  const beside = { historyTokens: 0, droppedTokens, carried: carried + context.prices.read * carriedTokens };
  return { turns, absorbed, isDurable, countHeld, context: { ...context, cold }, beside, idle: idle.rounds };
}

const NO_IDLE: IdleRounds = { rounds: [], droppedTokens: 0, carriedTokens: 0 };

function buildRoundInput(
  { view, isDurable, roundsTokens }: StepInput,
  plan: EpochPlan | null,
  cutInput: CutInput,
  rule: CutRule,
): RoundCutInput | null {
  const { turns, absorbed } = cutInput;
  const { aroundTokens, requestTokens } = cutInput.context;
  const more = { aroundTokens: aroundTokens + roundsTokens, requestTokens: requestTokens + roundsTokens };
  const context = { ...cutInput.context, ...more };
  const turn = turns.at(-1);
  if (turn === undefined || absorbed === turns.length) return null;
  const absorbedEnd = roundsEnd(plan === null ? null : locatePlan(plan, view.lineage), turn);
  return { view, turn, absorbedEnd, isDurable, context, ...besideRounds(cutInput, rule) };
}

/**
 * The answer up to which a new epoch strips thinking. With manual thinking, the last assistant turn keeps its own,
 * because it has to start with it; those models do not bind thinking to the prefix.
 */
function findStripEnd(view: ConversationView, fresh: number): string | null {
  const turns = splitTurns(view);
  const running = turns.at(-1);
  if (running === undefined) return null;
  const last = fresh >= 0 ? turns.at(-2) : running;
  const end = view.manualThinking ? (last?.start ?? 0) : fresh >= 0 ? fresh : view.lineage.length;
  // What Claude Code does next may drop or change the newest message.
  return view.lineage[view.infos.slice(0, end).findLastIndex(({ role }) => role === 'assistant')] ?? null;
}

/** The plan to send when nothing new may be decided; null sends the received bytes. */
export function chooseReplayPlan(view: ConversationView, match: Match | null, knownSession: boolean): EpochPlan | null {
  if (match === null && !knownSession) return null;
  const plan = match !== null && locatePlan(match.plan, view.lineage) !== null ? match.plan : null;
  if (match !== null && plan !== null && plan.broken !== 'structure') {
    if (plan.broken === false && !hasUnproxiedMessages(view, match)) return plan;
    return { ...plan, strippedThrough: findStripEnd(view, findFreshPrompt(view)) };
  }
  return stripThinkingPlan(view, match?.plan ?? null);
}

/** The plan of a subagent, which gets its facts with its first message and nothing else. */
export function buildSlicePlan(
  { view, fence, ...own }: PlanSeed & Pick<PlanInput, 'view' | 'sessionId'>,
  { text: lines, ...slice }: GivenSlice,
): EpochPlan {
  const anchor = view.lineage[view.infos.findLastIndex(({ role }) => role === 'user')] as string;
  const text = fenceLines(lines.split('\n'), fence);
  return { ...EMPTY_PLAN, ...own, injections: [{ anchor, channel: 'block', text, nodeIds: [] }], slice };
}

export const EMPTY_PLAN: Omit<EpochPlan, 'id' | 'sessionId' | 'createdAtMs'> = {
  epoch: 0,
  cut: null,
  rounds: [],
  strippedThrough: null,
  systemBlock: null,
  systemNodeIds: [],
  injections: [],
  broken: false,
};

/** A plan that only strips thinking, which is bound to a prefix that can no longer be sent; null without thinking. */
export function stripThinkingPlan(view: ConversationView, lost: EpochPlan | null): EpochPlan | null {
  if (!hasThinking(view)) return null;
  const of = { id: '', sessionId: lost?.sessionId ?? '', createdAtMs: 0, epoch: lost?.epoch ?? 0 };
  return { ...EMPTY_PLAN, ...of, strippedThrough: findStripEnd(view, findFreshPrompt(view)) };
}

/** Recalls nothing and keeps the system block. */
export function cutsInLoop(view: ConversationView, { rounds }: EpochStep): boolean {
  return rounds.length > 0 && findFreshPrompt(view) < 0;
}

export const isCut = (step: Step): boolean => step.kind === 'epoch' && hasCut(step);

/** If such a cut is invalid, a new plan without it is needed; one for the sake of the cut falls back to the plan before. */
export const cutsAnew = (step: Step): boolean => isCut(step) && step.kind === 'epoch' && step.because !== 'cut';

/** Tokens of memory text that a step may add. A cut pays for the text that goes with it. */
export function allowStep(input: StepInput, step: Step, config: PlanConfig): number {
  if (usesSystemField(config)) return Number.POSITIVE_INFINITY;
  const account = openAccount(input);
  if (!isCut(step)) return allowTokens(account, config);
  const spare = (step.kind === 'epoch' ? step.cut?.spare : undefined) ?? 0;
  return Math.max(config.leastTokens, input.ownTokens) + Math.floor(spare / account.prices.write);
}

export interface PlanConfig extends Omit<Config['inject'], 'libraryTokens' | 'handoffNodes'> {
  /** For all memory queries of one request together. */
  readonly memoryDeadlineMs: number;
}

/** What memory returned within the deadline. */
export interface RecalledMemory {
  readonly brief: readonly string[];
  readonly sessionLines: readonly Line[];
  readonly library: readonly string[];
  /** Lines for facts that changed since they were shown, within a budget of their own. */
  readonly facts: readonly string[];
  readonly recalled: readonly Line[];
  /** Of the turns that a cut absorbs. */
  readonly quotes: ReadonlyMap<string, string>;
  /** False when a query failed or was late. */
  readonly isComplete: boolean;
}

export interface PlanInput {
  readonly view: ConversationView;
  readonly sessionId: string;
  readonly step: Exclude<Step, { kind: 'replay' }>;
  readonly allowedTokens: number;
}

/** Values that differ for every new plan. */
interface PlanSeed extends Pick<EpochPlan, 'id' | 'createdAtMs'> {
  /** Random text of the fence around injected lines. */
  readonly fence: string;
}

/** Tool output is needed again less often than conversation, so its preamble gets this fraction of the budget. */
const ROUNDS_FRACTION = 3;

export function roundsBudget({ preambleTokens }: Pick<PlanConfig, 'preambleTokens'>): number {
  return Math.ceil(preambleTokens / ROUNDS_FRACTION);
}

export function buildPlan(
  memory: MemorySource,
  input: PlanInput & PlanSeed,
  recalled: RecalledMemory,
  config: PlanConfig,
): EpochPlan {
  const { view, step } = input;
  if (step.kind === 'epoch') return buildEpochPlan(memory, { ...input, step }, recalled, config);
  const injections = [...step.plan.injections, ...renderInjections(input, recalled, config)];
  const plan = { ...step.plan, injections };
  if (!usesSystemField(config) || !recalled.isComplete) return plan;
  return replaceSystemBlock(plan, renderSystemBlock(systemTexts(recalled, config)), { ...input, view });
}

type EpochInput = PlanSeed & Omit<PlanInput, 'step'> & { readonly step: EpochStep };

function buildEpochPlan(
  memory: MemorySource,
  input: EpochInput,
  recalled: RecalledMemory,
  config: PlanConfig,
): EpochPlan {
  const { view, step, sessionId, allowedTokens } = input;
  // What answers the prompt comes first.
  const left = allowedTokens - sumTextTokens(renderInjections(input, { ...recalled, facts: [] }, config));
  const system = mayAddSystemBlock(view, step, config) ? fitSystemBlock(systemTexts(recalled, config), left) : null;
  const cut =
    step.cut === null
      ? (step.from?.cut ?? null)
      : buildCut(memory, input, { through: step.cut.through, quotes: recalled.quotes }, config);
  const newTexts = [system?.text, step.cut === null ? '' : cut?.preamble];
  const shown = new Set(newTexts.flatMap((text) => text?.split('\n') ?? []));
  const fresh = recalled.recalled.filter((line) => !shown.has(line.text));
  const former = step.cut === null || cutsInLoop(view, step) ? step.from : null;
  const { systemBlock, systemNodeIds, systemFound } = former?.systemBlock == null ? toSystemPart(system) : former;
  const getPlace = ({ after }: RoundCut): number => view.lineage.indexOf(after);
  const rounds = [...keepRoundCuts(view, step), ...buildRoundCuts(memory, input, config)];
  return {
    id: input.id,
    sessionId,
    createdAtMs: input.createdAtMs,
    epoch: step.from === null ? 0 : step.from.epoch + 1,
    cut,
    rounds: rounds.sort((one, other) => getPlace(one) - getPlace(other)),
    strippedThrough: step.strippedThrough,
    ...{ systemBlock, systemNodeIds, systemFound },
    injections: [
      ...(step.from === null ? [] : keepInjections(view, step.from, step)),
      ...renderInjections(
        { ...input, allowedTokens: allowedTokens - (system === null ? 0 : countTokens(system.text)) },
        { recalled: fresh, facts: [] },
        config,
      ),
    ],
    broken: false,
  };
}

/** What corrects shown facts, and the recalled lines that fit beside it, the best first. */
function renderInjections(
  { view, fence, allowedTokens }: Pick<PlanInput & PlanSeed, 'view' | 'fence' | 'allowedTokens'>,
  { recalled, facts }: Pick<RecalledMemory, 'recalled' | 'facts'>,
  config: PlanConfig,
): Injection[] {
  const options = {
    facts,
    mode: config.retrieval,
    takesSystemMessages: view.takesSystemMessages,
    budgetTokens: config.retrievalTokens,
    fence,
    anchor: view.lineage[view.infos.findLastIndex(({ role }) => role === 'user')] as string,
  };
  let kept: readonly Line[] = [];
  for (const line of recalled) {
    const more = [...kept, line];
    if (sumTextTokens(renderRetrieval(more, options)) <= allowedTokens) kept = more;
  }
  return renderRetrieval(kept, options);
}

function sumTextTokens(texts: readonly { readonly text: string }[]): number {
  return texts.reduce((sum, { text }) => sum + countTokens(text), 0);
}

/** Without what does not fit: the end of the library first, then the last lines, then the brief's. */
function fitSystemBlock(texts: SystemTexts, most: number): Rendered | null {
  const { brief, lines, library = [] } = texts;
  for (let count = brief.length + lines.length + library.length; count > 0; count -= 1) {
    const left = {
      brief: takeEntries(brief, count),
      lines: lines.slice(0, Math.max(0, count - brief.length)),
      library: takeEntries(library, Math.max(0, count - brief.length - lines.length)),
    };
    const block = renderSystemBlock({ ...texts, ...left });
    if (block === null || sumTextTokens([block]) <= most) return block;
  }
  return null;
}

/** Of the first lines, without headings at the end. */
function takeEntries(all: readonly string[], count: number): readonly string[] {
  const taken = all.slice(0, count);
  return taken.slice(0, taken.findLastIndex((line) => !line.startsWith('#')) + 1);
}

function toSystemPart(block: Rendered | null): Pick<EpochPlan, 'systemBlock' | 'systemNodeIds' | 'systemFound'> {
  return { systemBlock: block?.text ?? null, systemNodeIds: block?.nodeIds ?? [], systemFound: block?.found };
}

/** Adding a system block after the first answer would invalidate all thinking so far. */
export function mayAddSystemBlock(view: ConversationView, step: EpochStep, config: Pick<PlanConfig, 'retrieval'>) {
  if (step.because !== 'first') return step.because !== 'broken';
  const isAnswered = view.infos.some((info) => info.role === 'assistant');
  return !isAnswered || (usesSystemField(config) && !findModelTraits(view.model).bindsThinking);
}

export const usesSystemField = ({ retrieval }: Pick<PlanConfig, 'retrieval'>): boolean => retrieval === 'system-field';

function systemTexts({ brief, sessionLines, library, recalled }: RecalledMemory, config: PlanConfig): SystemTexts {
  const { systemTokens, retrievalTokens } = config;
  if (!usesSystemField(config)) {
    // The recalled form of a memory has more detail than its session line, unless that is one of several.
    const byNode = new Map(recalled.map((line) => [line.nodeId, line]));
    const nodes = sessionLines.map(({ nodeId }) => nodeId);
    const isOnly = (nodeId: string): boolean => nodes.indexOf(nodeId) === nodes.lastIndexOf(nodeId);
    const standing = sessionLines.map((line) => (isOnly(line.nodeId) ? byNode.get(line.nodeId) : undefined) ?? line);
    const lines = [...standing, ...recalled];
    return { brief, library, lines: uniqueLines(lines), budgetTokens: systemTokens };
  }
  const texts = new Set(sessionLines.map((line) => line.text));
  return {
    brief,
    library,
    lines: uniqueLines(sessionLines),
    budgetTokens: systemTokens,
    recalled: { lines: uniqueLines(recalled.filter((line) => !texts.has(line.text))), budgetTokens: retrievalTokens },
  };
}

/** A changed system prompt starts an epoch; models that bind thinking to it lose the thinking so far. */
function replaceSystemBlock(
  plan: EpochPlan,
  block: Rendered | null,
  { view, id, createdAtMs }: Pick<PlanInput & PlanSeed, 'view' | 'id' | 'createdAtMs'>,
): EpochPlan {
  if ((block?.text ?? null) === plan.systemBlock) return plan;
  const { bindsThinking } = findModelTraits(view.model);
  return {
    ...plan,
    ...toSystemPart(block),
    id,
    createdAtMs,
    epoch: plan.epoch + 1,
    strippedThrough: bindsThinking ? findStripEnd(view, findFreshPrompt(view)) : plan.strippedThrough,
  };
}

function buildCut(
  memory: MemorySource,
  { view, fence }: EpochInput,
  { through, quotes }: { readonly through: number } & Pick<RecalledMemory, 'quotes'>,
  { preambleTokens: budgetTokens }: PlanConfig,
): Cut {
  const all = splitTurns(view);
  const turns = all.slice(0, through);
  const turnIds = turns.map((turn) => turn.endHash);
  const { nodeIds, lines, nodes } = readCoveringNodes(memory, turnIds);
  const quotesOf = quotesByNode(turnIds, nodes, quotes);
  const quoted = lines.map((line) => ({ ...line, quotes: quotesOf.get(line.nodeId) ?? [] }));
  const absorbedTokens = turns.reduce((sum, turn) => sum + turn.tokens, 0);
  const kept = all[through]?.start ?? -1;
  const place = isMergedPrompt(view.infos, kept)
    ? { through: view.lineage[kept] as string, merged: true as const }
    : { through: turnIds.at(-1) as string };
  const note = noteLost(view, findHeadEnd(view), 'merged' in place ? kept + 1 : kept);
  const preamble = renderPreamble(quoted, { budgetTokens, absorbedTokens }, fence, note);
  return { ...place, preamble: preamble.text, nodeIds, pins: 4 };
}

const LOADED = /"type":"tool_reference","tool_name":"([\w-]{1,128})"/g;
const SKILL = /"text":"Base directory for this skill: [^"\\]{0,300}?([\w.-]{1,80})(?:\\n|")/g;
/** For models without system messages they are appended to the result of a tool; after a compaction, shown as a file. */
const INSTRUCTIONS =
  /(?<=\\n<system-reminder>\\nContents of |(?:\\n|")Called the Read tool with the following input: \{\\"file_path\\":\\")(\/[^"\\\s<>]{1,300}\.md)(?= \([^"\\]{1,200}\):\\n|:\\n|(?<=\/CLAUDE\.(?:local\.)?md)\\")/g;
const OFFERED =
  /\\n<system-reminder>\\nThe following deferred tools are now available via ToolSearch\.(?:[^"\\]|\\"){1,600}:((?:\\n[\w-]{1,128}){1,200})\\n/g;
const MOVED = '\\n<system-reminder>\\n# Environment update\\n - Primary working directory: ';
const STARTED =
  /"(?:content|text)":"Command (?:running|was|did not) [^":\\]{1,100}(?:with ID|\(ID): (\w{1,40})[^"\\]{0,300} is being written to: ([^\s"\\]{1,500}\.output)|"(?:Async agent launched successfully\.[^"\\]{0,300}\\nagentId: |Monitor started \(task |Workflow launched in background\. Task ID: )([\w-]{1,40})|Background agent \\"[^"\\]{1,200}\\" \((\w{1,40})\) is still running|Background (?:shell|monitor) (\w{1,40}) \(\\"[^"\\]{0,300}\\"\) is still running/g;

/** Of messages `[start, end)`, what Claude Code says again when it compacts: skills, loaded tools, what runs. */
function noteLost({ body, scan }: ConversationView, start: number, end: number): string {
  const middle = scan.messages[end]?.start ?? body.length;
  const [cut, kept] = [body.toString('utf8', scan.messages[start]?.start, middle), body.toString('utf8', middle)];
  const [tools, skills, files] = [LOADED, SKILL, INSTRUCTIONS].map((form) => {
    const shown = Array.from(kept.matchAll(form), ([, name]) => name);
    return new Set(Array.from(cut.matchAll(form), ([, name]) => name).filter((name) => !shown.includes(name)));
  });
  const hasEnded = (id: string): boolean =>
    [`<task-id>${id}<`, `"TaskStop","input":{"task_id":"${id}"`].some((sign) => body.includes(sign));
  const tasks = [...cut.matchAll(STARTED)].flatMap(([, command, file, ...others]) => {
    const id = command ?? others.find((other) => other !== undefined) ?? '';
    return hasEnded(id) ? [] : `${id}${file ? ` (prints to ${file})` : ''}`;
  });
  const offers = Array.from(cut.matchAll(OFFERED), ([, list = '']) => list.split('\\n').slice(1)).flat();
  const [names, used, read, running, offered] = [tools, skills, files, new Set(tasks), new Set(offers)].map((each) =>
    [...(each ?? [])].join(', '),
  );
  const unloaded = ` ToolSearch had loaded ${names}, no longer loaded: load one again before you call it.`;
  const unlisted = ` ToolSearch can also load ${offered}.`;
  const untold = ` The text of the skill ${used} is no longer shown: invoke it again before you follow it.`;
  const unread = ` Instructions of ${read} are no longer shown: read them again before you work in that folder.`;
  const left = ` Still in the background, not to be started again: ${running}.`;
  const moved = cut.includes(MOVED) && !kept.includes(MOVED) ? ' The directory has changed: see `pwd`.' : '';
  return `${names && unloaded}${offered && unlisted}${used && untold}${read && unread}${running && left}${moved}`;
}

/** A turn is quoted by the first of its nodes, and a node is represented by quotes only if all its turns have one. */
function quotesByNode(
  turnIds: readonly string[],
  nodes: ReadonlyMap<string, readonly string[]>,
  quotes: ReadonlyMap<string, string>,
): ReadonlyMap<string, readonly string[]> {
  const lines = new Map<string, string[]>();
  const incomplete = new Set<string>();
  for (const turnId of turnIds) {
    const [first] = nodes.get(turnId) ?? [];
    const quote = quotes.get(turnId);
    if (first === undefined) continue;
    if (quote === undefined) incomplete.add(first);
    else lines.set(first, [...(lines.get(first) ?? []), quote]);
  }
  for (const nodeId of incomplete) lines.delete(nodeId);
  return lines;
}

function buildRoundCuts(memory: MemorySource, { view, step, fence }: EpochInput, config: PlanConfig): RoundCut[] {
  return step.rounds.map(({ start, end, parts }) => {
    const partIds = parts.map((part) => part.endHash);
    const { nodeIds, lines } = readCoveringNodes(memory, partIds);
    const preamble = renderRoundsPreamble(lines, roundsBudget(config), fence, noteLost(view, start, end));
    const [after, through] = [view.lineage[start - 1] as string, view.lineage[end - 1] as string];
    return { after, through, preamble: preamble.text, nodeIds, pins: 4 };
  });
}

/** The nodes that represent these turns or parts, and a line for each. */
function readCoveringNodes(memory: MemorySource, turnIds: readonly string[]) {
  const nodes = memory.nodesCovering(turnIds);
  const nodeIds = [...new Set(turnIds.flatMap((id) => nodes.get(id) ?? []))];
  return { nodes, nodeIds, lines: memory.lines(nodeIds).map(toLine) };
}

/**
 * Round cuts of the previous plan in turns that are still sent. One of a former version may reach over a merged prompt,
 * which is now the start of a turn with cuts of its own.
 */
function keepRoundCuts(view: ConversationView, step: EpochStep): RoundCut[] {
  if (step.from === null) return [];
  const located = locatePlan(step.from, view.lineage)?.rounds ?? [];
  const cutEnd = step.cut === null ? 0 : (splitTurns(view)[step.cut.through]?.start ?? 0);
  const isCutAgain = (start: number, end: number): boolean =>
    step.rounds.some((rounds) => rounds.start < end && rounds.end > start);
  return located.filter(({ start, end }) => start >= cutEnd && !isCutAgain(start, end)).map(({ cut }) => cut);
}

/** Injections of the previous plan at prompts that are still sent. */
export function keepInjections(view: ConversationView, from: EpochPlan, { cut, rounds }: EpochStep): Injection[] {
  const firstKept = cut === null ? 0 : (splitTurns(view)[cut.through]?.start ?? 0);
  const head = findHeadEnd(view);
  return from.injections.filter((injection) => {
    const at = view.lineage.indexOf(injection.anchor);
    if (rounds.some(({ start, end }) => at >= start && at < end)) return false;
    return cut === null || at >= firstKept || (at >= 0 && at < head);
  });
}

const uniqueLines = (lines: readonly Line[]): Line[] => [...new Map(lines.map((line) => [line.text, line])).values()];

export function toLine({ nodeId, text, origin, kept }: MemoryLine): Line {
  return { nodeId, text, clean: isCleanOrigin(origin), ...(kept === undefined ? {} : { kept }) };
}
