import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { slices } from '../../common/map.ts';
import { trimEnd } from '../../common/text.ts';
import { createKeyedRequest, type ModelEndpointOptions, readReply } from '../models/endpoint-request.ts';
import type { Embedder } from './embedder.ts';
import { centerVector, toUnit } from './vectors.ts';

/** Texts per request; some endpoints accept no more. */
const AT_ONCE = 16;
/** About 2,000 tokens; endpoints refuse or cut longer texts. */
const MAX_CHARS = 6_000;
const ANSWER_CHARS = 20_000_000;

const Vector = z.array(z.number()).min(1);
/** OpenAI's shape, then Ollama's. */
const Answer = z.union([
  z
    .looseObject({ data: z.array(z.looseObject({ embedding: Vector, index: z.int().optional() })) })
    .transform(({ data }) => {
      const rows = data.map(({ embedding, index }, at) => ({ embedding, at: index ?? at }));
      return rows.sort((left, right) => left.at - right.at).map(({ embedding }) => embedding);
    }),
  z.looseObject({ embeddings: z.array(Vector) }).transform(({ embeddings }) => embeddings),
]);

/** @throws CometError `index_failed` if the endpoint does not return vectors */
export async function probeDimensions(options: ModelEndpointOptions): Promise<number> {
  const [vector] = await createAsker(options, new AbortController().signal)(['dimensions']);
  return vector?.length ?? 0;
}

/** Calls an endpoint with OpenAI's embeddings API (`…/v1`) or Ollama's (`…/api`). */
export function createEndpointEmbedder(options: ModelEndpointOptions & { readonly dimensions: number }): Embedder {
  const { dimensions } = options;
  const closing = new AbortController();
  const ask = createAsker(options, closing.signal);

  /** Texts without words become zeros, since some endpoints refuse them. */
  async function vectors(texts: readonly string[]): Promise<Float32Array[]> {
    const wordTexts = texts.filter(hasWords);
    const answered = wordTexts.length === 0 ? [] : await ask(wordTexts);
    const odd = answered.find(({ length }) => length !== dimensions);
    if (odd !== undefined)
      throw toEndpointError(`returned vectors of ${odd.length} instead of ${dimensions} dimensions`, options);
    return texts.map((text) => (hasWords(text) ? (answered.shift() as Float32Array) : new Float32Array(dimensions)));
  }

  return {
    id: `${endpointName(options)}-${dimensions}`,
    dimensions,
    async embed(texts) {
      const all: Float32Array[] = [];
      for (const some of slices(texts, AT_ONCE)) all.push(...(await vectors(some)));
      return all.map((vector) => ({ vector, scriptVector: null, pieces: new Uint16Array(0) }));
    },
    async embedQuery(text, corpus) {
      const [vector] = await vectors([text]);
      return { vector: centerVector(vector as Float32Array, await corpus.mean()), comparedWith: 'vector' };
    },
    async close() {
      closing.abort(new CometError('index_failed', 'the embedder is closed'));
    },
  };
}

export function endpointName({ baseUrl, model }: Pick<ModelEndpointOptions, 'baseUrl' | 'model'>): string {
  const { host, pathname } = new URL(baseUrl);
  return `endpoint-${host}${trimEnd(pathname, '/')}-${model}`;
}

function createAsker(options: ModelEndpointOptions, signal: AbortSignal) {
  const { baseUrl, model, redact, timeoutMs } = options;
  const base = trimEnd(baseUrl, '/');
  const url = base.endsWith('/api') ? `${base}/embed` : `${base}/embeddings`;
  const send = createKeyedRequest(options, ANSWER_CHARS);
  return async (texts: readonly string[]): Promise<Float32Array[]> => {
    signal.throwIfAborted();
    const body = JSON.stringify({ model, input: texts.map((text) => redact(text).slice(0, MAX_CHARS)) });
    const reply = readReply(await send({ url, body, timeoutMs }, signal));
    if ('problem' in reply) throw toEndpointError(reply.problem, options);
    const answer = Answer.safeParse(reply.body);
    if (!answer.success) throw toEndpointError('did not return vectors', options);
    const vectors = answer.data.map((row) => toUnit(Float32Array.from(row)));
    if (vectors.length !== texts.length)
      throw toEndpointError(`returned ${vectors.length} vectors for ${texts.length} texts`, options);
    return vectors;
  };
}

const hasWords = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);

function toEndpointError(what: string, { baseUrl }: Pick<ModelEndpointOptions, 'baseUrl'>): CometError {
  return new CometError('index_failed', `the embedding endpoint ${new URL(baseUrl).host} ${what}`);
}
