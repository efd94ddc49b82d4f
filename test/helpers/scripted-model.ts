import type {
  CompactionInput,
  CompactionResult,
  DetailInput,
  DetailResult,
  LanguageModel,
  SensorInput,
  SensorReading,
} from '../../memory/models/language-model.ts';

type Step<Input, Output> = (input: Input, signal: AbortSignal) => Output | Promise<Output>;

export interface Script {
  readonly sense?: Step<SensorInput, SensorReading>;
  readonly compact?: Step<CompactionInput, CompactionResult>;
  readonly detail?: Step<DetailInput, DetailResult>;
}

export interface ScriptedModel extends LanguageModel {
  readonly sensed: SensorInput[];
  readonly compacted: CompactionInput[];
  readonly detailed: DetailInput[];
  closed: boolean;
}

/** Answers as scripted; a call that the script does not expect throws. */
export function scriptedModel(script: Script): ScriptedModel {
  const sensed: SensorInput[] = [];
  const compacted: CompactionInput[] = [];
  const detailed: DetailInput[] = [];
  return {
    name: 'scripted',
    sensed,
    compacted,
    detailed,
    closed: false,
    async sense(input, signal) {
      if (script.sense === undefined) throw new Error(`unexpected sensor call for turn ${input.turn.user}`);
      sensed.push(input);
      return script.sense(input, signal);
    },
    async compact(input, signal) {
      if (script.compact === undefined) throw new Error(`unexpected compacter call for ${input.turns.length} turns`);
      compacted.push(input);
      return script.compact(input, signal);
    },
    async detail(input, signal) {
      if (script.detail === undefined) throw new Error(`unexpected call for the detail of ${input.summary}`);
      detailed.push(input);
      return script.detail(input, signal);
    },
    async close() {
      this.closed = true;
    },
  };
}

export const calmReading: SensorReading = { logic_flow: 'MAINTAIN', load_level: 1, redundancy_detected: false };

/** One node over all turns that says `summary`. */
export function oneNode(input: CompactionInput, summary: string): CompactionResult {
  const turns = input.turns.map((turn) => turn.turnId);
  const node = { summary, trigger: `When I need ${summary}`, topic_tags: ['scripted'], turns, facts: [] };
  return {
    nodes: [{ ...node, importance: 'MED', recall_mode: 'active' }],
    brief: { active: [{ text: `now: ${summary}`, sources: turns.slice(-1) }], hints: [] },
  };
}
