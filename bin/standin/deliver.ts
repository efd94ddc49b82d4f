import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';
import type { Delivery } from './answer.ts';
import { errorEvent, type StreamPart } from './sse.ts';

export type Outcome = 'complete' | 'cut' | 'aborted';

/** What is held back before the first byte. */
export async function holdBack(delivery: Delivery): Promise<void> {
  await delivery.before;
  if (delivery.delayMs) await delay(delivery.delayMs);
}

/** Writes parts one by one, each flushed, following the delivery's wishes. */
export async function deliver(
  response: ServerResponse,
  parts: Iterable<StreamPart>,
  delivery: Delivery,
): Promise<Outcome> {
  const sink = compressorOf(delivery) ?? response;
  if (sink !== response) sink.pipe(response);
  let deltas = 0;
  for (const part of parts) {
    const { pause, errorAfterDeltas: failure } = delivery;
    if (part.isDelta) {
      if (pause && deltas === pause.afterDeltas) await pause.until;
      if (deltas === delivery.cutAfterDeltas) return cut(response);
      if (deltas === failure?.count) {
        await write(sink, response, errorEvent(failure.type, failure.message), delivery);
        return finish(sink, response);
      }
      deltas += 1;
    }
    if (response.destroyed) return 'aborted';
    await write(sink, response, part.text, delivery);
  }
  if (deltas <= (delivery.cutAfterDeltas ?? -1)) return cut(response);
  return finish(sink, response);
}

type Sink = ServerResponse | ReturnType<typeof createGzip> | ReturnType<typeof createBrotliCompress>;

function compressorOf(delivery: Delivery): Exclude<Sink, ServerResponse> | null {
  if (delivery.compress === 'gzip') return createGzip();
  if (delivery.compress !== 'br') return null;
  return createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
}

async function write(sink: Sink, response: ServerResponse, text: string, delivery: Delivery): Promise<void> {
  const bytes = Buffer.from(text);
  const size = delivery.chunkBytes ?? bytes.length;
  for (let at = 0; at < bytes.length; at += size) {
    await accept(sink, response, bytes.subarray(at, at + size));
    if ('flush' in sink && typeof sink.flush === 'function')
      await flush(sink as Exclude<Sink, ServerResponse>, response);
  }
}

async function accept(sink: Writable, response: ServerResponse, chunk: Buffer): Promise<void> {
  if (response.destroyed || sink.write(chunk)) return;
  await Promise.race([once(sink, 'drain'), once(response, 'close')]);
}

async function flush(sink: Exclude<Sink, ServerResponse>, response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  const { promise, resolve } = deferred();
  sink.flush(resolve);
  await Promise.race([promise, once(response, 'close')]);
}

async function finish(sink: Sink, response: ServerResponse): Promise<Outcome> {
  if (response.destroyed) return 'aborted';
  const closed = once(response, 'close');
  const finished = once(response, 'finish');
  sink.end();
  await Promise.race([finished, closed]);
  return response.writableFinished ? 'complete' : 'aborted';
}

function cut(response: ServerResponse): Outcome {
  response.destroy();
  return 'cut';
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
