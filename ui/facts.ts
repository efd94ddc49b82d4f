import type { Result } from './types.ts';

/** `project`: '' for one that every project has. */
type NamedConcept = Pick<Result<'facts/concepts'>['concepts'][number], 'name' | 'project'>;
type ConceptFact = Pick<Result<'facts/list'>['facts'][number], 'id' | 'concept' | 'project'>;

type Row<C, F> =
  | { readonly kind: 'concept'; readonly key: string; readonly concept: C; readonly facts: number }
  | { readonly kind: 'fact'; readonly key: string; readonly fact: F };

/** Each concept with its facts below it; those with facts first, else in the given order. */
export function conceptRows<C extends NamedConcept, F extends ConceptFact>(
  concepts: readonly C[],
  facts: readonly F[],
): Row<C, F>[] {
  const grouped = concepts.map((concept) => {
    const own = facts.filter(
      ({ concept: name, project }) => name === concept.name && (concept.project === '' || concept.project === project),
    );
    return { concept, own };
  });
  const sorted = grouped.toSorted((one, other) => Number(other.own.length > 0) - Number(one.own.length > 0));
  return sorted.flatMap(({ concept, own }): Row<C, F>[] => [
    { kind: 'concept', key: `${concept.project} ${concept.name}`, concept, facts: own.length },
    ...own.map((fact) => ({ kind: 'fact' as const, key: fact.id, fact })),
  ]);
}
