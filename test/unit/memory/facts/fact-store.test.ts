import { describe, expect, it } from 'vitest';
import type { ExtractedFact } from '../../../../memory/facts/extract-facts.ts';
import type { Fact } from '../../../../memory/facts/fact.ts';
import { createFactStore, type FactStore } from '../../../../memory/facts/fact-store.ts';
import type { Concept, Ontology } from '../../../../memory/facts/ontology.ts';

const START = Date.UTC(2026, 2, 1);

function concept(settings: Partial<Concept> = {}): Concept {
  return {
    label: 'a label',
    examples: [],
    persistence_class: 'long_term',
    salience_weight: 0.7,
    cardinality: 'unlimited',
    eviction: 'salience',
    ...settings,
  };
}

function ontology(concepts: Record<string, Partial<Concept>>): Ontology {
  return {
    version: '0.2',
    concepts: Object.fromEntries(Object.entries(concepts).map(([name, each]) => [name, concept(each)])),
  };
}

function said(value: string, settings: Partial<ExtractedFact> = {}): ExtractedFact {
  return { concept: 'Guest.Interest', value, polarity: 'asserted', evidence: value, origin: 'user', ...settings };
}

/** Applies one turn for each list of facts. */
function talk(store: FactStore, ...turns: readonly (readonly ExtractedFact[])[]) {
  return turns.map((facts, at) =>
    store.applyTurn(facts, { turnId: `t${at + 1}`, sessionId: 's1', atMs: START + at * 60_000 }),
  );
}

function shown(facts: readonly Fact[]): Record<string, string> {
  return Object.fromEntries(facts.map(({ value, salience }) => [value, salience.toFixed(2)]));
}

describe('the worked example: an interest of weight 0.7 in five turns', () => {
  const INTERESTS = ['photography', 'Picasso', 'photos', 'Pablo Picasso', 'photographs'];
  const interest = ontology({ 'Guest.Interest': {} });

  it('keeps five facts where values have to be equal', () => {
    const store = createFactStore({ ontology: interest });
    talk(store, ...INTERESTS.map((value) => [said(value)]));
    expect(shown(store.facts)).toEqual({
      photographs: '0.69',
      'Pablo Picasso': '0.69',
      photos: '0.68',
      Picasso: '0.67',
      photography: '0.67',
    });
  });
});
