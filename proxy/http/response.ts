import { createBrotliDecompress, createUnzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { parseJson, toRecord } from '../../common/text.ts';
import type { AssistantMessage, ObservedResponse, Usage } from '../ports.ts';

interface Captured extends Pick<ObservedResponse, 'message' | 'errorText'> {
  /** A readable event stream without `message_stop`. */
  readonly cut: boolean;
}

export type Tee = ReturnType<typeof createTee>;

interface TeeOptions {
  readonly status: number;
  readonly contentType: string;
  /** '' for none. */
  readonly contentEncoding: string;
  /** The capture is dropped when this many bytes are decoded or pending. */
  readonly capBytes: number;
}

const EMPTY: Captured = { message: null, cut: false, errorText: '' };
const ERROR_BYTES = 2_048;
/** Decoding blocks the event loop for at most this long at a time. */
const SLICE_MS = 2;

/** Decodes a copy of a response. A chunk that it cannot decode or hold loses the capture only. */
export function createTee(options: TeeOptions) {
  const isError = options.status >= 400;
  const isStream = options.contentType.toLowerCase().startsWith('text/event-stream');
  const reader = isStream && !isError ? sseReader() : textReader(isError);
  let decodedBytes = 0;
  const pending: Buffer[] = [];
  let pendingBytes = 0;
  let isWorking = false;
  let isEnded = false;
  let isLost = false;
  let resolveCaptured: (captured: Captured) => void = () => {};
  const captured = new Promise<Captured>((resolve) => {
    resolveCaptured = resolve;
  });

  const inflater = createInflater(options.contentEncoding, {
    onData(bytes) {
      decodedBytes += bytes.length;
      if (decodedBytes > options.capBytes) throw new Error('response too large to capture');
      if (!isLost) reader.push(bytes);
    },
    onEnd: () => resolveCaptured(isLost ? EMPTY : reader.result()),
    onError: dropCapture,
  });

  function dropCapture(): void {
    isLost = true;
    pending.length = 0;
    resolveCaptured(isError ? reader.result() : EMPTY);
  }

  function decode(chunk: Buffer): void {
    pendingBytes -= chunk.length;
    try {
      inflater.write(chunk);
    } catch {
      dropCapture();
    }
  }

  /** Decodes for one time slice, then yields to other streams. */
  function decodeSlice(): void {
    const until = performance.now() + SLICE_MS;
    do {
      const chunk = pending.shift();
      if (chunk !== undefined) decode(chunk);
    } while (pending.length > 0 && performance.now() < until);
    isWorking = pending.length > 0;
    if (isWorking) setImmediate(decodeSlice);
    else if (isEnded) finish();
  }

  function finish(): void {
    try {
      if (!isLost) inflater.end();
    } catch {
      dropCapture();
    }
  }

  return {
    /** Queues a chunk and returns at once; the chunk is decoded later. Never throws. */
    write(chunk: Buffer): void {
      if (isLost) return;
      pending.push(chunk);
      pendingBytes += chunk.length;
      if (pendingBytes > options.capBytes) return void dropCapture();
      if (isWorking) return;
      isWorking = true;
      setImmediate(decodeSlice);
    },
    /** Resolves when everything written has been decoded. */
    end(): Promise<Captured> {
      isEnded = true;
      if (!isWorking) finish();
      return captured;
    },
  };
}

interface Sink {
  readonly onData: (bytes: Uint8Array) => void;
  readonly onEnd: () => void;
  readonly onError: () => void;
}

const PENDING_LIMIT = 16 * 1024 * 1024;

function createInflater(encoding: string, sink: Sink): { write(chunk: Buffer): void; end(): void } {
  const name = encoding.trim().toLowerCase();
  if (name === '' || name === 'identity') return { write: sink.onData, end: sink.onEnd };
  if (name === 'zstd') {
    const decoder = new Decompress((bytes) => sink.onData(bytes));
    return {
      write: (chunk) => decoder.push(chunk),
      end() {
        decoder.push(new Uint8Array(0), true);
        sink.onEnd();
      },
    };
  }
  const isUnzipped = ['gzip', 'x-gzip', 'deflate'].includes(name);
  const stream = isUnzipped ? createUnzip() : name === 'br' ? createBrotliDecompress() : null;
  if (stream === null) queueMicrotask(sink.onError);
  stream?.on('data', (bytes: Buffer) => {
    try {
      sink.onData(bytes);
    } catch {
      stream.destroy();
      sink.onError();
    }
  });
  stream?.on('end', sink.onEnd).on('error', sink.onError);
  return {
    write(chunk) {
      if (stream === null || stream.destroyed) return;
      if (stream.writableLength > PENDING_LIMIT) throw new Error('too many pending bytes');
      stream.write(chunk);
    },
    end: () => void stream?.end(),
  };
}

function sseReader() {
  const decoder = createSseDecoder();
  const assembler = createAssembler();
  return {
    push(bytes: Uint8Array): void {
      for (const event of decoder.push(bytes)) assembler.push(event);
    },
    result(): Captured {
      const { message, complete, errorText } = assembler.result();
      return { message, cut: !complete, errorText: errorText.slice(0, ERROR_BYTES) };
    },
  };
}

function textReader(isError: boolean) {
  const parts: Buffer[] = [];
  return {
    push: (bytes: Uint8Array) => void parts.push(Buffer.from(bytes)),
    result(): Captured {
      const text = Buffer.concat(parts);
      if (!isError) return { message: messageFromJson(text.toString('utf8')), cut: false, errorText: '' };
      return { message: null, cut: false, errorText: text.toString('utf8', 0, ERROR_BYTES) };
    },
  };
}

export interface SseEvent {
  /** `message` by default. */
  readonly event: string;
  readonly data: string;
}

/**
 * Decodes events from bytes split at any position.
 *
 * Source: WHATWG HTML §9.2.6. Drops `id`, `retry`, unknown fields, events without data and an incomplete last event.
 */
export function createSseDecoder() {
  const decoder = new TextDecoder();
  let open = '';
  let afterCr = false;
  let event = '';
  let data: string[] = [];

  function addLine(line: string, events: SseEvent[]): void {
    if (line === '') {
      if (data.length > 0) events.push({ event: event || 'message', data: data.join('\n') });
      event = '';
      data = [];
      return;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'event') event = value;
    else if (name === 'data') data.push(value);
  }

  return {
    push(bytes: Uint8Array): SseEvent[] {
      const events: SseEvent[] = [];
      let text = decoder.decode(bytes, { stream: true });
      if (text === '') return events;
      if (afterCr && text[0] === '\n') text = text.slice(1);
      afterCr = text.endsWith('\r');
      const lines = text.split(/\r\n|\n|\r/);
      const rest = lines.pop() as string;
      for (const line of lines) {
        addLine(open + line, events);
        open = '';
      }
      open += rest;
      return events;
    },
  };
}

type Json = Record<string, unknown>;

/**
 * Assembles a message from stream events. Strings and arrays of a delta are appended to the block's field, other values
 * replace it, so unknown blocks and deltas are carried too.
 *
 * Source: the Messages API's streaming events; usage of `message_delta` is cumulative.
 */
export function createAssembler() {
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
      case 'content_block_stop': {
        const at = readIndex(event);
        const [block, partial] = [blocks[at], partialInputs.get(at)];
        if (block !== undefined && partial) block['input'] = JSON.parse(partial);
        break;
      }
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
      appendDelta(block, { citations: [delta['citation']] });
    } else if (delta['type'] === 'signature_delta') {
      block['signature'] = delta['signature'];
    } else appendDelta(block, delta);
  }

  return {
    push({ event, data }: SseEvent): void {
      try {
        if (event === 'error') errorText = data;
        else apply(toRecord(JSON.parse(data)));
      } catch {
        // The client already has the bytes; only the capture is lost.
        broken = true;
      }
    },
    /** `message`: null before its start, or unreadable; `complete`: it stopped; `errorText`: of the `error` event. */
    result() {
      const message = head === null || broken ? null : toMessage(head, Object.values(blocks), stopReason, usage);
      return { message, complete, errorText };
    },
  };
}

/** The message of a response that is not streamed; null when the body is not a message. */
export function messageFromJson(text: string): AssistantMessage | null {
  const body = toRecord(parseJson(text));
  if (body['type'] !== 'message' || !Array.isArray(body['content'])) return null;
  return toMessage(body, body['content'] as Json[], body['stop_reason'] ?? null, toRecord(body['usage']));
}

function toMessage(head: Json, content: readonly Json[], stopReason: unknown, usage: Json): AssistantMessage {
  return {
    model: String(head['model'] ?? ''),
    content,
    stopReason: typeof stopReason === 'string' ? stopReason : null,
    usage: toUsage(usage),
  };
}

function toUsage(usage: Json): Usage {
  const cacheWrites = toRecord(usage['cache_creation']);
  const cacheWrite1h = toCount(cacheWrites['ephemeral_1h_input_tokens']);
  const known5m = toCount(cacheWrites['ephemeral_5m_input_tokens']);
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
    else if (Array.isArray(value) && Array.isArray(old)) for (const each of value) old.push(each);
    else block[key] = value;
  }
}

function readIndex(event: Json): number {
  const at = event['index'];
  if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at > 100_000) throw new Error('invalid block index');
  return at;
}

const toCount = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
