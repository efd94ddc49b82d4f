import type {
  DetailInput,
  DetailResult,
  LanguageModel,
  SummaryInput,
  SummaryResult,
  TopicShiftInput,
  TopicShiftReading,
} from '../../memory/models/model.ts';

type Step<Input, Output> = (input: Input, signal: AbortSignal) => Output | Promise<Output>;

export interface Script {
  readonly sense?: Step<TopicShiftInput, TopicShiftReading>;
  readonly compact?: Step<SummaryInput, SummaryResult>;
  readonly detail?: Step<DetailInput, DetailResult>;
}

export interface ScriptedModel extends LanguageModel {
  readonly sensed: TopicShiftInput[];
  readonly compacted: SummaryInput[];
  readonly detailed: DetailInput[];
  closed: boolean;
}

/** Answers as scripted; a call that the script does not expect throws. */
export function scriptedModel(script: Script): ScriptedModel {
  const sensed: TopicShiftInput[] = [];
  const compacted: SummaryInput[] = [];
  const detailed: DetailInput[] = [];
  return {
    name: 'scripted',
    sensed,
    compacted,
    detailed,
    closed: false,
    async detectTopicShift(input, signal) {
      if (script.sense === undefined) throw new Error(`unexpected sensor call for turn ${input.turn.user}`);
      sensed.push(input);
      return script.sense(input, signal);
    },
    async summarize(input, signal) {
      if (script.compact === undefined) throw new Error(`unexpected compacter call for ${input.turns.length} turns`);
      compacted.push(input);
      return script.compact(input, signal);
    },
    async expand(input, signal) {
      if (script.detail === undefined) throw new Error(`unexpected call for the detail of ${input.summary}`);
      detailed.push(input);
      return script.detail(input, signal);
    },
    async close() {
      this.closed = true;
    },
  };
}

export const calmReading: TopicShiftReading = { logic_flow: 'MAINTAIN', load_level: 1, redundancy_detected: false };

/** One node over all turns that says `summary`. */
export function oneNode(input: SummaryInput, summary: string): SummaryResult {
  const turns = input.turns.map((turn) => turn.turnId);
  const node = { summary, trigger: `When I need ${summary}`, topic_tags: ['scripted'], turns, facts: [] };
  return {
    nodes: [{ ...node, importance: 'MED', recall_mode: 'active' }],
    brief: { active: [{ text: `now: ${summary}`, sources: turns.slice(-1) }], hints: [] },
  };
}
