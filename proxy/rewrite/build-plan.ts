import { isCleanOrigin } from '../../common/turn.ts';
import type { MemoryLine, MemorySource } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findFreshPrompt, findHeadEnd, splitTurns } from '../wire/split-turns.ts';
import { type EpochStep, findStripEnd, type Step } from './decide-step.ts';
import {
  type Line,
  type Rendered,
  type RetrievalMode,
  renderPreamble,
  renderRetrieval,
  renderRoundsPreamble,
  renderSystemBlock,
  type SystemTexts,
} from './injected-text.ts';
import { type Cut, type EpochPlan, type Injection, locatePlan, type RoundCut } from './plan.ts';

export interface PlanConfig {
  readonly retrieval: RetrievalMode;
  readonly retrievalTokens: number;
  readonly systemTokens: number;
  readonly preambleTokens: number;
  /** For all memory queries of one request together. */
  readonly memoryDeadlineMs: number;
}

/** What memory returned within the deadline. */
export interface RecalledMemory {
  readonly brief: readonly string[];
  readonly sessionLines: readonly Line[];
  readonly recalled: readonly Line[];
  /** False when a query failed or was late. */
  readonly isComplete: boolean;
}

export interface PlanInput {
  readonly view: ConversationView;
  readonly sessionId: string;
  readonly step: Exclude<Step, { kind: 'replay' }>;
}

/** Values that differ for every new plan. */
export interface PlanSeed {
  readonly id: string;
  readonly createdAtMs: number;
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
  const injections = [...step.plan.injections, ...renderInjections(input, recalled.recalled, config)];
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
  const { view, step, sessionId } = input;
  const system = mayAddSystemBlock(view, step, config) ? renderSystemBlock(systemTexts(recalled, config)) : null;
  const cut = step.cut === null ? (step.from?.cut ?? null) : buildCut(memory, input, step.cut.through, config);
  const newTexts = [system?.text, step.cut === null ? '' : cut?.preamble];
  const shown = new Set(newTexts.flatMap((text) => text?.split('\n') ?? []));
  const fresh = recalled.recalled.filter((line) => !shown.has(line.text));
  const former = step.cut === null || step.rounds !== null ? step.from : null;
  return {
    id: input.id,
    sessionId,
    createdAtMs: input.createdAtMs,
    epoch: step.from === null ? 0 : step.from.epoch + 1,
    cut,
    rounds: [...keepRoundCuts(view, step), ...buildRoundCuts(memory, input, config)],
    strippedThrough: step.strippedThrough,
    ...(former === null || former.systemBlock === null ? toSystemPart(system) : copySystemPart(former)),
    injections: [
      ...(step.from === null ? [] : keepInjections(view, step.from, step)),
      ...renderInjections(input, fresh, config),
    ],
    broken: false,
  };
}

function renderInjections(
  { view, fence }: Pick<PlanInput & PlanSeed, 'view' | 'fence'>,
  lines: readonly Line[],
  config: PlanConfig,
): Injection[] {
  const fresh = findFreshPrompt(view);
  if (fresh < 0) return [];
  return renderRetrieval(lines, {
    mode: config.retrieval,
    takesSystemMessages: view.takesSystemMessages,
    budgetTokens: config.retrievalTokens,
    fence,
    anchor: view.lineage[fresh] as string,
  });
}

type SystemPart = Pick<EpochPlan, 'systemBlock' | 'systemNodeIds' | 'systemFound'>;

function toSystemPart(block: Rendered | null): SystemPart {
  const { text: systemBlock, nodeIds: systemNodeIds, found } = block ?? { text: null, nodeIds: [] };
  return { systemBlock, systemNodeIds, ...(found === undefined ? {} : { systemFound: found }) };
}

function copySystemPart({ systemBlock, systemNodeIds, systemFound }: EpochPlan): SystemPart {
  return { systemBlock, systemNodeIds, ...(systemFound === undefined ? {} : { systemFound }) };
}

/** Adding a system block after the first answer would invalidate all thinking so far. */
export function mayAddSystemBlock(
  view: ConversationView,
  step: EpochStep,
  config: Pick<PlanConfig, 'retrieval'>,
): boolean {
  if (step.because !== 'first') return step.because !== 'broken';
  const isAnswered = view.infos.some((info) => info.role === 'assistant');
  return !isAnswered || (usesSystemField(config) && !findModelTraits(view.model).bindsThinking);
}

export function usesSystemField({ retrieval }: Pick<PlanConfig, 'retrieval'>): boolean {
  return retrieval === 'system-field';
}

function systemTexts({ brief, sessionLines, recalled }: RecalledMemory, config: PlanConfig): SystemTexts {
  const { systemTokens, retrievalTokens } = config;
  if (!usesSystemField(config)) {
    // The recalled form of a memory has more detail than its session line.
    const byNode = new Map(recalled.map((line) => [line.nodeId, line]));
    const lines = [...sessionLines.map((line) => byNode.get(line.nodeId) ?? line), ...recalled];
    return { brief, lines: uniqueLines(lines), budgetTokens: systemTokens };
  }
  const texts = new Set(sessionLines.map((line) => line.text));
  const fresh = uniqueLines(recalled.filter((line) => !texts.has(line.text)));
  return {
    brief,
    lines: uniqueLines(sessionLines),
    budgetTokens: systemTokens,
    recalled: { lines: fresh, budgetTokens: retrievalTokens },
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
  const { systemFound: _, ...rest } = plan;
  return {
    ...rest,
    ...toSystemPart(block),
    id,
    createdAtMs,
    epoch: plan.epoch + 1,
    strippedThrough: bindsThinking ? findStripEnd(view, findFreshPrompt(view)) : plan.strippedThrough,
  };
}

function buildCut(memory: MemorySource, { view, fence }: EpochInput, through: number, config: PlanConfig): Cut {
  const turnIds = splitTurns(view)
    .slice(0, through)
    .map((turn) => turn.endHash);
  const { nodeIds, lines } = readCoveringNodes(memory, turnIds);
  const preamble = renderPreamble(lines, config.preambleTokens, fence);
  return { through: turnIds.at(-1) as string, preamble: preamble.text, nodeIds };
}

function buildRoundCuts(memory: MemorySource, { view, step, fence }: EpochInput, config: PlanConfig): RoundCut[] {
  if (step.rounds === null) return [];
  const { start, end, parts } = step.rounds;
  const partIds = parts.map((part) => part.endHash);
  const { nodeIds, lines } = readCoveringNodes(memory, partIds);
  const preamble = renderRoundsPreamble(lines, roundsBudget(config), fence);
  const [after, through] = [view.lineage[start - 1] as string, view.lineage[end - 1] as string];
  return [{ after, through, preamble: preamble.text, nodeIds }];
}

/** The nodes that represent these turns or parts, and a line for each. */
function readCoveringNodes(memory: MemorySource, turnIds: readonly string[]): { nodeIds: string[]; lines: Line[] } {
  const nodes = memory.nodesCovering(turnIds);
  const nodeIds = [...new Set(turnIds.flatMap((id) => nodes.get(id) ?? []))];
  return { nodeIds, lines: memory.lines(nodeIds).map(toLine) };
}

/** Round cuts of the previous plan in turns that are still sent. */
function keepRoundCuts(view: ConversationView, step: EpochStep): RoundCut[] {
  if (step.from === null) return [];
  const located = locatePlan(step.from, view.lineage)?.rounds ?? [];
  const cutEnd = step.cut === null ? 0 : (splitTurns(view)[step.cut.through]?.start ?? 0);
  return located.filter(({ start }) => start >= cutEnd && start !== step.rounds?.start).map(({ cut }) => cut);
}

/** Injections of the previous plan at prompts that are still sent. */
export function keepInjections(view: ConversationView, from: EpochPlan, step: EpochStep): Injection[] {
  if (step.cut === null) return [...from.injections];
  const firstKept = splitTurns(view)[step.cut.through]?.start ?? 0;
  const head = findHeadEnd(view);
  return from.injections.filter((injection) => {
    const at = view.lineage.indexOf(injection.anchor);
    return at >= firstKept || (at >= 0 && at < head);
  });
}

function uniqueLines(lines: readonly Line[]): Line[] {
  return [...new Map(lines.map((line) => [line.text, line])).values()];
}

export function toLine({ nodeId, text, origin, kept }: MemoryLine): Line {
  return { nodeId, text, clean: isCleanOrigin(origin), ...(kept === undefined ? {} : { kept }) };
}
