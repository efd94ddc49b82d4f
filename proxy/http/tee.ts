import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Decompress } from 'fzstd';
import type { AssistantMessage } from '../ports.ts';
import { createAssembler, messageFromJson } from './message-assembler.ts';
import { createSseDecoder } from './sse.ts';

interface Captured {
  readonly message: AssistantMessage | null;
  /** A readable event stream without `message_stop`. */
  readonly cut: boolean;
  readonly errorText: string;
}

export interface Tee {
  /** Queues a chunk and returns at once; the chunk is decoded later. Never throws. */
  write(chunk: Buffer): void;
  /** Resolves when everything written has been decoded. */
  end(): Promise<Captured>;
}

export interface TeeOptions {
  readonly status: number;
  readonly contentType: string;
  /** '' for none. */
  readonly contentEncoding: string;
  /** The capture is dropped when this many bytes are decoded or pending. */
  readonly capBytes: number;
}

interface Inflater {
  write(chunk: Buffer): void;
  end(): void;
}

const EMPTY: Captured = { message: null, cut: false, errorText: '' };
const ERROR_BYTES = 2_048;
/** Decoding blocks the event loop for at most this long at a time. */
const SLICE_MS = 2;

/** Decodes a copy of a response. A chunk that it cannot decode or hold loses the capture only. */
export function createTee(options: TeeOptions): Tee {
  const reader = options.status >= 400 ? errorReader() : isSse(options.contentType) ? sseReader() : jsonReader();
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
    resolveCaptured(options.status >= 400 ? reader.result() : EMPTY);
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
    write(chunk) {
      if (isLost) return;
      pending.push(chunk);
      pendingBytes += chunk.length;
      if (pendingBytes > options.capBytes) return dropCapture();
      if (isWorking) return;
      isWorking = true;
      setImmediate(decodeSlice);
    },
    end() {
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

function createInflater(encoding: string, sink: Sink): Inflater {
  const name = encoding.trim().toLowerCase();
  if (name === '' || name === 'identity') return { write: sink.onData, end: sink.onEnd };
  if (name === 'zstd') return zstdInflater(sink);
  const stream =
    name === 'gzip' || name === 'x-gzip'
      ? createGunzip()
      : name === 'br'
        ? createBrotliDecompress()
        : name === 'deflate'
          ? createInflate()
          : null;
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

function zstdInflater(sink: Sink): Inflater {
  const decoder = new Decompress((bytes) => sink.onData(bytes));
  return {
    write: (chunk) => decoder.push(chunk),
    end() {
      decoder.push(new Uint8Array(0), true);
      sink.onEnd();
    },
  };
}

interface Reader {
  push(bytes: Uint8Array): void;
  result(): Captured;
}

function sseReader(): Reader {
  const decoder = createSseDecoder();
  const assembler = createAssembler();
  return {
    push(bytes) {
      for (const event of decoder.push(bytes)) assembler.push(event);
    },
    result() {
      const { message, complete, errorText } = assembler.result();
      return { message, cut: !complete, errorText: errorText.slice(0, ERROR_BYTES) };
    },
  };
}

function jsonReader(): Reader {
  const parts: Uint8Array[] = [];
  return {
    push: (bytes) => void parts.push(Buffer.from(bytes)),
    result() {
      const text = Buffer.concat(parts).toString('utf8');
      return { message: messageFromJson(text), cut: false, errorText: '' };
    },
  };
}

function errorReader(): Reader {
  let head = Buffer.alloc(0);
  return {
    push(bytes) {
      if (head.length < ERROR_BYTES) head = Buffer.concat([head, bytes]).subarray(0, ERROR_BYTES);
    },
    result: () => ({ message: null, cut: false, errorText: head.toString('utf8') }),
  };
}

function isSse(contentType: string): boolean {
  return contentType.toLowerCase().startsWith('text/event-stream');
}
