import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type BrotliCompress, constants, createBrotliCompress, createGzip, type Gzip } from 'node:zlib';
import type { Delivery } from './answer.ts';
import { errorEvent, type StreamPart } from './sse.ts';

export type Outcome = 'complete' | 'cut' | 'aborted';

/** What is held back before the first byte. */
export async function holdBack(delivery: Delivery): Promise<void> {
  await delivery.before;
  if (delivery.delayMs) await delay(delivery.delayMs);
}

/** Writes parts one by one, each on the wire before the next, following the delivery's wishes. */
export async function deliver(
  response: ServerResponse,
  parts: Iterable<StreamPart>,
  delivery: Delivery,
): Promise<Outcome> {
  const gone = response.destroyed ? Promise.resolve() : once(response, 'close');
  const encoder = createEncoder(delivery.compress);
  const put = async (bytes: Buffer) => {
    const size = delivery.chunkBytes ?? bytes.length;
    for (let at = 0; at < bytes.length && !response.destroyed; at += size) {
      await Promise.race([written(response, bytes.subarray(at, at + size)), gone]);
    }
  };
  const { pause, cutAfterDeltas, errorAfterDeltas: failure } = delivery;
  let deltas = 0;
  for (const part of parts) {
    if (part.isDelta) {
      if (deltas === pause?.afterDeltas) await Promise.race([pause.until, gone]);
      if (deltas === cutAfterDeltas) return cut(response);
      if (deltas === failure?.count) {
        await put(await encoder.encode(errorEvent(failure.type, failure.message)));
        break;
      }
      deltas += 1;
    }
    await put(await encoder.encode(part.text));
    if (response.destroyed) return 'aborted';
  }
  if (cutAfterDeltas !== undefined) return cut(response);
  await put(await encoder.end());
  response.end();
  await gone;
  return response.writableFinished ? 'complete' : 'aborted';
}

/** Resolves when the bytes have left this process, or never will. */
function written(response: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    response.write(bytes, () => resolve());
  });
}

function cut(response: ServerResponse): Outcome {
  response.destroy();
  return 'cut';
}

interface Encoder {
  /** The text and all before it can be decoded from what was returned so far. */
  encode(text: string): Promise<Buffer>;
  end(): Promise<Buffer>;
}

function createEncoder(compress: Delivery['compress']): Encoder {
  if (!compress) return { encode: async (text) => Buffer.from(text), end: async () => Buffer.alloc(0) };
  const zlib: Gzip | BrotliCompress =
    compress === 'gzip' ? createGzip() : createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  const chunks: Buffer[] = [];
  zlib.on('data', (chunk: Buffer) => chunks.push(chunk));
  const take = () => Buffer.concat(chunks.splice(0));
  return {
    async encode(text) {
      zlib.write(text);
      await new Promise<void>((resolve) => {
        zlib.flush(() => resolve());
      });
      return take();
    },
    async end() {
      const ended = once(zlib, 'end');
      zlib.end();
      await ended;
      return take();
    },
  };
}
