import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import { createBreaker } from '../search/circuit-breaker.ts';
import type { RankedNode } from './node-ranking.ts';

export type RerankRules = Pick<Config['rerank'], 'mode' | 'timeoutMs' | 'candidates'>;

/** Asks a reranker where the settings allow it, and not for long. */
export interface Reranking {
  /** Nodes that are looked at so that the best of them can be found; 0 where nobody is asked. */
  candidates(gated: boolean): number;
  /** A number for each text, more is better; null where the order they have must do. Never rejects. */
  worth(query: string, texts: readonly string[], gated: boolean): Promise<readonly number[] | null>;
}

interface RerankingParts {
  readonly reranker: Reranker;
  readonly rules: RerankRules;
  /** All that a recall for a prompt may take. */
  readonly deadlineMs: number;
  readonly now: () => number;
  readonly log: Pick<Log, 'warn'>;
}

/** Of a recall's time; what is found in the rest is shown in its own order. */
const RECALL_SHARE = 0.6;

export function createReranking({ reranker, rules, deadlineMs, now, log }: RerankingParts): Reranking {
  const breaker = createBreaker(now);
  const isAsked = (gated: boolean): boolean => rules.mode === 'always' || (rules.mode === 'search' && !gated);
  return {
    candidates: (gated) => (isAsked(gated) ? rules.candidates : 0),
    async worth(query, texts, gated) {
      if (!isAsked(gated) || texts.length < 2 || !breaker.allows()) return null;
      const timeoutMs = gated ? Math.min(rules.timeoutMs, deadlineMs * RECALL_SHARE) : rules.timeoutMs;
      try {
        const worth = await reranker.score(query, texts, AbortSignal.timeout(Math.ceil(timeoutMs)));
        breaker.succeeded();
        return worth;
      } catch (error) {
        breaker.failed();
        log.warn('what was found keeps its order; the reranker gave none', { error });
        return null;
      }
    },
  };
}

/** Reads each passage beside the question, which ranking by words and vectors does not. */
export interface Reranker {
  /**
   * A score for each text, in their order; more is better, and only their order counts.
   *
   * @throws CometError `model_failed`, or the signal's reason as soon as it aborts
   */
  score(query: string, texts: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/**
 * Nodes in the order of `worth`, given in their order; ties stay as they were. The scores they had are handed out anew in
 * that order: what is a good score does not depend on who ordered them.
 */
export function reranked(nodes: readonly RankedNode[], worth: readonly number[]): RankedNode[] {
  const worthAt = (at: number): number => worth[at] ?? Number.NEGATIVE_INFINITY;
  const scores = nodes.map(({ score }) => score).toSorted((one, other) => other - one);
  return [...nodes.keys()]
    .sort((one, other) => (worthAt(one) === worthAt(other) ? one - other : worthAt(other) - worthAt(one)))
    .map((from, at) => ({ ...(nodes[from] as RankedNode), score: scores[at] as number }));
}

const TEXT_CHARS = 2_000;

/** What a reranker is shown of a node: its summary, and of its turns what was found first. */
export function rerankedText(
  summary: string,
  { turns }: RankedNode,
  said: ReadonlyMap<string, { readonly text: string }>,
): string {
  const found = turns.flatMap((turn) => said.get(turn)?.text ?? []);
  return [summary, ...found].join('\n').slice(0, TEXT_CHARS);
}
