import { isCleanOrigin } from '../../common/turn.ts';
import type { MemoryLine, MemorySource } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { findModelTraits } from '../wire/models.ts';
import { findFreshPrompt, findHeadEnd, splitTurns } from '../wire/split-turns.ts';
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
import { type EpochPlan, type Injection, locatePlan, type RoundCut } from './plan.ts';
import { findStripEnd, type Step } from './plan-step.ts';

export interface PlanConfig {
  readonly retrieval: RetrievalMode;
  readonly retrievalTokens: number;
  readonly systemTokens: number;
  readonly preambleTokens: number;
  /** All that waits on memory for one request ends after this. */
  readonly memoryDeadlineMs: number;
}

/** What memory had to say in time. */
export interface RecalledMemory {
  readonly brief: readonly string[];
  readonly sessionLines: readonly Line[];
  readonly recalled: readonly Line[];
  /** False where something of it was late or failed. */
  readonly isComplete: boolean;
}

/** What a request asks for, of which conversation. */
export interface PlanInput {
  readonly view: ConversationView;
  readonly sessionId: string;
  readonly step: Exclude<Step, { kind: 'replay' }>;
}

/** Of the preamble's budget: what tools said is asked for again less often than what people said. */
const ROUNDS_PART = 3;

export function roundsBudget({ preambleTokens }: Pick<PlanConfig, 'preambleTokens'>): number {
  return Math.ceil(preambleTokens / ROUNDS_PART);
}

/** The plan that this step asks for, with what memory said put where it may stand. */
export function buildPlan(
  memory: MemorySource,
  occasion: PlanInput & { readonly createdAtMs: number; readonly id: string; readonly fence: string },
  said: RecalledMemory,
  config: PlanConfig,
): EpochPlan {
  const { view, step, sessionId } = occasion;
  const fresh = findFreshPrompt(view);
  const place = (lines: readonly Line[]): Injection[] =>
    fresh < 0
      ? []
      : renderRetrieval(lines, {
          mode: config.retrieval,
          takesSystemMessages: view.takesSystemMessages,
          budgetTokens: config.retrievalTokens,
          fence: occasion.fence,
          anchor: view.lineage[fresh] as string,
        });
  const system = (mayHead: boolean): Rendered | null => (mayHead ? renderSystemBlock(systemTexts(said, config)) : null);
  if (step.kind === 'extend') {
    const grown = { ...step.plan, injections: [...step.plan.injections, ...place(said.recalled)] };
    return usesSystemField(config) && said.isComplete ? withField(grown, system(true), occasion) : grown;
  }

  const mayHead = mayAddSystemBlock(view, step, config);
  const head = system(mayHead);
  const cut = step.cut === null ? (step.from?.cut ?? null) : formCut(memory, occasion, config);
  const told = new Set([head?.text, step.cut === null ? '' : cut?.preamble].flatMap((text) => text?.split('\n') ?? []));
  const kept = step.from === null ? [] : keptInjections(view, step.from, step);
  const former = step.cut === null || step.rounds !== null ? step.from : null;
  return {
    id: occasion.id,
    sessionId,
    createdAtMs: occasion.createdAtMs,
    epoch: step.from === null ? 0 : step.from.epoch + 1,
    cut,
    rounds: [...keptRounds(view, step), ...formRounds(memory, occasion, config)],
    strippedThrough: step.strippedThrough,
    ...(former === null || former.systemBlock === null ? systemOf(head) : formerSystem(former)),
    injections: [...kept, ...place(said.recalled.filter((line) => !told.has(line.text)))],
    broken: false,
  };
}

type SystemPart = Pick<EpochPlan, 'systemBlock' | 'systemNodeIds' | 'systemFound'>;

function systemOf(block: Rendered | null): SystemPart {
  const { text: systemBlock, nodeIds: systemNodeIds, found } = block ?? { text: null, nodeIds: [] };
  return { systemBlock, systemNodeIds, ...(found === undefined ? {} : { systemFound: found }) };
}

function formerSystem({ systemBlock, systemNodeIds, systemFound }: EpochPlan): SystemPart {
  return { systemBlock, systemNodeIds, ...(systemFound === undefined ? {} : { systemFound }) };
}

/** A system block that was not there when the answers so far were given would unbind all their thinking. */
export function mayAddSystemBlock(
  view: ConversationView,
  step: Extract<Step, { kind: 'epoch' }>,
  config: Pick<PlanConfig, 'retrieval'>,
): boolean {
  if (step.because !== 'first') return step.because !== 'broken';
  const answered = view.infos.some((info) => info.role === 'assistant');
  return !answered || (usesSystemField(config) && !findModelTraits(view.model).bindsThinking);
}

export function usesSystemField({ retrieval }: Pick<PlanConfig, 'retrieval'>): boolean {
  return retrieval === 'system-field';
}

function systemTexts({ brief, sessionLines: standing, recalled }: RecalledMemory, config: PlanConfig): SystemTexts {
  const { systemTokens, retrievalTokens } = config;
  if (!usesSystemField(config)) {
    // What is recalled of a memory says more than what always stands there.
    const byNode = new Map(recalled.map((line) => [line.nodeId, line]));
    const lines = [...standing.map((line) => byNode.get(line.nodeId) ?? line), ...recalled];
    return { brief, lines: distinct(lines), budgetTokens: systemTokens };
  }
  const has = new Set(standing.map((line) => line.text));
  const fresh = distinct(recalled.filter((line) => !has.has(line.text)));
  return {
    brief,
    lines: distinct(standing),
    budgetTokens: systemTokens,
    recalled: { lines: fresh, budgetTokens: retrievalTokens },
  };
}

/** Another system prompt is another epoch: where thinking is bound to it, the thinking so far has to go. */
function withField(
  plan: EpochPlan,
  field: Rendered | null,
  { view, id, createdAtMs }: PlanInput & { readonly id: string; readonly createdAtMs: number },
): EpochPlan {
  if ((field?.text ?? null) === plan.systemBlock) return plan;
  const binds = findModelTraits(view.model).bindsThinking;
  const { systemFound: _, ...rest } = plan;
  return {
    ...rest,
    ...systemOf(field),
    id,
    createdAtMs,
    epoch: plan.epoch + 1,
    strippedThrough: binds ? findStripEnd(view, findFreshPrompt(view)) : plan.strippedThrough,
  };
}

function formCut(memory: MemorySource, { view, step, fence }: PlanInput & { fence: string }, config: PlanConfig) {
  if (step.kind !== 'epoch' || step.cut === null) return null;
  const absorbed = splitTurns(view).slice(0, step.cut.through);
  const ends = absorbed.map((turn) => turn.endHash);
  const { nodeIds, lines } = nodesCovering(memory, ends);
  const preamble = renderPreamble(lines, config.preambleTokens, fence);
  return { through: ends.at(-1) as string, preamble: preamble.text, nodeIds };
}

function formRounds(
  memory: MemorySource,
  { view, step, fence }: PlanInput & { fence: string },
  config: PlanConfig,
): RoundCut[] {
  if (step.kind !== 'epoch' || step.rounds === null) return [];
  const { start, end, parts } = step.rounds;
  const { nodeIds, lines } = nodesCovering(
    memory,
    parts.map((part) => part.endHash),
  );
  const preamble = renderRoundsPreamble(lines, roundsBudget(config), fence);
  const [after, through] = [view.lineage[start - 1] as string, view.lineage[end - 1] as string];
  return [{ after, through, preamble: preamble.text, nodeIds }];
}

function nodesCovering(memory: MemorySource, ends: readonly string[]): { nodeIds: string[]; lines: Line[] } {
  const nodes = memory.nodesCovering(ends);
  const nodeIds = [...new Set(ends.flatMap((end) => nodes.get(end) ?? []))];
  return { nodeIds, lines: memory.lines(nodeIds).map(toLine) };
}

/** Rounds that the plan before dropped, of turns that are still there. */
function keptRounds(view: ConversationView, step: Extract<Step, { kind: 'epoch' }>): RoundCut[] {
  if (step.from === null) return [];
  const located = locatePlan(step.from, view.lineage)?.rounds ?? [];
  const cutEnd = step.cut === null ? 0 : (splitTurns(view)[step.cut.through]?.start ?? 0);
  return located.filter(({ start }) => start >= cutEnd && start !== step.rounds?.start).map(({ cut }) => cut);
}

export function keptInjections(
  view: ConversationView,
  from: EpochPlan,
  step: Extract<Step, { kind: 'epoch' }>,
): Injection[] {
  if (step.cut === null) return [...from.injections];
  const firstKept = splitTurns(view)[step.cut.through]?.start ?? 0;
  const head = findHeadEnd(view);
  return from.injections.filter((injection) => {
    const at = view.lineage.indexOf(injection.anchor);
    return at >= firstKept || (at >= 0 && at < head);
  });
}

function distinct(lines: readonly Line[]): Line[] {
  return [...new Map(lines.map((line) => [line.text, line])).values()];
}

export function toLine({ nodeId, text, origin }: MemoryLine): Line {
  return { nodeId, text, clean: isCleanOrigin(origin) };
}
