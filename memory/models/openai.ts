import { z } from 'zod';
import { isRecord, parseJson, trimEnd } from '../../common/text.ts';
import {
  type Attempt,
  type CallOptions,
  createLlmClient,
  failedAttempt,
  type ModelLimits,
  type PromptCall,
} from './client.ts';
import { createKeyedRequest, type EndpointKeyOptions, getRefusal, type KeyedReply } from './endpoint-request.ts';

export interface OpenAiEndpointOptions extends CallOptions, EndpointKeyOptions {
  readonly models: ModelLimits;
  readonly contextTokens: number;
}

const ANSWER_CHARS = 1_000_000;
/** Part of the window reserved for instructions, brief, schema and answer. */
const OVERHEAD_TOKENS = 6_000;
/** Lower than for prose, since code has fewer characters per token. */
const CHARS_PER_TOKEN = 3;
const LONGEST_REST_MS = 3_600_000;

/** Response formats, strictest first; if an endpoint refuses one, the next is tried. */
const SHAPES = ['json_schema', 'json_object', 'none'] as const;
type Shape = (typeof SHAPES)[number];

export function createOpenAiEndpoint(options: OpenAiEndpointOptions) {
  const { baseUrl, contextTokens } = options;
  const url = `${trimEnd(baseUrl, '/')}/chat/completions`;
  const send = createKeyedRequest(options, ANSWER_CHARS);
  const shapes = new Map<string, number>();
  let restUntilMs = 0;

  async function attempt(call: PromptCall, signal: AbortSignal): Promise<Attempt> {
    const restMs = restUntilMs - options.now();
    if (restMs > 0 && restMs <= LONGEST_REST_MS)
      return failedAttempt('rate_limited', `rate limited for another ${Math.ceil(restMs / 1_000)} s`);
    for (let at = shapes.get(call.model) ?? 0; ; at += 1) {
      const shape = SHAPES[at] ?? 'none';
      const body = JSON.stringify(getBody(call, shape, baseUrl));
      const reply = await send({ url, body, timeoutMs: call.timeoutMs }, signal);
      if (reply.how === 'answered' && SHAPE_REFUSALS.includes(reply.status) && shape !== 'none') continue;
      const attempt = readReply(reply, call);
      if (attempt.kind === 'answer') shapes.set(call.model, at);
      return attempt;
    }
  }

  function readReply(reply: KeyedReply, call: PromptCall): Attempt {
    if (reply.how === 'keyless') return failedAttempt('not_logged_in', reply.detail);
    // A late response, or one without usage, still consumed the prompt.
    const { system, user } = call.prompt;
    const shown = { tokens: Math.ceil((system.length + user.length) / CHARS_PER_TOKEN), costUsd: 0 };
    if ('code' in reply) {
      const missing = `${new URL(baseUrl).host} cannot be reached (${reply.code}); see openai.baseUrl`;
      if (reply.how === 'unreachable') return failedAttempt('missing', missing);
      return failedAttempt('failed', `the connection broke (${reply.code})`);
    }
    if (reply.how !== 'answered') {
      const late = `no answer within ${call.timeoutMs} ms`;
      const flooded = `the answer exceeds ${ANSWER_CHARS} characters`;
      return failedAttempt(reply.how, reply.how === 'timeout' ? late : flooded, shown);
    }
    if (reply.status !== 200) return refused(reply.status, getRefusal(reply), reply.retryAfterMs);
    const read = readCompletion(reply.body);
    return { ...read, tokens: read.tokens || shown.tokens };
  }

  function refused(status: number, detail: string, retryAfterMs: number): Attempt {
    if (status === 401 || status === 403) return failedAttempt('not_logged_in', detail);
    if (status !== 429) return failedAttempt('failed', detail);
    restUntilMs = options.now() + Math.min(retryAfterMs, LONGEST_REST_MS);
    return failedAttempt('rate_limited', detail);
  }

  return createLlmClient({
    ...options,
    name: 'openai',
    provider: new URL(baseUrl).host,
    transcriptChars: Math.max(4_000, contextTokens - OVERHEAD_TOKENS) * CHARS_PER_TOKEN,
    attempt,
  });
}

/** The prompt repeats the schema, since some endpoints accept one without enforcing it. */
function getBody({ model, prompt }: PromptCall, shape: Shape, baseUrl: string): object {
  const schema = JSON.stringify(prompt.schema);
  const system = `${prompt.system}\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n${schema}`;
  const messages = [
    { role: 'system', content: system },
    { role: 'user', content: prompt.user },
  ];
  return { model: fullModelName(model, baseUrl), messages, stream: false, ...getFormat(shape, prompt.schema) };
}

function getFormat(shape: Shape, schema: object): object {
  if (shape === 'none') return {};
  if (shape === 'json_object') return { response_format: { type: shape } };
  return { response_format: { type: shape, json_schema: { name: 'answer', strict: true, schema } } };
}

/** Statuses returned for an unknown `response_format`, among other errors. */
const SHAPE_REFUSALS = [400, 404, 415, 422, 500, 501];

/** Aliases by host; other names are sent unchanged. */
const ALIASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'api.openai.com': {
    gpt: 'gpt-5',
    mini: 'gpt-5-mini',
    codex: 'gpt-5-codex',
    'gpt-mini': 'gpt-5-mini',
    'gpt-nano': 'gpt-5-nano',
  },
  'generativelanguage.googleapis.com': { flash: 'gemini-2.5-flash', pro: 'gemini-2.5-pro' },
  'openrouter.ai': {
    gpt: 'openai/gpt-5',
    'gpt-mini': 'openai/gpt-5-mini',
    mini: 'openai/gpt-5-mini',
    codex: 'openai/gpt-5-codex',
    flash: 'google/gemini-2.5-flash',
    pro: 'google/gemini-2.5-pro',
    opus: '~anthropic/claude-opus-latest',
    sonnet: '~anthropic/claude-sonnet-latest',
    haiku: '~anthropic/claude-haiku-latest',
    gemini: 'google/gemini-2.5-pro',
    'gemini-flash': 'google/gemini-2.5-flash',
  },
  'api.anthropic.com': { opus: 'claude-opus-5', sonnet: 'claude-sonnet-5', haiku: 'claude-haiku-4-5' },
};

export function fullModelName(model: string, baseUrl: string): string {
  const aliases = ALIASES[new URL(baseUrl).hostname] ?? {};
  return Object.hasOwn(aliases, model) ? (aliases[model] as string) : model;
}

const count = z.number().nonnegative().catch(0);
const Usage = z
  .looseObject({ prompt_tokens: count, completion_tokens: count, total_tokens: count, cost: count })
  .catch({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0 });

const Completion = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        finish_reason: z.string().nullish().catch(null),
        message: z.looseObject({
          content: z.union([z.string(), z.array(z.looseObject({ text: z.string().catch('') }))]).nullish(),
          refusal: z.string().nullish().catch(null),
        }),
      }),
    )
    .min(1),
  usage: Usage.optional(),
});

/** Parses a chat completion; `tokens` is 0 if usage is absent. */
function readCompletion(body: string): Attempt {
  const read = Completion.safeParse(parseJson(body));
  if (!read.success) return failedAttempt('failed', 'the body is no chat completion');
  const { usage, choices } = read.data;
  const { total_tokens = 0, prompt_tokens = 0, completion_tokens = 0, cost = 0 } = usage ?? {};
  const used = { tokens: total_tokens || prompt_tokens + completion_tokens, costUsd: cost };
  const [choice] = choices;
  const content = choice?.message.content ?? '';
  const text = typeof content === 'string' ? content : content.map((part) => part.text).join('');
  const value = structured(text);
  if (value !== null) return { kind: 'answer', value, ...used };
  const refusal = choice?.message.refusal ?? '';
  const odd = text.trim() === '' ? 'the answer is empty' : 'the answer is no JSON object';
  const reason = refusal === '' ? odd : `it refused: ${refusal}`;
  const isCut = choice?.finish_reason === 'length';
  return failedAttempt('failed', isCut ? 'the answer was cut off at its length limit' : reason, used);
}

/** The JSON object in a text, ignoring thoughts, fences and words around it. */
function structured(text: string): object | null {
  const answer = text.replace(/^\s*<think>[\s\S]*?<\/think>/i, '').trim();
  const [first, last] = [answer.indexOf('{'), answer.lastIndexOf('}')];
  const value =
    parseJson(answer) ?? (first >= 0 && last > first ? parseJson(answer.slice(first, last + 1)) : undefined);
  return isRecord(value) ? value : null;
}
