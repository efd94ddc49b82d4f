import { randomBytes } from 'node:crypto';
import { createSemaphore } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import { CometError, type ErrorCode } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { clip } from '../../common/text.ts';
import type { LanguageModel } from './model.ts';
import { detailPrompt } from './prompts/details.ts';
import { mergePrompt } from './prompts/merge.ts';
import type { Prompt } from './prompts/prompt.ts';
import { summarizerPrompt } from './prompts/summary.ts';
import { topicDetectorPrompt } from './prompts/topic-detector.ts';
import { createUsageCounter, type QuotaRule, type UsageCounter } from './quota.ts';

/** Why a call failed, as shown by `doctor` and `status`. */
export type FailureKind = (typeof FINAL)[number] | 'flooded' | 'failed';

/** `costUsd`: at API prices, as reported by the provider; 0 if it reports none. */
type CallUsage = { readonly tokens: number; readonly costUsd: number };

/** The outcome of one call; `value` is not validated yet. */
export type Attempt =
  | ({ readonly kind: 'answer'; readonly value: unknown } & CallUsage)
  | ({ readonly kind: 'failure'; readonly failure: FailureKind; readonly detail: string } & CallUsage);

export function failedAttempt(failure: FailureKind, detail: string, { tokens, costUsd }: CallUsage = NOTHING): Attempt {
  return { kind: 'failure', failure, detail, tokens, costUsd };
}

const NOTHING: CallUsage = { tokens: 0, costUsd: 0 };

export interface PromptCall<Answer = unknown> {
  readonly model: string;
  readonly timeoutMs: number;
  /** Enable extended thinking (for the summarizer, not the topic detector). */
  readonly thinking: boolean;
  readonly prompt: Prompt<Answer>;
  /** For usage accounting only. */
  readonly sessionId?: string | undefined;
  readonly isMerge?: true;
}

/** Names and timeouts of the models; `maxChildren` limits concurrent calls. */
export type ModelLimits = Omit<Config['models'], keyof QuotaRule>;

export interface CallOptions {
  readonly redact: (text: string) => string;
  readonly now: () => number;
  readonly ledger?: UsageCounter;
  readonly log: Log;
}

export interface LlmClientOptions extends CallOptions {
  readonly name: string;
  /** Named in error messages and the log. */
  readonly provider: string;
  readonly models: ModelLimits;
  /** Maximum characters of turns in one summary request; the prompt's default if absent. */
  readonly transcriptChars?: number;
  /** Makes one call. Rejects only when aborted. */
  readonly attempt: (call: PromptCall, signal: AbortSignal) => Promise<Attempt>;
}

const CODES: Partial<Record<FailureKind, ErrorCode>> = { missing: 'model_missing', timeout: 'model_timeout' };
/** Not worth an immediate retry. `unstructured`: the provider itself asked again until it gave up. */
const FINAL = ['missing', 'not_logged_in', 'rate_limited', 'timeout', 'unstructured'] as const;

/** A LanguageModel over a provider of prompt calls: bounded concurrency, validation, usage accounting, one retry. */
export function createLlmClient(options: LlmClientOptions): Required<LanguageModel> {
  const places = createSemaphore(options.models.maxChildren);
  const closing = new AbortController();
  const running = new Set<Promise<unknown>>();
  const ledger = options.ledger ?? createUsageCounter(options.now);
  let mergeTokens = 0;
  let lastError = '';

  async function attempt<T>(call: PromptCall<T>, signal: AbortSignal): Promise<T> {
    const output = await places.run(() => options.attempt(call, signal), signal);
    signal.throwIfAborted();
    const { tokens, costUsd } = output;
    const isMissing = output.kind === 'failure' && output.failure === 'missing';
    if (call.isMerge === true) mergeTokens += tokens;
    if (!isMissing) ledger.record({ calls: 1, tokens, costUsd, sessionId: call.sessionId });
    if (output.kind === 'failure') throw new Failed(output.failure, output.detail);
    try {
      return call.prompt.parse(output.value);
    } catch (cause) {
      throw new Failed('failed', 'the answer does not match the schema', { cause });
    }
  }

  async function ask<T>(call: PromptCall<T>, signal: AbortSignal): Promise<T> {
    try {
      const answer = await attempt(call, signal).catch((error: unknown) => {
        if (!(error instanceof Failed) || FINAL.some((kind) => kind === error.kind)) throw error;
        return attempt(call, signal);
      });
      lastError = '';
      return answer;
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      const detail = clip(options.redact(error.message).replace(/\s+/g, ' ').trim(), 200);
      lastError = `${error.kind}: ${detail}`;
      const { provider: asked } = options;
      options.log.warn('model call failed', { asked, model: call.model, failure: error.kind, detail });
      const message = `${options.provider} (${call.model}) failed, ${lastError}`;
      throw new CometError(CODES[error.kind] ?? 'model_failed', message, { cause: error.cause });
    }
  }

  function tracked<T>(call: PromptCall<T>, signal: AbortSignal): Promise<T> {
    const work = ask(call, AbortSignal.any([signal, closing.signal]));
    running.add(work);
    const done = (): void => void running.delete(work);
    work.then(done, done);
    return work;
  }

  const { models, transcriptChars } = options;
  const getLimits = (role: 'sensor' | 'summarizer' | 'detail' | 'bundle') =>
    ({ model: models[role], timeoutMs: models[`${role}TimeoutMs`], thinking: role === 'summarizer' }) as const;
  return {
    name: options.name,
    detectTopicShift({ sessionId, ...input }, signal) {
      return tracked({ ...getLimits('sensor'), sessionId, prompt: topicDetectorPrompt(input, fence()) }, signal);
    },
    summarize({ sessionId, ...input }, signal) {
      const prompt = summarizerPrompt(input, fence(), transcriptChars);
      return tracked({ ...getLimits('summarizer'), sessionId, prompt }, signal);
    },
    merge: (input, signal) =>
      tracked({ ...getLimits('summarizer'), isMerge: true, prompt: mergePrompt(input, fence()) }, signal),
    expand({ sessionId, ...input }, signal) {
      const limits = getLimits(input.isBundle === true ? 'bundle' : 'detail');
      return tracked({ ...limits, sessionId, prompt: detailPrompt(input, fence(), transcriptChars) }, signal);
    },
    ask: (prompt, signal) => tracked({ ...getLimits('detail'), prompt }, signal),
    health() {
      const { calls: callsToday, tokens: tokensToday, costUsd: costUsdToday } = ledger.today();
      return {
        ...{ callsToday, tokensToday, costUsdToday, mergeTokens },
        running: running.size,
        lastError,
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

const fence = (): string => randomBytes(8).toString('hex');
