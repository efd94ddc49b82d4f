import { Worker } from 'node:worker_threads';
import { CometError, indexError } from '../../common/errors.ts';
import { builtFile } from '../../common/paths.ts';
import type { Embedder, Embedding } from './embedder.ts';
import type { EmbedReply, EmbedRequest } from './embedder-worker.ts';
import { type EncodedQuery, encodeQuery } from './encoder.ts';
import { MINILM } from './model-encoder.ts';

const WORKER = builtFile('memory', 'embeddings', 'embedder-worker.js');

type Result = { readonly embedding: Embedding } | { readonly query: EncodedQuery };

interface Job {
  readonly request: EmbedRequest;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: CometError) => void;
}

interface Thread {
  readonly worker: Worker;
  /** One job at a time, so that a query waits for the current job only. */
  job: Job | null;
}

/**
 * Runs MiniLM in a worker thread. The thread starts on first use, restarts after a crash, and keeps the process
 * alive only while a job runs. Queries take precedence over documents.
 *
 * @param dir     where the user installed its packages
 * @param script  compiled `embedder-worker.js`; the package's own by default
 */
export function createWorkerEmbedder(dir: string, script = WORKER): Embedder {
  const queries: Job[] = [];
  const documents: Job[] = [];
  let thread: Thread | null = null;
  let closed = false;
  let nextId = 0;

  function start(): Thread {
    const fresh: Thread = { worker: new Worker(script, { workerData: { dir } }), job: null };
    const lost = (cause: unknown): void => {
      const { job } = fresh;
      fresh.job = null;
      if (thread === fresh) thread = null;
      job?.reject(indexError('the embedding thread ended', cause));
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
    if ('error' in reply) job.reject(indexError(reply.error));
    else job.resolve(reply);
    next();
  }

  function next(): void {
    if (thread !== null && thread.job !== null) return;
    const job = queries.shift() ?? documents.shift();
    if (job === undefined) {
      thread?.worker.unref();
      return;
    }
    try {
      thread ??= start();
    } catch (error) {
      job.reject(error instanceof CometError ? error : indexError('the embedding thread did not start', error));
      next();
      return;
    }
    thread.job = job;
    thread.worker.ref();
    thread.worker.postMessage(job.request);
  }

  function ask(queue: Job[], text: { document: string } | { query: string }): Promise<Result> {
    if (closed) return Promise.reject(indexError('the embedder is closed'));
    nextId += 1;
    const request: EmbedRequest = { id: nextId, ...text };
    return new Promise((resolve, reject) => {
      queue.push({ request, resolve, reject });
      next();
    });
  }

  return {
    ...MINILM,
    async embed(texts) {
      const results = await Promise.all(texts.map((document) => ask(documents, { document })));
      return results.flatMap((result) => ('embedding' in result ? [result.embedding] : []));
    },
    async embedQuery(text, corpus) {
      const result = await ask(queries, { query: text });
      if (!('query' in result)) throw indexError('unexpected reply from the embedding thread');
      return encodeQuery(result.query, corpus);
    },
    async close() {
      closed = true;
      const ending = thread;
      thread = null;
      for (const { reject } of [...queries.splice(0), ...documents.splice(0)])
        reject(indexError('the embedder is closed'));
      await ending?.worker.terminate();
    },
  };
}
