import { createHash, randomBytes } from 'node:crypto';
import type { AnswerBlock } from './answer.ts';
import { isThinking } from './block-rules.ts';
import { createPromptCache, type PromptUsage, promptCost } from './cache.ts';
import { isObject, type Json } from './json.ts';
import { getRules } from './models.ts';
import { invalid, type Refusal } from './refusal.ts';
import { findRefusal } from './rules.ts';
import { getItems, type Item, runningTurn } from './stream.ts';
import { createThinkingLedger, type ThinkingRequest } from './thinking.ts';

export interface JudgeOptions {
  /** Off: signatures are issued but never looked at, as on an account from before the binding. Default on. */
  readonly enforceThinking?: boolean;
  /** Signs thinking; random when left out. */
  readonly secret?: Buffer;
}

export interface JudgedRequest {
  /** The body as received, or already parsed; what is parsed must not change afterwards. */
  readonly body: Buffer | string | Json;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Virtual time of the request's start. */
  readonly atMs: number;
  /** `count_tokens` is checked alike and neither billed nor cached. Default `messages`. */
  readonly path?: 'messages' | 'count_tokens';
}

export type Verdict = { readonly refusal: Refusal } | Accepted;

export interface Accepted {
  readonly refusal: null;
  readonly body: Json;
  readonly usage: PromptUsage;
  /** Prompt cost in tokens of uncached input. */
  readonly cost: number;
  /** Thinking blocks the API would silently leave out, by path. */
  readonly dropped: readonly string[];
  /** The answer's blocks with ids and signatures: what the client will hold and send back. */
  seal(answer: readonly AnswerBlock[]): readonly Json[];
}

/** The rules and the bill of the stand-in without sockets. */
export interface Judge {
  judge(request: JudgedRequest): Verdict;
}

export function createJudge(options: JudgeOptions = {}): Judge {
  const ledger = createThinkingLedger(options.secret ?? randomBytes(32), options.enforceThinking ?? true);
  const cache = createPromptCache();
  const instance = randomBytes(6).toString('hex');
  let answers = 0;
  return {
    judge(request) {
      const parsed = parse(request.body);
      if (!parsed) return { refusal: invalid('The request body is not valid JSON') };
      const { body, bytes } = parsed;
      const betas = parseBetas(request.headers['anthropic-beta']);
      const counting = request.path === 'count_tokens';
      const refusal = findRefusal(body, betas, bytes) ?? (counting ? null : checkMaxTokens(body));
      if (refusal) return { refusal };
      const thinking = thinkingRequest(body, betas);
      const outcome = ledger.check(thinking);
      if (outcome.refusal) return { refusal: outcome.refusal };
      const { model } = thinking;
      const items = visible(thinking, body, outcome.drops);
      const tooLong = checkLength(model, items);
      if (tooLong) return { refusal: tooLong };
      const account = getAccount(request.headers);
      const usage = counting ? uncached(items) : cache.bill({ account, model, body, items, atMs: request.atMs });
      return {
        refusal: null,
        body,
        usage,
        cost: counting ? 0 : promptCost(model, usage),
        dropped: [...outcome.drops],
        seal(answer) {
          answers += 1;
          return ledger.seal(
            thinking,
            named(redacted(answer, betas), `${instance}${answers}`),
            `${instance}${answers}`,
          );
        },
      };
    },
  };
}

function parseBetas(header = ''): readonly string[] {
  return header.split(',').map((beta) => beta.trim());
}

function parse(body: JudgedRequest['body']): { readonly body: Json; readonly bytes: number } | null {
  if (!Buffer.isBuffer(body) && typeof body !== 'string') return { body, bytes: 0 };
  const text = body.toString();
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { body: value, bytes: Buffer.byteLength(text) } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function thinkingRequest(body: Json, betas: readonly string[]): ThinkingRequest {
  const binding = isObject(body.thinking) ? body.thinking.block_binding : null;
  return {
    model: String(body.model),
    items: getItems(body),
    betas,
    dropOnMismatch: isObject(binding) && binding.prefix_mismatch_behavior === 'drop_block',
  };
}

/** Without dropped thinking, and without that of older turns on models that keep the running turn's only. */
function visible({ model, items }: ThinkingRequest, body: Json, drops: ReadonlySet<string>): readonly Item[] {
  const from = getRules(model).keepsThinking ? 0 : runningTurn(body);
  return items.filter(
    (item) => !drops.has(item.path) && (item.part !== 'messages' || item.message >= from || !isThinking(item.block)),
  );
}

function checkMaxTokens(body: Json): Refusal | null {
  return typeof body.max_tokens === 'number' ? null : invalid('max_tokens: Field required');
}

function checkLength(model: string, items: readonly Item[]): Refusal | null {
  const total = items.reduce((sum, item) => sum + item.tokens, 0);
  const { contextTokens } = getRules(model);
  return total <= contextTokens ? null : invalid(`prompt is too long: ${total} tokens > ${contextTokens} maximum`);
}

function uncached(items: readonly Item[]): PromptUsage {
  const input = items.reduce((sum, item) => sum + item.tokens, 0);
  return { input, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
}

/** Caches are per account; a digest stands for the key. */
function getAccount(headers: Readonly<Record<string, string>>): string {
  return createHash('sha256')
    .update(headers.authorization ?? headers['x-api-key'] ?? '')
    .digest('hex');
}

function named(answer: readonly AnswerBlock[], run: string): readonly AnswerBlock[] {
  return answer.map((block, at) =>
    block.type === 'tool_use' && block.id === undefined ? { ...block, id: `toolu_${run}x${at}` } : block,
  );
}

/** Interactive Claude Code asks for signatures without text. */
function redacted(answer: readonly AnswerBlock[], betas: readonly string[]): readonly AnswerBlock[] {
  if (!betas.some((beta) => beta.startsWith('redact-thinking-'))) return answer;
  return answer.map((block) => (block.type === 'thinking' ? { type: 'thinking', thinking: '' } : block));
}
