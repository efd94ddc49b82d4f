import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { CometError } from '../../common/errors.ts';
import type { Embedder } from '../ports.ts';
import type { EmbedReply, EmbedRequest } from './embedder-worker.ts';
import { createHashEmbedder } from './hash-embedder.ts';

interface Waiting {
  readonly resolve: (vectors: Float32Array[]) => void;
  readonly reject: (error: CometError) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
}

/**
 * The embedder in a worker thread. The thread starts with the first text, starts again after a crash, and keeps
 * the process alive only while a text is in work.
 *
 * @param options.script  compiled `embedder-worker.js`; found by itself unless told
 */
export function createWorkerEmbedder(options: { readonly script?: URL } = {}): Embedder {
  const { id, dimensions } = createHashEmbedder();
  let thread: Thread | null = null;
  let closed = false;
  let nextId = 0;

  function start(): Thread {
    const fresh: Thread = { worker: new Worker(options.script ?? workerScript()), waiting: new Map() };
    const lost = (cause: unknown): void => {
      if (thread === fresh) thread = null;
      for (const { reject } of fresh.waiting.values()) reject(failed('the embedding thread ended', cause));
      fresh.waiting.clear();
    };
    fresh.worker.on('message', (reply: EmbedReply) => settle(fresh, reply));
    fresh.worker.on('error', lost);
    fresh.worker.on('exit', lost);
    return fresh;
  }

  return {
    id,
    dimensions,
    async embed(texts) {
      if (closed) throw failed('the embedder is closed');
      if (texts.length === 0) return [];
      thread ??= start();
      const { worker, waiting } = thread;
      nextId += 1;
      const request: EmbedRequest = { id: nextId, texts };
      return new Promise((resolve, reject) => {
        waiting.set(request.id, { resolve, reject });
        worker.ref();
        worker.postMessage(request);
      });
    },
    async close() {
      closed = true;
      const ending = thread;
      thread = null;
      await ending?.worker.terminate();
    },
  };
}

function settle({ worker, waiting }: Thread, reply: EmbedReply): void {
  const caller = waiting.get(reply.id);
  waiting.delete(reply.id);
  if (waiting.size === 0) worker.unref();
  if ('vectors' in reply) caller?.resolve(reply.vectors);
  else caller?.reject(failed(reply.error));
}

/** Node 20 runs no TypeScript, and tsc leaves names inside strings alone: from source, the build's file is taken. */
function workerScript(): URL {
  const here = import.meta.url;
  if (here.endsWith('.js')) return new URL('./embedder-worker.js', here);
  const built = new URL('../../dist/memory/adapters/embedder-worker.js', here);
  if (!existsSync(built)) throw failed('embedder-worker.js is missing; run `npm run build`');
  return built;
}

function failed(message: string, cause?: unknown): CometError {
  return new CometError('index_failed', message, { cause });
}
