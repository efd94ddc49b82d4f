import { isRecord } from '../../common/text.ts';
import type { AssistantMessage, Usage } from '../ports.ts';
import type { SseEvent } from './sse.ts';

type Json = Record<string, unknown>;

interface Assembled {
  /** Null until `message_start`, and for good when a part of it could not be read. */
  readonly message: AssistantMessage | null;
  /** `message_stop` arrived. */
  readonly complete: boolean;
  /** Data of an `error` event, '' without one. */
  readonly errorText: string;
}

export interface Assembler {
  push(event: SseEvent): void;
  result(): Assembled;
}

/**
 * Events of a stream to the message they spell. A delta's string is appended to its block's field, an array's items
 * are appended, anything else replaces; so blocks and deltas yet unknown are carried too.
 *
 * Source: the Messages API's streaming events; usage of `message_delta` is cumulative.
 */
export function createAssembler(): Assembler {
  let head: Json | null = null;
  let broken = false;
  let complete = false;
  let errorText = '';
  const blocks: Json[] = [];
  const partialInputs = new Map<number, string>();
  let stopReason: unknown = null;
  let usage: Json = {};

  function apply(event: Json): void {
    switch (event['type']) {
      case 'message_start':
        head = record(event['message']);
        usage = merged(usage, record(head['usage']));
        stopReason = head['stop_reason'] ?? null;
        break;
      case 'content_block_start':
        blocks[index(event)] = { ...record(event['content_block']) };
        break;
      case 'content_block_delta':
        applyDelta(index(event), record(event['delta']));
        break;
      case 'content_block_stop':
        endBlock(index(event));
        break;
      case 'message_delta':
        stopReason = record(event['delta'])['stop_reason'] ?? stopReason;
        usage = merged(usage, record(event['usage']));
        break;
      case 'message_stop':
        complete = true;
        break;
    }
  }

  function applyDelta(at: number, delta: Json): void {
    const block = blocks[at];
    if (block === undefined) throw new Error('a delta came before its block');
    if (delta['type'] === 'input_json_delta') {
      partialInputs.set(at, (partialInputs.get(at) ?? '') + String(delta['partial_json'] ?? ''));
    } else if (delta['type'] === 'citations_delta') {
      block['citations'] = [...list(block['citations']), delta['citation']];
    } else if (delta['type'] === 'signature_delta') {
      block['signature'] = delta['signature'];
    } else append(block, delta);
  }

  function endBlock(at: number): void {
    const block = blocks[at];
    const partial = partialInputs.get(at);
    if (block !== undefined && partial) block['input'] = JSON.parse(partial);
  }

  return {
    push({ event, data }) {
      try {
        if (event === 'error') errorText = data;
        else apply(record(JSON.parse(data)));
      } catch {
        // What cannot be read makes the capture worthless, and nothing else: the bytes have gone to the client.
        broken = true;
      }
    },
    result() {
      const message = head === null || broken ? null : toMessage(head, Object.values(blocks), stopReason, usage);
      return { message, complete, errorText };
    },
  };
}

/** The message of a response that was not streamed; null when it is none. */
export function messageFromJson(text: string): AssistantMessage | null {
  try {
    const body = record(JSON.parse(text));
    if (body['type'] !== 'message' || !Array.isArray(body['content'])) return null;
    return toMessage(body, body['content'] as Json[], body['stop_reason'] ?? null, record(body['usage']));
  } catch {
    return null;
  }
}

function toMessage(head: Json, content: readonly Json[], stopReason: unknown, usage: Json): AssistantMessage {
  return {
    id: String(head['id'] ?? ''),
    model: String(head['model'] ?? ''),
    content,
    stopReason: typeof stopReason === 'string' ? stopReason : null,
    usage: toUsage(usage),
  };
}

function toUsage(usage: Json): Usage {
  const written = record(usage['cache_creation']);
  const cacheWrite1h = tokens(written['ephemeral_1h_input_tokens']);
  const known5m = tokens(written['ephemeral_5m_input_tokens']);
  return {
    input: tokens(usage['input_tokens']),
    cacheRead: tokens(usage['cache_read_input_tokens']),
    // Without the split by lifetime the total counts as the shorter one, the API's default.
    cacheWrite5m: Math.max(known5m, tokens(usage['cache_creation_input_tokens']) - cacheWrite1h),
    cacheWrite1h,
    output: tokens(usage['output_tokens']),
  };
}

function merged(base: Json, over: Json): Json {
  return { ...base, ...Object.fromEntries(Object.entries(over).filter(([, value]) => value !== null)) };
}

function append(block: Json, delta: Json): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === 'type' || key === '__proto__') continue;
    const old = block[key];
    if (typeof value === 'string' && typeof old === 'string') block[key] = old + value;
    else if (Array.isArray(value) && Array.isArray(old)) block[key] = [...old, ...value];
    else block[key] = value;
  }
}

function index(event: Json): number {
  const at = event['index'];
  if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at > 100_000) throw new Error('index is not one');
  return at;
}

function record(value: unknown): Json {
  return isRecord(value) ? value : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function tokens(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
