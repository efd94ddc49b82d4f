import type { PromptUsage } from './cache.ts';
import type { Json } from './json.ts';

export interface Reply {
  readonly id: string;
  readonly model: string;
  readonly blocks: readonly Json[];
  readonly stopReason: string;
  readonly usage: PromptUsage;
  readonly outputTokens: number;
  /** Paths of thinking blocks left out of the prompt. */
  readonly dropped: readonly string[];
}

export interface StreamPart {
  readonly text: string;
  readonly isDelta: boolean;
}

const DELTA_CHARS = 40;

/** The whole event stream of a reply, one event a part, in the order the API sends them. */
export function* streamReply(reply: Reply): Generator<StreamPart> {
  const { content: _, stop_reason: __, ...start } = getMessage(reply);
  const opening = { ...start, content: [], stop_reason: null, usage: getUsage(reply.usage, 1) };
  yield event('message_start', { message: opening });
  yield event('ping', {});
  for (const [index, block] of reply.blocks.entries()) {
    yield event('content_block_start', { index, content_block: emptied(block) });
    for (const delta of getDeltas(block)) yield event('content_block_delta', { index, delta });
    yield event('content_block_stop', { index });
  }
  yield event('message_delta', {
    delta: { stop_reason: reply.stopReason, stop_sequence: null },
    usage: getUsage(reply.usage, reply.outputTokens),
    context_management: { applied_edits: [] },
  });
  yield event('message_stop', {});
}

export function errorEvent(type: string, message: string): string {
  return event('error', { error: { type, message } }).text;
}

/** The reply as one JSON message, as without `stream: true`. */
export function getMessage(reply: Reply): Json {
  return {
    id: reply.id,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: reply.blocks,
    stop_reason: reply.stopReason,
    stop_sequence: null,
    usage: getUsage(reply.usage, reply.outputTokens),
    ...(reply.dropped.length > 0 && {
      input_transformations: reply.dropped.map((path) => ({ type: 'thinking_dropped', path })),
    }),
  };
}

function getUsage(usage: PromptUsage, outputTokens: number): Json {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: usage.cacheWrite5m + usage.cacheWrite1h,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite5m,
      ephemeral_1h_input_tokens: usage.cacheWrite1h,
    },
    output_tokens: outputTokens,
    service_tier: 'standard',
  };
}

function emptied(block: Json): Json {
  if (block.type === 'text') return { ...block, text: '' };
  if (block.type === 'thinking') return { ...block, thinking: '', signature: '' };
  return block.type === 'tool_use' || block.type === 'server_tool_use' ? { ...block, input: {} } : block;
}

function* getDeltas(block: Json): Generator<Json> {
  if (block.type === 'text') {
    for (const text of pieces(String(block.text))) yield { type: 'text_delta', text };
  } else if (block.type === 'thinking') {
    for (const thinking of pieces(String(block.thinking))) yield { type: 'thinking_delta', thinking };
    yield { type: 'signature_delta', signature: block.signature };
  } else if (block.type === 'tool_use' || block.type === 'server_tool_use') {
    // The API opens with an empty piece.
    yield { type: 'input_json_delta', partial_json: '' };
    for (const partial_json of pieces(JSON.stringify(block.input))) yield { type: 'input_json_delta', partial_json };
  }
}

/** By code points, so that no piece ends inside a surrogate pair. */
function* pieces(text: string): Generator<string> {
  let piece = '';
  for (const char of text) {
    piece += char;
    if (piece.length < DELTA_CHARS) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function event(type: string, data: Json): StreamPart {
  return {
    text: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`,
    isDelta: type === 'content_block_delta',
  };
}
