export { DEFAULT_ONTOLOGY } from './default-ontology.ts';
export type { FactRule } from './default-rules.ts';
export type { DropReason, ExtractedFact, Extraction, FactModel, FactRequest, FactTurn } from './extract-facts.ts';
export { conceptCatalog, EXTRACTOR_PROMPT, extractFacts } from './extract-facts.ts';
export type { Fact, FactState } from './fact.ts';
export { contextBlock, type FactFilter, type FactSource, filteredBlock } from './fact-block.ts';
export {
  DECAY,
  type FactStore,
  type FactStoreOptions,
  PRUNE_THRESHOLD,
  type Similarity,
  type TurnChanges,
  type TurnSource,
} from './fact-store.ts';
export {
  type Concept,
  type Ontology,
  type OntologyProblem,
  type ParsedOntology,
  type PersistenceClass,
  parseOntology,
} from './ontology.ts';
export { extractByRules } from './rules.ts';
export { fuzzySimilarity } from './similarity.ts';
export { createFactStore, type TurnFacts } from './turn-facts.ts';
