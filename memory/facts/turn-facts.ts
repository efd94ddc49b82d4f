import type { ExtractedFact } from './extract-facts.ts';
import type { Fact, FactState } from './fact.ts';
import { createFactStore as createStore, type FactStore, type FactStoreOptions } from './fact-store.ts';
import type { Concept, Ontology, PersistenceClass } from './ontology.ts';
import { fuzzySimilarity } from './similarity.ts';

/** Facts of one conversation, whose turns the caller counts. */
export interface TurnFacts {
  readonly ontology: Ontology;
  /** Applies a fact of the turn; nothing fades. */
  upsert(fact: Omit<ExtractedFact, 'origin'>): void;
  /** Ends a turn of the user: salience decays once. */
  tick(): void;
  facts(): Iterable<Fact & { readonly persistenceClass: PersistenceClass }>;
  toJSON(): FactState;
}
interface Options extends Pick<FactStoreOptions, 'state'> {
  /** A number below 1 joins paraphrases by their words. */
  readonly similarity?: number | FactStoreOptions['similarity'];
}

export function createFactStore(options: FactStoreOptions): FactStore;
export function createFactStore(ontology: Ontology, options?: Options): TurnFacts;
export function createFactStore(
  given: Ontology | FactStoreOptions,
  { similarity = 1, ...rest }: Options = {},
): TurnFacts | FactStore {
  if ('ontology' in given) return createStore(given);
  const scorer = typeof similarity === 'number' ? fuzzySimilarity(similarity) : similarity;
  const store = createStore({ ontology: given, ...rest, ...(similarity === 1 ? {} : { similarity: scorer }) });
  const apply = (facts: readonly ExtractedFact[]) =>
    store.applyTurn(facts, { turnId: '', sessionId: '', atMs: Date.now(), isLate: facts.length > 0 });
  const getClass = ({ concept }: Fact) => (given.concepts[concept] as Concept).persistence_class;
  return {
    ontology: given,
    upsert: (fact: Omit<ExtractedFact, 'origin'>) => void apply([{ ...fact, origin: 'user' }]),
    tick: () => void apply([]),
    facts: () => store.facts.map((fact) => ({ ...fact, persistenceClass: getClass(fact) })),
    toJSON: store.serialize,
  };
}
