import { isPairedScript } from '../text/cjk.ts';
import { entityTokens } from '../text/entities.ts';
import type { Lane } from './node-index.ts';
import type { Thesaurus, WeightedTerm } from './query-expansion.ts';
import { queryTerms } from './query-terms.ts';

/** What full text is asked for, lane by lane; empty where a lane is not asked. */
export interface SearchTerms {
  readonly own: readonly WeightedTerm[];
  readonly expanded: readonly WeightedTerm[];
  readonly entities: readonly WeightedTerm[];
}

export interface TermSources {
  readonly weigh: (tokens: readonly string[]) => ReadonlyMap<string, number>;
  /** The same for tokens that stand where the question is asked; others are left out. */
  readonly known: (tokens: readonly string[]) => ReadonlyMap<string, number>;
  readonly thesaurus: Thesaurus;
  readonly without: ReadonlySet<Lane>;
}

export function searchTerms(query: string, { weigh, known, thesaurus, without }: TermSources): SearchTerms {
  const own = queryTerms(query, weigh).map(alone);
  const isExpanded = !without.has('expanded') && !isPairedScript(query);
  return {
    own,
    expanded: isExpanded ? thesaurus.expand(query, known) : [],
    entities: without.has('entity') ? [] : entityTokens(query).map(alone),
  };
}

const alone = (term: string): WeightedTerm => [term, 1];
