import { compareText, sha256 } from '../../common/text.ts';
import type { ExtractedFact } from './extract-facts.ts';
import { type Fact, type FactState, factStateSchema } from './fact.ts';
import {
  type Concept,
  conceptNamed,
  conceptNames,
  isLasting,
  type Ontology,
  type PersistenceClass,
} from './ontology.ts';

/** What salience is multiplied with at each user turn. */
export const DECAY: Readonly<Record<PersistenceClass, number>> = {
  permanent: 1,
  long_term: 0.99,
  session: 0.85,
  ephemeral: 0.55,
};
/** A fact below it is dropped, unless it is permanent. */
export const PRUNE_THRESHOLD = 0.1;
/** Share of the concept's weight that a fact gains when it is said again. */
const REASSERTION = 0.3;
/** Closed facts that are kept, the newest. */
const MOST_CLOSED = 1_000;

/** When two values mean the same: `score` (0 to 1) reaches `threshold`. */
export interface Similarity {
  readonly threshold: number;
  score(one: string, other: string): number;
}

export interface FactStoreOptions {
  readonly ontology: Ontology;
  /** Without it, values are the same when they are equal after trimming and in lower case. */
  readonly similarity?: Similarity;
  /** What `serialize` returned; facts of concepts that the ontology does not declare are dropped. */
  readonly state?: FactState;
}

export interface TurnSource {
  readonly turnId: string;
  readonly sessionId: string;
  readonly atMs: number;
  /** The turn was applied before: nothing fades. */
  readonly isLate?: boolean;
  /**
   * Of a turn of the past: how many turns of the user followed it in other sessions. What it says has faded by as many,
   * lasts or is left out, and changes nothing that was said since.
   */
  readonly turnsSince?: number;
}

/** What a turn did; facts as they were afterwards, or when they were removed. */
export type TurnChanges = Readonly<Record<'added' | 'reasserted' | 'negated' | 'evicted' | 'pruned', readonly Fact[]>>;

export type FactStore = Readonly<ReturnType<typeof createFactStore>>;

/** @throws ZodError if `state` is no state */
export function createFactStore({ state, ...rules }: FactStoreOptions) {
  const { ontology } = rules;
  const isKnown = ({ concept }: Fact): boolean => conceptNamed(ontology, concept) !== null;
  const restored = state === undefined ? { facts: [], closed: [] } : factStateSchema.parse(state);
  let facts: readonly Fact[] = restored.facts.filter(isKnown);
  let closed: readonly Fact[] = restored.closed.filter(isKnown);

  const remove = (isGone: (fact: Fact) => boolean): Fact[] => {
    const removals = facts.filter(isGone);
    facts = facts.filter((fact) => !removals.includes(fact));
    return removals;
  };

  /** Of the past, only what lasts and was neither said nor ended since. */
  function isStillTold(extracted: ExtractedFact, source: TurnSource): boolean {
    if (!isLasting(ontology, extracted.concept)) return false;
    if (extracted.polarity === 'negated') return true;
    const matches = [facts, closed].map((each) => findFact(rules, each, extracted, source.sessionId));
    return !matches.some((fact) => fact !== undefined && isNewer(fact, source));
  }

  function negate(extracted: ExtractedFact, source: TurnSource): Fact[] {
    const match = findFact(rules, facts, extracted, source.sessionId);
    if (match === undefined || isNewer(match, source)) return [];
    remove((fact) => fact === match);
    const end = { ...match, ...getSource(extracted, source), valid_to: new Date(source.atMs).toISOString() };
    closed = [...closed, end].slice(-MOST_CLOSED);
    return [end];
  }

  /** Whether it was said, or ended, after this turn of the past. */
  const isNewer = (fact: Fact, { turnsSince, atMs }: TurnSource): boolean =>
    turnsSince !== undefined && Date.parse(fact.valid_to ?? fact.valid_from) > atMs;

  return {
    ontology,
    /** What holds, by the time of the last assertion. */
    get facts() {
      return facts;
    },
    /** What was negated, by the time of the negation. */
    get closed() {
      return closed;
    },
    /**
     * Once for each user turn, with or without facts: applies negations, then assertions, evicts, and lets salience
     * decay. A fact of class `session` or `ephemeral` belongs to its session: turns of other sessions leave it alone.
     */
    applyTurn(all: readonly ExtractedFact[], source: TurnSource): TurnChanges {
      const valid = (source.turnsSince === undefined ? all : all.filter((each) => isStillTold(each, source)))
        .filter(({ concept, value }) => conceptNamed(ontology, concept) !== null && value.trim() !== '')
        .toSorted((one, other) => compareText(other.origin, one.origin));
      const negated = valid.filter(({ polarity }) => polarity === 'negated').flatMap((each) => negate(each, source));
      const before = new Set(facts.map(({ id }) => id));
      const changed = new Set<string>();
      for (const each of valid.filter(({ polarity }) => polarity === 'asserted')) {
        const match = findFact(rules, facts, each, source.sessionId);
        if (match !== undefined && changed.has(match.id)) continue;
        const fact = assertFact(rules, match, each, source);
        remove((old) => old === match);
        facts = placed(facts, fact, source);
        changed.add(fact.id);
      }
      const surplus = conceptNames(ontology).flatMap((name) => findSurplus(rules, facts, name, source.sessionId));
      const evicted = remove((fact) => surplus.includes(fact));
      facts = facts.map((fact) => {
        const stays = source.isLate || isNewer(fact, source) || !isWithin(rules, fact, source.sessionId);
        return stays ? fact : { ...fact, salience: fact.salience * DECAY[getClass(rules, fact)] };
      });
      const pruned = remove((fact) => fact.salience < PRUNE_THRESHOLD && getClass(rules, fact) !== 'permanent');
      const rest = facts.filter(({ id }) => changed.has(id));
      const added = rest.filter(({ id }) => !before.has(id));
      return { added, reasserted: rest.filter(({ id }) => before.has(id)), negated, evicted, pruned };
    },
    /** Removes and returns what holds for that session only. */
    endSession: (sessionId: string): readonly Fact[] =>
      remove((fact) => !isLasting(ontology, fact.concept) && fact.session_id === sessionId),
    /** Erases and returns a fact by id, or all facts of a concept, closed ones too. */
    forget(idOrConcept: string): readonly Fact[] {
      const isNamed = ({ id, concept }: Fact): boolean => id === idOrConcept || concept === idOrConcept;
      const removals = [...remove(isNamed), ...closed.filter(isNamed)];
      closed = closed.filter((fact) => !isNamed(fact));
      return removals;
    },
    serialize: (): FactState => ({ version: 1, facts, closed }),
  };
}

type Rules = Pick<FactStoreOptions, 'ontology' | 'similarity'>;

const declared = ({ ontology }: Rules, concept: string): Concept => conceptNamed(ontology, concept) as Concept;

const getClass = (rules: Rules, { concept }: Fact): PersistenceClass => declared(rules, concept).persistence_class;

/** Whether a turn of this session concerns the fact. */
function isWithin(rules: Rules, fact: Fact, sessionId: string): boolean {
  return isLasting(rules.ontology, fact.concept) || fact.session_id === sessionId;
}

/** The fact with the same value: an equal one, else the most similar. */
function findFact(rules: Rules, facts: readonly Fact[], extracted: ExtractedFact, sessionId: string): Fact | undefined {
  const near = facts.filter((fact) => fact.concept === extracted.concept && isWithin(rules, fact, sessionId));
  const key = getKey(extracted.value);
  const equal = near.find(({ value }) => getKey(value) === key);
  const { similarity } = rules;
  if (equal !== undefined || similarity === undefined) return equal;
  const scored = near.map((fact) => ({ fact, score: similarity.score(getKey(fact.value), key) }));
  const similar = scored.filter(({ score }) => score >= similarity.threshold);
  return similar.toSorted((one, other) => other.score - one.score)[0]?.fact;
}

export const getKey = (value: string): string => value.trim().toLowerCase();

function getSource({ evidence }: ExtractedFact, { turnId, sessionId }: TurnSource) {
  return { evidence, turn_id: turnId, session_id: sessionId };
}

function assertFact(rules: Rules, fact: Fact | undefined, extracted: ExtractedFact, source: TurnSource): Fact {
  const { salience_weight: weight, persistence_class } = declared(rules, extracted.concept);
  const faded = (salience: number): number => salience * DECAY[persistence_class] ** (source.turnsSince ?? 0);
  if (fact !== undefined) {
    const salience = Math.min(1, fact.salience + faded(REASSERTION * weight));
    const origin = fact.origin === 'user' ? 'user' : extracted.origin;
    return { ...fact, ...getSource(extracted, source), salience, origin, asserted: fact.asserted + 1 };
  }
  const { concept, value } = extracted;
  return {
    id: `fact_${sha256([concept, getKey(value), source.sessionId, source.turnId].join('\n'), 13)}`,
    ...{ concept, value: value.trim() },
    ...getSource(extracted, source),
    salience: faded(weight),
    origin: extracted.origin,
    asserted: 1,
    valid_from: new Date(source.atMs).toISOString(),
    valid_to: null,
  };
}

/** The oldest or the weakest facts of a concept beyond its cardinality; on a tie, those asserted first. */
function findSurplus(rules: Rules, facts: readonly Fact[], concept: string, sessionId: string): readonly Fact[] {
  const { cardinality, eviction } = declared(rules, concept);
  const all = facts.filter((fact) => fact.concept === concept && isWithin(rules, fact, sessionId));
  if (cardinality === 'unlimited' || all.length <= cardinality) return [];
  const order = eviction === 'recency' ? all : all.toSorted((one, other) => one.salience - other.salience);
  return order.slice(0, all.length - cardinality);
}

/** By the time of the last assertion. */
function placed(facts: readonly Fact[], fact: Fact, { turnsSince, atMs }: TurnSource): Fact[] {
  const later = facts.findIndex(({ valid_from }) => turnsSince !== undefined && Date.parse(valid_from) > atMs);
  return later < 0 ? [...facts, fact] : facts.toSpliced(later, 0, fact);
}
