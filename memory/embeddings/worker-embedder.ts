import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { CometError } from '../../common/errors.ts';
import type { Embedder, Embedding } from './embedder.ts';
import type { EmbedReply, EmbedRequest } from './embedder-worker.ts';
import { ENCODER_FACTS, type EncoderChoice } from './encoders.ts';
import { askedWith, type Question } from './query-encoder.ts';
import { createStaticEncoder } from './static-encoder.ts';

type Result = { readonly embeddings: readonly Embedding[] } | { readonly question: Question };

interface Job {
  readonly request: EmbedRequest;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: CometError) => void;
}

interface Thread {
  readonly worker: Worker;
  /** One at a time, so that a question waits for no more than what is in work. */
  job: Job | null;
}

export interface WorkerEmbedderOptions {
  readonly encoder: EncoderChoice;
  /** Compiled `embedder-worker.js`; found by itself unless told. */
  readonly script?: URL;
}

/**
 * An encoder in a worker thread. The thread starts with the first text, starts again after a crash, and keeps the
 * process alive only while a text is in work. Questions go before documents.
 */
export function createWorkerEmbedder({ encoder, script }: WorkerEmbedderOptions): Embedder {
  const { id, dimensions, atOnce } = ENCODER_FACTS[encoder.kind];
  const questions: Job[] = [];
  const documents: Job[] = [];
  let thread: Thread | null = null;
  let closed = false;
  let nextId = 0;

  function start(): Thread {
    const fresh: Thread = { worker: new Worker(script ?? workerScript(), { workerData: { encoder } }), job: null };
    const lost = (cause: unknown): void => {
      const { job } = fresh;
      fresh.job = null;
      if (thread === fresh) thread = null;
      job?.reject(failed('the embedding thread ended', cause));
      if (!closed) next();
    };
    fresh.worker.on('message', (reply: EmbedReply) => settle(fresh, reply));
    fresh.worker.once('error', lost);
    fresh.worker.once('exit', lost);
    return fresh;
  }

  function settle(from: Thread, reply: EmbedReply): void {
    const { job } = from;
    from.job = null;
    if (job === null || job.request.id !== reply.id) return;
    if ('error' in reply) job.reject(failed(reply.error));
    else job.resolve(reply);
    next();
  }

  function next(): void {
    if (thread !== null && thread.job !== null) return;
    const job = questions.shift() ?? documents.shift();
    if (job === undefined) {
      thread?.worker.unref();
      return;
    }
    try {
      thread ??= start();
    } catch (error) {
      job.reject(error instanceof CometError ? error : failed('the embedding thread does not start', error));
      next();
      return;
    }
    thread.job = job;
    thread.worker.ref();
    thread.worker.postMessage(job.request);
  }

  function ask(queue: Job[], text: { documents: readonly string[] } | { question: string }): Promise<Result> {
    if (closed) return Promise.reject(failed('the embedder is closed'));
    nextId += 1;
    const request: EmbedRequest = { id: nextId, ...text };
    return new Promise((resolve, reject) => {
      queue.push({ request, resolve, reject });
      next();
    });
  }

  return {
    id,
    dimensions,
    async embed(texts) {
      const slices = Array.from({ length: Math.ceil(texts.length / atOnce) }, (_, at) =>
        ask(documents, { documents: texts.slice(at * atOnce, (at + 1) * atOnce) }),
      );
      const results = await Promise.all(slices);
      return results.flatMap((result) => ('embeddings' in result ? result.embeddings : []));
    },
    async embedQuery(text, corpus) {
      if (closed) throw failed('the embedder is closed');
      // A few words looked up in a table take less time than asking a thread.
      if (encoder.kind === 'static') return askedWith(await createStaticEncoder().question(text), corpus);
      const result = await ask(questions, { question: text });
      if (!('question' in result)) throw failed('the embedding thread answered something else');
      return askedWith(result.question, corpus);
    },
    async close() {
      closed = true;
      const ending = thread;
      thread = null;
      for (const { reject } of [...questions.splice(0), ...documents.splice(0)])
        reject(failed('the embedder is closed'));
      await ending?.worker.terminate();
    },
  };
}

/** Node 20 runs no TypeScript, and tsc leaves names inside strings alone: from source, the build's file is taken. */
function workerScript(): URL {
  const here = import.meta.url;
  if (here.endsWith('.js')) return new URL('./embedder-worker.js', here);
  const built = new URL('../../dist/memory/embeddings/embedder-worker.js', here);
  if (!existsSync(built)) throw failed('embedder-worker.js is missing; run `npm run build`');
  return built;
}

function failed(message: string, cause?: unknown): CometError {
  return new CometError('index_failed', message, { cause });
}
