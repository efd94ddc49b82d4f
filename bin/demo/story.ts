import { readFileSync } from 'node:fs';
import { builtFile } from '../../common/paths.ts';
import type { Json } from '../../test/mock-anthropic/index.ts';

/** One response of the model that calls tools in parallel. */
export interface StoryRound {
  readonly thinking?: string;
  readonly text?: string;
  readonly tools: readonly Readonly<{ name: string; input: Json; result: string; isError?: boolean }>[];
}

export interface StoryTurn {
  readonly topic: string;
  /** Differs from every other prompt of the story. */
  readonly prompt: string;
  readonly rounds: readonly StoryRound[];
  readonly thinking?: string;
  /** Null: the model has to find it in the request. */
  readonly answer: string | null;
}

/** A prompt whose answer was told much earlier; `right` matches a correct answer. */
export interface Question extends StoryTurn {
  readonly answer: null;
  readonly right: RegExp;
}

export interface StorySession {
  readonly id: string;
  /** Since the request before it; longer than any cache lives. */
  readonly pauseMs: number;
  readonly turns: readonly (StoryTurn | Question)[];
}

/** The directory in the inputs of the tools, which do not run. */
export const PROJECT_DIR = '/home/dana/parcel-desk';

interface Recording {
  /** Stands for Claude Code's own prompt and tools; only their size of about 12,000 tokens matters. */
  readonly system: string;
  readonly tools: readonly Json[];
  readonly sessions: readonly StorySession[];
}

/** Three days of work on an invented parcel service, recorded with the output of its tools. */
export const RECORDING = JSON.parse(
  readFileSync(builtFile('bin', 'demo', 'story.json'), 'utf8'),
  (key, value: unknown) => (key === 'right' ? new RegExp(value as string) : value),
) as Recording;

export const STORY = RECORDING.sessions;

export const isQuestion = (turn: StoryTurn): turn is Question => turn.answer === null;
