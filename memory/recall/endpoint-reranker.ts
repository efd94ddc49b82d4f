import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { trimEnd } from '../../common/text.ts';
import { createKeyedRequest, type ModelEndpointOptions, readReply } from '../models/endpoint-request.ts';
import type { Reranker } from './reranking.ts';

const ANSWER_CHARS = 2_000_000;
/** Cohere's format, also used by Jina, vLLM and llama.cpp. */
const Answer = z.looseObject({
  results: z.array(z.looseObject({ index: z.int().nonnegative(), relevance_score: z.number() })).min(1),
});

/** Calls an endpoint with Cohere's `…/rerank` API. */
export function createEndpointReranker(options: ModelEndpointOptions): Reranker {
  const { baseUrl, model, redact, timeoutMs } = options;
  const url = `${trimEnd(baseUrl, '/')}/rerank`;
  const send = createKeyedRequest(options, ANSWER_CHARS);
  return {
    async score(query, texts, signal) {
      const asked = { model, query: redact(query), documents: texts.map(redact), top_n: texts.length };
      const reply = readReply(await send({ url, body: JSON.stringify(asked), timeoutMs }, signal));
      if ('problem' in reply) throw toEndpointError(reply.problem, options);
      const answer = Answer.safeParse(reply.body);
      if (!answer.success || answer.data.results.some(({ index }) => index >= texts.length))
        throw toEndpointError('did not return scores', options);
      // Texts missing from the answer rank last.
      const scores = new Array<number>(texts.length).fill(Number.NEGATIVE_INFINITY);
      for (const { index, relevance_score } of answer.data.results) scores[index] = relevance_score;
      return scores;
    },
  };
}

function toEndpointError(what: string, { baseUrl }: Pick<ModelEndpointOptions, 'baseUrl'>): CometError {
  return new CometError('model_failed', `the reranking endpoint ${new URL(baseUrl).host} ${what}; see rerank.baseUrl`);
}
