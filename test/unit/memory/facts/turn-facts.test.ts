import { describe, expect, it } from 'vitest';
import { contextBlock, createFactStore, filteredBlock } from '../../../../memory/facts/index.ts';
import { getOntology } from '../../../helpers/facts.ts';

const ontology = getOntology({
  'Guest.Interest': {},
  'Guest.Wish': { persistence_class: 'ephemeral' },
  'Guest.Seat': { cardinality: 1, eviction: 'recency' },
});
const fact = (concept: string, value: string, polarity: 'asserted' | 'negated' = 'asserted') => ({
  ...{ concept, value, polarity },
  evidence: `I say ${value}`,
});

describe.each([
  [undefined, { photography: '0.67', Picasso: '0.67', photos: '0.68', 'Pablo Picasso': '0.69', photographs: '0.69' }],
  [0.8, { photography: '0.99', Picasso: '0.88' }],
])('the worked example with a similarity of %s', (similarity, salience) => {
  it('gives the saliences of the specification', () => {
    const store = createFactStore(ontology, similarity === undefined ? {} : { similarity });
    for (const value of ['photography', 'Picasso', 'photos', 'Pablo Picasso', 'photographs']) {
      store.upsert(fact('Guest.Interest', value));
      store.tick();
    }
    const shown = [...store.facts()].map((each) => [each.value, each.salience.toFixed(2)]);
    expect(Object.fromEntries(shown)).toEqual(salience);
  });
});

it('tells class and evidence, fades by ticks alone, and ends what is negated', () => {
  const store = createFactStore(ontology);
  store.upsert(fact('Guest.Wish', 'coffee'));
  store.upsert(fact('Guest.Seat', 'window'));
  store.upsert(fact('Guest.Seat', 'aisle'));
  store.upsert(fact('Guest.Nothing', 'undeclared'));
  expect([...store.facts()]).toMatchObject([
    { concept: 'Guest.Wish', value: 'coffee', salience: 0.7, evidence: 'I say coffee', persistenceClass: 'ephemeral' },
    { concept: 'Guest.Seat', value: 'aisle', persistenceClass: 'long_term' },
  ]);
  for (let turn = 0; turn < 4; turn += 1) store.tick();
  expect([...store.facts()].map(({ value }) => value)).toEqual(['aisle']);
  store.upsert(fact('Guest.Seat', 'Aisle ', 'negated'));
  expect([...store.facts()]).toEqual([]);
});

it('gives its blocks, and is itself again after JSON', () => {
  const store = createFactStore(ontology);
  store.upsert(fact('Guest.Seat', 'aisle'));
  store.upsert(fact('Guest.Wish', 'coffee'));
  const again = createFactStore(ontology, { state: JSON.parse(JSON.stringify(store)) });
  expect([...again.facts()]).toEqual([...store.facts()]);
  expect(contextBlock(again)).toContain('- Guest.Wish: "coffee"');
  expect(filteredBlock(again, { prefixes: ['Guest.Seat'], classes: [] })).toMatch(/^- Guest\.Seat: "aisle"$/m);
  expect(filteredBlock(again, { prefixes: ['Guest.Seat'], classes: [] })).not.toContain('coffee');
});
