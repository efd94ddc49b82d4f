import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { CometError, type ErrorCode } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { clip } from '../core/neutral.ts';
import { createLedger, type Ledger } from '../ledger.ts';
import type { LanguageModel } from '../ports.ts';
import { compacterPrompt } from '../prompts/compacter.ts';
import type { Prompt } from '../prompts/prompt.ts';
import { sensorPrompt } from '../prompts/sensor.ts';
import { type ChildEnd, runChild } from './child.ts';
import { type ChildEnvOptions, childEnv } from './child-env.ts';
import { type FailureKind, readClaudeOutput } from './claude-output.ts';
import { createSemaphore } from './semaphore.ts';

export interface ClaudeCliOptions {
  /** A name on PATH or a path. */
  readonly bin: string;
  readonly models: {
    readonly sensor: string;
    readonly compacter: string;
    readonly sensorTimeoutMs: number;
    readonly compacterTimeoutMs: number;
    readonly maxChildren: number;
  };
  readonly environment: Omit<ChildEnvOptions, 'thinking'>;
  /** A private directory, made when it is missing; nothing of the user's may lie in it. */
  readonly cwd: string;
  readonly redact: (text: string) => string;
  readonly now: () => number;
  /** Counts what the calls take; one that forgets when this ends, unless given. */
  readonly ledger?: Ledger;
  readonly log: Log;
  readonly graceMs?: number;
}

/** What `status` and `doctor` say about the model. Tokens are those of today (UTC). */
interface ModelHealth {
  readonly callsToday: number;
  readonly tokensToday: number;
  readonly costUsdToday: number;
  readonly lastFailure: FailureKind | null;
  /** `kind: detail`, redacted and short; '' when the last call answered. */
  readonly lastError: string;
}

export interface ClaudeCli extends LanguageModel {
  health(): ModelHealth;
}

const STDOUT_CHARS = 1_000_000;
const CODES: Partial<Record<FailureKind, ErrorCode>> = { missing: 'model_missing', timeout: 'model_timeout' };
/** A second try right away would end the same. */
const FINAL: readonly FailureKind[] = ['missing', 'not_logged_in', 'rate_limited', 'timeout'];

interface Call<T> {
  readonly model: string;
  readonly timeoutMs: number;
  readonly thinking: boolean;
  readonly prompt: Prompt<T>;
}

/** Sensor and compacter over `claude -p` on the user's own login. */
export function createClaudeCli(options: ClaudeCliOptions): ClaudeCli {
  const places = createSemaphore(options.models.maxChildren);
  const closing = new AbortController();
  const running = new Set<Promise<unknown>>();
  const ledger = options.ledger ?? createLedger(options.now);
  let failure: { readonly kind: FailureKind; readonly detail: string } | null = null;

  async function attempt<T>(call: Call<T>, signal: AbortSignal): Promise<T> {
    const end = await places.run(() => spawn(options, call, signal), signal);
    signal.throwIfAborted();
    const output = end.how === 'exited' ? readClaudeOutput(end.stdout, end.stderr) : null;
    const { tokens, costUsd } = output ?? { tokens: 0, costUsd: 0 };
    if (end.how !== 'missing') ledger.spent({ calls: 1, tokens, costUsd });
    if (output?.kind === 'answer') {
      try {
        return call.prompt.parse(output.value);
      } catch (cause) {
        throw new Failed('failed', 'the answer does not fit the schema', { cause });
      }
    }
    throw output === null ? new Failed(kindOf(end), detailOf(end, call)) : new Failed(output.failure, output.detail);
  }

  async function ask<T>(call: Call<T>, signal: AbortSignal): Promise<T> {
    try {
      const answer = await attempt(call, signal).catch((error: unknown) => {
        if (!(error instanceof Failed) || FINAL.includes(error.kind)) throw error;
        return attempt(call, signal);
      });
      failure = null;
      return answer;
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      const detail = clip(options.redact(error.message).replace(/\s+/g, ' ').trim(), 200);
      failure = { kind: error.kind, detail };
      options.log.warn('claude -p gave no answer', { model: call.model, failure: error.kind, detail });
      const message = `claude -p (${call.model}) gave no answer, ${error.kind}: ${detail}`;
      throw new CometError(CODES[error.kind] ?? 'model_failed', message, { cause: error.cause });
    }
  }

  function tracked<T>(call: Call<T>, signal: AbortSignal): Promise<T> {
    const work = ask(call, AbortSignal.any([signal, closing.signal]));
    running.add(work);
    const done = (): void => void running.delete(work);
    work.then(done, done);
    return work;
  }

  const { models } = options;
  return {
    name: 'claude',
    sense: (input, signal) => {
      const prompt = sensorPrompt(input, fence());
      return tracked({ model: models.sensor, timeoutMs: models.sensorTimeoutMs, thinking: false, prompt }, signal);
    },
    compact: (input, signal) => {
      const prompt = compacterPrompt(input, fence());
      return tracked({ model: models.compacter, timeoutMs: models.compacterTimeoutMs, thinking: true, prompt }, signal);
    },
    health() {
      const { calls, tokens, costUsd } = ledger.today();
      return {
        callsToday: calls,
        tokensToday: tokens,
        costUsdToday: costUsd,
        lastFailure: failure?.kind ?? null,
        lastError: failure === null ? '' : `${failure.kind}: ${failure.detail}`,
      };
    },
    async close() {
      closing.abort(new CometError('model_failed', 'the daemon is stopping'));
      await Promise.allSettled(running);
    },
  };
}

class Failed extends Error {
  readonly kind: FailureKind;
  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

function spawn<T>(options: ClaudeCliOptions, call: Call<T>, signal: AbortSignal): Promise<ChildEnd> {
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

function detailOf<T>(end: ChildEnd, call: Call<T>): string {
  if (end.how === 'timeout') return `killed after ${call.timeoutMs} ms`;
  if (end.how === 'flooded') return `killed after ${STDOUT_CHARS} characters on stdout`;
  return 'the program was not found; install Claude Code or set COMET_CC_CLAUDE_BIN';
}

function fence(): string {
  return randomBytes(8).toString('hex');
}
