import type { ExtractedFact } from '../../memory/facts/extract-facts.ts';
import type { FactStore } from '../../memory/facts/fact-store.ts';
import type { Concept, Ontology } from '../../memory/facts/ontology.ts';

export const START = Date.UTC(2026, 2, 1);

/** Concepts of class `long_term`, weight 0.7, unlimited; `settings` says what differs. */
export function getOntology(concepts: Record<string, Partial<Concept>>): Ontology {
  const plain: Concept = {
    label: 'a label',
    examples: [],
    persistence_class: 'long_term',
    salience_weight: 0.7,
    cardinality: 'unlimited',
    eviction: 'salience',
  };
  return {
    version: '0.2',
    concepts: Object.fromEntries(Object.entries(concepts).map(([name, settings]) => [name, { ...plain, ...settings }])),
  };
}

export function said(concept: string, value: string, settings: Partial<ExtractedFact> = {}): ExtractedFact {
  return { concept, value, polarity: 'asserted', evidence: value, origin: 'user', ...settings };
}

export function negated(concept: string, value: string): ExtractedFact {
  return said(concept, value, { polarity: 'negated' });
}

/** Applies one turn of session `s1` for each list of facts. */
export function talk(store: FactStore, ...turns: readonly (readonly ExtractedFact[])[]) {
  return turns.map((facts, at) =>
    store.applyTurn(facts, { turnId: `t${at + 1}`, sessionId: 's1', atMs: START + at * 60_000 }),
  );
}
