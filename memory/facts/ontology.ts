import { z } from 'zod';
import { compareText, isRecord } from '../../common/text.ts';

/** How long a fact holds, longest first. */
export const PERSISTENCE_CLASSES = ['permanent', 'long_term', 'session', 'ephemeral'] as const;
export type PersistenceClass = (typeof PERSISTENCE_CLASSES)[number];

const VERSION = '0.2';
const MOST = { concepts: 200, name: 80, label: 200, examples: 10, example: 200 } as const;
/** `Domain.Concept`, with further parts where a concept is divided. */
const NAME = /^[A-Z][A-Za-z0-9]*(?:\.[A-Z][A-Za-z0-9]*){1,3}$/;

const name = z.string().max(MOST.name).regex(NAME, 'name a concept as Domain.Concept, such as Person.Preference');
const conceptSchema = z.strictObject({
  label: z.string().trim().min(1).max(MOST.label).describe('What the concept means, for the model that extracts it'),
  examples: z.array(z.string().trim().min(1).max(MOST.example)).max(MOST.examples).default([]),
  persistence_class: z.enum(PERSISTENCE_CLASSES).describe('How fast a fact fades when it is not said again'),
  salience_weight: z.number().min(0).max(1).describe('Salience of a new fact'),
  cardinality: z
    .union([z.int().min(1), z.literal('unlimited')])
    .default('unlimited')
    .describe('How many facts of this concept hold at a time'),
  eviction: z
    .enum(['recency', 'salience'])
    .default('salience')
    .describe('What goes when there are more: the oldest, or the weakest'),
});
const ontologySchema = z.strictObject({
  $schema: z.string().optional(),
  version: z.literal(VERSION),
  concepts: z
    .record(name, conceptSchema)
    .refine((concepts) => Object.keys(concepts).length <= MOST.concepts, `declare at most ${MOST.concepts} concepts`),
});

export type Concept = Readonly<Omit<z.infer<typeof conceptSchema>, 'examples'>> & {
  readonly examples: readonly string[];
};
export interface Ontology {
  readonly version: typeof VERSION;
  /** By name, `Domain.Concept`. */
  readonly concepts: Readonly<Record<string, Concept>>;
}

export interface OntologyProblem {
  /** Such as `concepts.Person.Name.cardinality`; '' for the whole file. */
  readonly path: string;
  readonly message: string;
}

export type ParsedOntology =
  | { readonly ok: true; readonly ontology: Ontology; readonly warnings: readonly OntologyProblem[] }
  | { readonly ok: false; readonly problems: readonly OntologyProblem[] };

/** Reads the parsed JSON of an ontology file, version 0.2 or older. */
export function parseOntology(value: unknown): ParsedOntology {
  const warnings: OntologyProblem[] = [];
  const parsed = ontologySchema.safeParse(upgrade(value, warnings));
  if (parsed.success) {
    const { version, concepts } = parsed.data;
    return { ok: true, ontology: { version, concepts }, warnings };
  }
  const problems = parsed.error.issues.flatMap((issue) => {
    const inner = issue.code === 'invalid_key' ? issue.issues : [issue];
    return inner.map(({ message }) => ({ path: issue.path.join('.'), message }));
  });
  return { ok: false, problems };
}

/** What `update_policy` of older files means. */
const POLICIES = new Map<unknown, Pick<Concept, 'cardinality' | 'eviction'>>([
  ['superseded', { cardinality: 1, eviction: 'recency' }],
  ['mutable', { cardinality: 'unlimited', eviction: 'salience' }],
  ['monotonic', { cardinality: 'unlimited', eviction: 'salience' }],
]);

function upgrade(value: unknown, warnings: OntologyProblem[]): unknown {
  if (!isRecord(value) || !isRecord(value['concepts'])) return value;
  const entries = Object.entries(value['concepts']).map(([key, concept]) => {
    return [key, upgradeConcept(concept, `concepts.${key}.update_policy`, warnings)] as const;
  });
  if (value['version'] !== '0.1') return { ...value, concepts: Object.fromEntries(entries) };
  warnings.push({ path: 'version', message: `0.1 is read as ${VERSION}; write "${VERSION}"` });
  return { ...value, version: VERSION, concepts: Object.fromEntries(entries) };
}

function upgradeConcept(concept: unknown, path: string, warnings: OntologyProblem[]): unknown {
  const { update_policy: policy, ...rest } = isRecord(concept) ? concept : {};
  const meant = POLICIES.get(policy);
  if (meant === undefined) return concept;
  const words = `"cardinality": ${JSON.stringify(meant.cardinality)}, "eviction": "${meant.eviction}"`;
  warnings.push({ path, message: `update_policy is from an older version; replace it with ${words}` });
  return { ...meant, ...rest };
}

/**
 * The user's ontology with the concepts that a project adds. What the user's declares stays as it is, so a project can
 * neither replace a concept nor change its class; such concepts are left out and reported.
 */
export function mergeOntologies(user: Ontology, project: Ontology) {
  const names = new Set(Object.keys(user.concepts).map((each) => each.toLowerCase()));
  const [taken, added] = [[] as string[], [] as string[]];
  for (const each of Object.keys(project.concepts)) (names.has(each.toLowerCase()) ? taken : added).push(each);
  const concepts = { ...user.concepts };
  for (const each of added) concepts[each] = project.concepts[each] as Concept;
  const message = 'the user declares this concept, and a project may only add concepts; choose another name';
  const ontology: Ontology = { version: VERSION, concepts };
  return { ontology, warnings: taken.map((each) => ({ path: `concepts.${each}`, message })) };
}

export function conceptNamed(ontology: Ontology, concept: string): Concept | null {
  return Object.hasOwn(ontology.concepts, concept) ? (ontology.concepts[concept] as Concept) : null;
}

/** Whether facts of a declared concept outlive their session. */
export function isLasting(ontology: Ontology, concept: string): boolean {
  return ['permanent', 'long_term'].includes(conceptNamed(ontology, concept)?.persistence_class ?? '');
}

/** Ordered by name. */
export const conceptNames = (ontology: Ontology): string[] => Object.keys(ontology.concepts).sort(compareText);

export function ontologyJsonSchema(): Record<string, unknown> {
  return { ...z.toJSONSchema(ontologySchema, { io: 'input' }), title: 'Ontology of facts' };
}
