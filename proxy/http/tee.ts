import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Decompress } from 'fzstd';
import type { AssistantMessage } from '../ports.ts';
import { createAssembler, messageFromJson } from './message-assembler.ts';
import { createSseDecoder } from './sse.ts';

interface Captured {
  readonly message: AssistantMessage | null;
  /** It could be read, is an event stream, and has no `message_stop`. */
  readonly cut: boolean;
  readonly errorText: string;
}

export interface Tee {
  /** Takes what the client is sent and reads it after the client has got it; returns at once, never throws. */
  write(chunk: Buffer): void;
  /** Resolves when all that came has been read. */
  end(): Promise<Captured>;
}

export interface TeeOptions {
  readonly status: number;
  readonly contentType: string;
  /** '' for none. */
  readonly contentEncoding: string;
  /** Bytes that may be decoded or wait for it before the capture is given up. */
  readonly capBytes: number;
}

interface Inflater {
  write(chunk: Buffer): void;
  end(): void;
}

const NOTHING: Captured = { message: null, cut: false, errorText: '' };
const ERROR_BYTES = 2_048;
/** Reading beside the streams must not hold any of them up for longer. */
const SLICE_MS = 2;

/** Reads a response beside its stream. What it cannot decode or hold loses the capture and nothing else. */
export function createTee(options: TeeOptions): Tee {
  const reader = options.status >= 400 ? errorReader() : isSse(options.contentType) ? sseReader() : jsonReader();
  let decodedBytes = 0;
  const waiting: Buffer[] = [];
  let waitingBytes = 0;
  let isWorking = false;
  let isOver = false;
  let lost = false;
  let settle: (captured: Captured) => void = () => {};
  const captured = new Promise<Captured>((resolve) => {
    settle = resolve;
  });

  const inflater = createInflater(options.contentEncoding, {
    onData(bytes) {
      decodedBytes += bytes.length;
      if (decodedBytes > options.capBytes) throw new Error('too much to hold');
      if (!lost) reader.push(bytes);
    },
    onEnd: () => settle(lost ? NOTHING : reader.result()),
    onError: lose,
  });

  function lose(): void {
    lost = true;
    waiting.length = 0;
    settle(options.status >= 400 ? reader.result() : NOTHING);
  }

  function read(chunk: Buffer): void {
    waitingBytes -= chunk.length;
    try {
      inflater.write(chunk);
    } catch {
      lose();
    }
  }

  /** A slice of what waits; other streams get their turn in between. */
  function work(): void {
    const until = performance.now() + SLICE_MS;
    do {
      const chunk = waiting.shift();
      if (chunk !== undefined) read(chunk);
    } while (waiting.length > 0 && performance.now() < until);
    isWorking = waiting.length > 0;
    if (isWorking) setImmediate(work);
    else if (isOver) finish();
  }

  function finish(): void {
    try {
      if (!lost) inflater.end();
    } catch {
      lose();
    }
  }

  return {
    write(chunk) {
      if (lost) return;
      waiting.push(chunk);
      waitingBytes += chunk.length;
      if (waitingBytes > options.capBytes) return lose();
      if (isWorking) return;
      isWorking = true;
      setImmediate(work);
    },
    end() {
      isOver = true;
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
  if (stream === null) throwAway(sink);
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
      if (stream.writableLength > PENDING_LIMIT) throw new Error('too much is waiting');
      stream.write(chunk);
    },
    end: () => void stream?.end(),
  };
}

function throwAway(sink: Sink): void {
  queueMicrotask(sink.onError);
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
