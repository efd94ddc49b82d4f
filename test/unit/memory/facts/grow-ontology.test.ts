import { expect, it } from 'vitest';
import { DEFAULT_ONTOLOGY } from '../../../../memory/facts/default-ontology.ts';
import { proposeConcepts, type Statement } from '../../../../memory/facts/grow-ontology.ts';
import { parseOntology } from '../../../../memory/facts/ontology.ts';

const said = (text: string, day: number, session = `s${day}`): Statement => ({
  text,
  session_id: session,
  at: `2026-03-${String(day).padStart(2, '0')}T10:00:00.000Z`,
});
const WAREHOUSE = [
  said('The warehouse closes its books at noon.', 1),
  said('Returns go to the warehouse in Essen.', 2),
  said('Keep the warehouse out of the nightly export.', 9),
  said('The warehouse takes parcels up to 30 kg.', 9),
];

it('proposes a subject of several sessions as a valid concept, with examples', () => {
  const [proposal, ...others] = proposeConcepts(WAREHOUSE, DEFAULT_ONTOLOGY);
  expect(others).toEqual([]);
  expect(proposal).toMatchObject({
    name: 'Project.Warehouse',
    statements: 4,
    sessions: 3,
    concept: { persistence_class: 'long_term', cardinality: 5 },
  });
  expect(proposal?.concept.examples).toHaveLength(3);
  const concepts = { [proposal?.name ?? '']: proposal?.concept };
  expect(parseOntology({ version: '0.2', concepts })).toMatchObject({ ok: true });
});

it('takes what is spoken of for a few days as passing', () => {
  const week = WAREHOUSE.map((each, at) => said(each.text, at + 1));
  expect(proposeConcepts(week, DEFAULT_ONTOLOGY)[0]?.concept.persistence_class).toBe('session');
});

it('proposes nothing that one session repeats, that a concept names, or that is a path or a figure', () => {
  expect(
    proposeConcepts(
      WAREHOUSE.map(({ text }) => said(text, 1)),
      DEFAULT_ONTOLOGY,
    ),
  ).toEqual([]);
  const [proposal] = proposeConcepts(WAREHOUSE, DEFAULT_ONTOLOGY);
  const concepts = { ...DEFAULT_ONTOLOGY.concepts, 'Project.Depot': { ...proposal?.concept, examples: [] } };
  const parsed = parseOntology({ version: '0.2', concepts });
  expect(parsed.ok && proposeConcepts(WAREHOUSE, parsed.ontology)).toEqual([]);
  const paths = [1, 2, 3, 4].map((day) => said('See src/depot/export.ts and 7413.', day));
  expect(proposeConcepts(paths, DEFAULT_ONTOLOGY)).toEqual([]);
});

it('names the same whatever the order of what was said', () => {
  const proposed = proposeConcepts(WAREHOUSE, DEFAULT_ONTOLOGY).map(({ name }) => name);
  expect(proposeConcepts(WAREHOUSE.toReversed(), DEFAULT_ONTOLOGY).map(({ name }) => name)).toEqual(proposed);
});
