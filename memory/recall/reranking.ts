import { createBreaker } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import type { RankedNode } from './node-ranking.ts';

export type RerankRules = Pick<Config['rerank'], 'mode' | 'timeoutMs' | 'candidates'>;

interface RerankingParts {
  readonly reranker: Reranker;
  readonly rules: RerankRules;
  readonly deadlineMs: number;
  readonly now: () => number;
  readonly log: Pick<Log, 'warn'>;
}

/** Share of the recall deadline that the reranker may use. */
const RECALL_SHARE = 0.6;

export type Reranking = ReturnType<typeof createReranking>;

export function createReranking({ reranker, rules, deadlineMs, now, log }: RerankingParts) {
  const breaker = createBreaker(now);
  const isAsked = (gated: boolean): boolean => rules.mode === 'always' || (rules.mode === 'search' && !gated);
  return {
    /** How many nodes to rerank; 0 if reranking is off. */
    candidates: (gated: boolean): number => (isAsked(gated) ? rules.candidates : 0),
    /** A score per text, higher is better; null keeps the present order. Never rejects. */
    async worth(query: string, texts: readonly string[], gated: boolean): Promise<readonly number[] | null> {
      if (!isAsked(gated) || texts.length < 2 || !breaker.allows()) return null;
      const timeoutMs = gated ? Math.min(rules.timeoutMs, deadlineMs * RECALL_SHARE) : rules.timeoutMs;
      try {
        const worth = await reranker.score(query, texts, AbortSignal.timeout(Math.ceil(timeoutMs)));
        breaker.succeeded();
        return worth;
      } catch (error) {
        breaker.failed();
        log.warn('reranker failed; results keep their order', { error });
        return null;
      }
    },
  };
}

/** A cross-encoder: scores each passage together with the query. */
export interface Reranker {
  /**
   * One score per text, in order; higher is better, and only the ranking matters.
   * @throws CometError `model_failed`, or the signal's reason as soon as it aborts
   */
  score(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/** Orders nodes by `worth`, ties as before, and reassigns the scores in that order, so that they stay comparable. */
export function reranked(nodes: readonly RankedNode[], worth: readonly number[]): RankedNode[] {
  const worthAt = (at: number): number => worth[at] ?? Number.NEGATIVE_INFINITY;
  const scores = nodes.map(({ score }) => score).toSorted((one, other) => other - one);
  return [...nodes.keys()]
    .sort((one, other) => (worthAt(one) === worthAt(other) ? one - other : worthAt(other) - worthAt(one)))
    .map((from, at) => ({ ...(nodes[from] as RankedNode), score: scores[at] as number }));
}

const TEXT_CHARS = 2_000;

/** The node's summary and its matched turns, as input for a reranker. */
export function rerankedText(
  summary: string,
  { turns }: RankedNode,
  words: ReadonlyMap<string, { readonly text: string }>,
): string {
  return [summary, ...turns.flatMap((turn) => words.get(turn)?.text ?? [])].join('\n').slice(0, TEXT_CHARS);
}
