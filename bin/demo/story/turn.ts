import type { Json } from '../../../test/mock-anthropic/json.ts';

export interface StoryTool {
  readonly name: string;
  readonly input: Json;
  readonly result: string;
  readonly isError?: boolean;
}

/** One answer of the model that calls tools; several run in parallel. */
export interface StoryRound {
  readonly thinking?: string;
  readonly text?: string;
  readonly tools: readonly StoryTool[];
}

export interface StoryTurn {
  /** Differs from every other prompt of the story. */
  readonly prompt: string;
  readonly rounds: readonly StoryRound[];
  readonly thinking?: string;
  /** Null: the model has to find it in what it was sent. */
  readonly answer: string | null;
}

/** A prompt whose answer was told long before, and how a right one is recognised. */
export interface Question extends StoryTurn {
  readonly answer: null;
  readonly right: RegExp;
}

/** Nobody's: the tools of the story do not run. */
export const PROJECT_DIR = '/home/dana/parcel-desk';

export function bash(command: string, result: string, isError = false): StoryTool {
  return { name: 'Bash', input: { command, description: `Runs ${command.split(' ')[0]}` }, result, isError };
}

export function read(file: string, result: string): StoryTool {
  return { name: 'Read', input: { file_path: `${PROJECT_DIR}/${file}` }, result };
}

export function edit(file: string, before: string, after: string): StoryTool {
  const name = `${PROJECT_DIR}/${file}`;
  const result = `The file ${name} has been updated. Here is the changed part:\n${after}`;
  return { name: 'Edit', input: { file_path: name, old_string: before, new_string: after }, result };
}

export function write(file: string, content: string): StoryTool {
  const name = `${PROJECT_DIR}/${file}`;
  return { name: 'Write', input: { file_path: name, content }, result: `File created at: ${name}` };
}

export function grep(pattern: string, result: string): StoryTool {
  return { name: 'Grep', input: { pattern, path: 'src', output_mode: 'content' }, result };
}
