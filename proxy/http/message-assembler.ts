import { isRecord } from '../../common/text.ts';
import type { AssistantMessage, Usage } from '../ports.ts';
import type { SseEvent } from './sse.ts';

type Json = Record<string, unknown>;

interface Assembled {
  /** Null before `message_start` and after an unreadable event. */
  readonly message: AssistantMessage | null;
  /** `message_stop` has arrived. */
  readonly complete: boolean;
  /** Data of the `error` event, '' without one. */
  readonly errorText: string;
}

export interface Assembler {
  push(event: SseEvent): void;
  result(): Assembled;
}

/**
 * Assembles a message from stream events. Strings and arrays of a delta are appended to the block's field, other values
 * replace it, so unknown blocks and deltas are carried too.
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
        head = toRecord(event['message']);
        usage = mergeUsage(usage, toRecord(head['usage']));
        stopReason = head['stop_reason'] ?? null;
        break;
      case 'content_block_start':
        blocks[readIndex(event)] = { ...toRecord(event['content_block']) };
        break;
      case 'content_block_delta':
        applyDelta(readIndex(event), toRecord(event['delta']));
        break;
      case 'content_block_stop':
        endBlock(readIndex(event));
        break;
      case 'message_delta':
        stopReason = toRecord(event['delta'])['stop_reason'] ?? stopReason;
        usage = mergeUsage(usage, toRecord(event['usage']));
        break;
      case 'message_stop':
        complete = true;
        break;
    }
  }

  function applyDelta(at: number, delta: Json): void {
    const block = blocks[at];
    if (block === undefined) throw new Error('delta before its block');
    if (delta['type'] === 'input_json_delta') {
      partialInputs.set(at, (partialInputs.get(at) ?? '') + String(delta['partial_json'] ?? ''));
    } else if (delta['type'] === 'citations_delta') {
      block['citations'] = [...toList(block['citations']), delta['citation']];
    } else if (delta['type'] === 'signature_delta') {
      block['signature'] = delta['signature'];
    } else appendDelta(block, delta);
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
        else apply(toRecord(JSON.parse(data)));
      } catch {
        // The client already has the bytes; only the capture is lost.
        broken = true;
      }
    },
    result() {
      const message = head === null || broken ? null : toMessage(head, Object.values(blocks), stopReason, usage);
      return { message, complete, errorText };
    },
  };
}

/** The message of a response that is not streamed; null when the body is not a message. */
export function messageFromJson(text: string): AssistantMessage | null {
  try {
    const body = toRecord(JSON.parse(text));
    if (body['type'] !== 'message' || !Array.isArray(body['content'])) return null;
    return toMessage(body, body['content'] as Json[], body['stop_reason'] ?? null, toRecord(body['usage']));
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
  const written = toRecord(usage['cache_creation']);
  const cacheWrite1h = toCount(written['ephemeral_1h_input_tokens']);
  const known5m = toCount(written['ephemeral_5m_input_tokens']);
  return {
    input: toCount(usage['input_tokens']),
    cacheRead: toCount(usage['cache_read_input_tokens']),
    // Without a split by TTL, the total counts as 5m, the API's default.
    cacheWrite5m: Math.max(known5m, toCount(usage['cache_creation_input_tokens']) - cacheWrite1h),
    cacheWrite1h,
    output: toCount(usage['output_tokens']),
  };
}

function mergeUsage(base: Json, over: Json): Json {
  return { ...base, ...Object.fromEntries(Object.entries(over).filter(([, value]) => value !== null)) };
}

function appendDelta(block: Json, delta: Json): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === 'type' || key === '__proto__') continue;
    const old = block[key];
    if (typeof value === 'string' && typeof old === 'string') block[key] = old + value;
    else if (Array.isArray(value) && Array.isArray(old)) block[key] = [...old, ...value];
    else block[key] = value;
  }
}

function readIndex(event: Json): number {
  const at = event['index'];
  if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at > 100_000) throw new Error('invalid block index');
  return at;
}

function toRecord(value: unknown): Json {
  return isRecord(value) ? value : {};
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function toCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
