import type { Reranker } from '../../memory/recall/reranking.ts';
import { contentTokens } from '../../memory/text/keywords.ts';
import { tokenize } from '../../memory/text/tokenizer.ts';

/** How many words of the question stand in a text. */
export function sharedWords(query: string, text: string): number {
  const said = new Set(tokenize(text));
  return contentTokens(query).filter((token) => said.has(token)).length;
}

export function createWordReranker(): Reranker {
  return {
    async score(query, texts, signal) {
      signal.throwIfAborted();
      return texts.map((text) => sharedWords(query, text));
    },
  };
}
