import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import {
  createEndpointKey,
  type EndpointKeyOptions,
  type EndpointReply,
  postJson,
} from '../models/endpoint-request.ts';
import type { Reranker } from './reranking.ts';

export interface EndpointRerankerOptions extends EndpointKeyOptions {
  readonly model: string;
  readonly timeoutMs: number;
  /** Applied to every text before it is sent. */
  readonly redact: (text: string) => string;
}

const ANSWER_CHARS = 2_000_000;
/** Cohere's format, also used by Jina, vLLM and llama.cpp. */
const Answer = z.looseObject({
  results: z.array(z.looseObject({ index: z.int().nonnegative(), relevance_score: z.number() })).min(1),
});

/** Calls an endpoint with Cohere's `…/rerank` API. */
export function createEndpointReranker(options: EndpointRerankerOptions): Reranker {
  const { baseUrl, model, timeoutMs, redact } = options;
  const url = `${baseUrl.replace(/\/+$/, '')}/rerank`;
  const key = createEndpointKey(options);
  return {
    async score(query, texts, signal) {
      const found = await key.read(signal);
      if (found.kind === 'missing') throw failed(`has no key: ${found.detail}`, options);
      const documents = texts.map(redact);
      const body = JSON.stringify({ model, query: redact(query), documents, top_n: texts.length });
      const authorization = found.kind === 'key' ? `Bearer ${found.key}` : '';
      const reply = await postJson({ url, body, authorization, timeoutMs, maxChars: ANSWER_CHARS }, signal);
      if (reply.how === 'answered' && (reply.status === 401 || reply.status === 403)) key.refused();
      return scoresOf(reply, texts.length, options);
    },
  };
}

/** Texts missing from the answer rank last. */
function scoresOf(reply: EndpointReply, count: number, options: EndpointRerankerOptions): number[] {
  if (reply.how !== 'answered') {
    throw failed('code' in reply ? `cannot be reached (${reply.code})` : `did not answer (${reply.how})`, options);
  }
  if (reply.status !== 200) throw failed(`returned status ${reply.status}`, options);
  const answer = Answer.safeParse(jsonOf(reply.body));
  if (!answer.success || answer.data.results.some(({ index }) => index >= count)) {
    throw failed('did not return scores', options);
  }
  const scores = new Array<number>(count).fill(Number.NEGATIVE_INFINITY);
  for (const { index, relevance_score } of answer.data.results) scores[index] = relevance_score;
  return scores;
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return null;
  }
}

function failed(what: string, { baseUrl }: Pick<EndpointRerankerOptions, 'baseUrl'>): CometError {
  return new CometError('model_failed', `the reranking endpoint ${new URL(baseUrl).host} ${what}; see rerank.baseUrl`);
}
