import { describe, expect, it } from 'vitest';
import { DEFAULT_ONTOLOGY } from '../../../../memory/facts/default-ontology.ts';
import {
  type Concept,
  mergeOntologies,
  type Ontology,
  ontologyJsonSchema,
  parseOntology,
} from '../../../../memory/facts/ontology.ts';

const NEEDED = { label: 'a label', persistence_class: 'session', salience_weight: 0.5 };
const DEFAULTS = { examples: [], cardinality: 'unlimited', eviction: 'salience' };

function declared(name: string): Concept {
  return DEFAULT_ONTOLOGY.concepts[name] as Concept;
}

function file(concepts: object, version = '0.2') {
  return { version, concepts };
}

function getProblems(value: unknown) {
  const parsed = parseOntology(value);
  return parsed.ok ? [] : parsed.problems;
}

describe('parseOntology', () => {
  it('fills in what a file leaves out', () => {
    expect(parseOntology(file({ 'Guest.Need': NEEDED }))).toEqual({
      ok: true,
      ontology: file({ 'Guest.Need': { ...NEEDED, ...DEFAULTS } }),
      warnings: [],
    });
  });

  it('reads the default ontology as it is', () => {
    expect(parseOntology(DEFAULT_ONTOLOGY)).toEqual({ ok: true, ontology: DEFAULT_ONTOLOGY, warnings: [] });
  });

  it.each([
    ['superseded', { cardinality: 1, eviction: 'recency' }],
    ['mutable', { cardinality: 'unlimited', eviction: 'salience' }],
    ['monotonic', { cardinality: 'unlimited', eviction: 'salience' }],
  ])('reads update_policy %s, with a warning', (update_policy, meant) => {
    const parsed = parseOntology(file({ 'Guest.Need': { ...NEEDED, update_policy } }, '0.1'));
    expect(parsed).toMatchObject({ ok: true, ontology: file({ 'Guest.Need': { ...NEEDED, ...meant } }) });
    expect(parsed.ok && parsed.warnings.map(({ path }) => path)).toEqual([
      'concepts.Guest.Need.update_policy',
      'version',
    ]);
  });

  it.each([
    ['a typing error', { 'A.B': { ...NEEDED, salience: 1 } }, 'concepts.A.B', /salience/],
    ['an unknown class', { 'A.B': { ...NEEDED, persistence_class: 'ever' } }, 'concepts.A.B.persistence_class', /perm/],
    ['a weight above 1', { 'A.B': { ...NEEDED, salience_weight: 2 } }, 'concepts.A.B.salience_weight', /1/],
    ['an unknown policy', { 'A.B': { ...NEEDED, update_policy: 'x' } }, 'concepts.A.B', /update_policy/],
    ['a name without a domain', { need: NEEDED }, 'concepts.need', /Domain\.Concept/],
    ['a name of Object', { constructor: NEEDED }, 'concepts.constructor', /Domain\.Concept/],
  ])('names the path of %s', (_, concepts, path, message) => {
    expect(getProblems(file(concepts))).toContainEqual({ path, message: expect.stringMatching(message) });
  });

  it.each([[null], [[]], ['text'], [{}], [{ version: '9', concepts: {} }]])('refuses %j', (value: unknown) => {
    expect(getProblems(value)).not.toEqual([]);
  });
});

it('lets a project add concepts, and neither replace nor raise one', () => {
  const project: Ontology = {
    version: '0.2',
    concepts: {
      'Shop.Region': { ...declared('Work.Goal'), label: 'a sales region' },
      'Need.Immediate': { ...declared('Need.Immediate'), persistence_class: 'permanent' },
      'Person.PREFERENCE': declared('Person.Preference'),
    },
  };
  const { ontology, warnings } = mergeOntologies(DEFAULT_ONTOLOGY, project);
  expect(ontology.concepts).toEqual({
    ...DEFAULT_ONTOLOGY.concepts,
    'Shop.Region': project.concepts['Shop.Region'],
  });
  expect(warnings.map(({ path }) => path)).toEqual(['concepts.Need.Immediate', 'concepts.Person.PREFERENCE']);
});

it('has the JSON schema that is published, where what a file may leave out is optional', async () => {
  const schema = ontologyJsonSchema();
  expect(schema).toMatchObject({
    required: ['version', 'concepts'],
    properties: {
      concepts: { additionalProperties: { required: ['label', 'persistence_class', 'salience_weight'] } },
    },
  });
  const published = `${JSON.stringify(schema, null, 2)}\n`;
  await expect(published).toMatchFileSnapshot('../../../../docs/ontology.schema.json');
});
