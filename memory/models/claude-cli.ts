import { mkdirSync } from 'node:fs';
import { type ChildEnd, runChild } from '../../common/run-process.ts';
import { type ChildEnvOptions, childEnv } from './child-env.ts';
import { readClaudeOutput } from './claude-output.ts';
import {
  type Attempt,
  type CallOptions,
  createPromptedModel,
  type FailureKind,
  type ModelLimits,
  type PromptCall,
  type PromptedModel,
} from './llm-client.ts';
import type { Prompt } from './prompts/prompt.ts';

export interface ClaudeCliOptions extends CallOptions {
  /** A name on PATH or a path. */
  readonly bin: string;
  readonly models: ModelLimits;
  readonly environment: Omit<ChildEnvOptions, 'thinking'>;
  /** A private directory, made when it is missing; nothing of the user's may lie in it. */
  readonly cwd: string;
  readonly graceMs?: number;
}

const STDOUT_CHARS = 1_000_000;

/** Sensor and compacter over `claude -p` on the user's own login. */
export function createClaudeCli(options: ClaudeCliOptions): PromptedModel {
  return createPromptedModel({
    ...options,
    name: 'claude',
    asked: 'claude -p',
    async attempt(call, signal) {
      const end = await spawn(options, call, signal);
      if (end.how === 'exited') return readClaudeOutput(end.stdout, end.stderr);
      return failed(kindOf(end), detailOf(end, call));
    },
  });
}

function failed(failure: FailureKind, detail: string): Attempt {
  return { kind: 'failure', failure, detail, tokens: 0, costUsd: 0 };
}

function spawn(options: ClaudeCliOptions, call: PromptCall, signal: AbortSignal): Promise<ChildEnd> {
  mkdirSync(options.cwd, { recursive: true, mode: 0o700 });
  const child = {
    file: options.bin,
    args: argsOf(call.model, call.prompt),
    input: call.prompt.user,
    env: childEnv({ ...options.environment, thinking: call.thinking }),
    cwd: options.cwd,
    timeoutMs: call.timeoutMs,
    graceMs: options.graceMs ?? 2_000,
    maxChars: STDOUT_CHARS,
  };
  return runChild(child, signal);
}

/** Only our own words go into argv; the conversation travels on stdin. */
function argsOf(model: string, prompt: Prompt<unknown>): string[] {
  const isolated = ['--tools', '', '--setting-sources', '', '--strict-mcp-config', '--disable-slash-commands'];
  const shape = ['--system-prompt', prompt.system, '--json-schema', JSON.stringify(prompt.schema)];
  const output = ['--output-format', 'json', '--no-session-persistence', '--settings', '{"verbose":false}'];
  return ['-p', '--model', model, ...isolated, ...shape, ...output];
}

function kindOf(end: ChildEnd): FailureKind {
  return end.how === 'exited' || end.how === 'aborted' ? 'failed' : end.how;
}

function detailOf(end: ChildEnd, call: PromptCall): string {
  if (end.how === 'timeout') return `killed after ${call.timeoutMs} ms`;
  if (end.how === 'flooded') return `killed after ${STDOUT_CHARS} characters on stdout`;
  return 'the program was not found; install Claude Code or set COMET_CC_CLAUDE_BIN';
}
