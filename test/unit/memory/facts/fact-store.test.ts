import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExtractedFact } from '../../../../memory/facts/extract-facts.ts';
import type { Fact, FactState } from '../../../../memory/facts/fact.ts';
import { createFactStore, type FactStore } from '../../../../memory/facts/fact-store.ts';
import type { Ontology } from '../../../../memory/facts/ontology.ts';
import { fuzzySimilarity } from '../../../../memory/facts/similarity.ts';
import { getOntology, negated, START, said, talk } from '../../../helpers/facts.ts';

function shown(facts: readonly Fact[]): Record<string, string> {
  return Object.fromEntries(facts.map(({ value, salience }) => [value, salience.toFixed(2)]));
}

function values(facts: readonly Fact[]): string[] {
  return facts.map(({ value }) => value);
}

describe('the worked example: an interest of weight 0.7 in five turns', () => {
  const ontology = getOntology({ 'Guest.Interest': {} });
  const turns = ['photography', 'Picasso', 'photos', 'Pablo Picasso', 'photographs'].map((value) => [
    said('Guest.Interest', value),
  ]);

  it('keeps five facts where values have to be equal', () => {
    const store = createFactStore({ ontology });
    talk(store, ...turns);
    expect(shown(store.facts.toReversed())).toEqual({
      photographs: '0.69',
      'Pablo Picasso': '0.69',
      photos: '0.68',
      Picasso: '0.67',
      photography: '0.67',
    });
  });

  it('keeps two where values of similarity 0.80 are the same', () => {
    const store = createFactStore({ ontology, similarity: fuzzySimilarity(0.8) });
    talk(store, ...turns);
    expect(shown(store.facts)).toEqual({ photography: '0.99', Picasso: '0.88' });
    expect(store.facts.map(({ evidence, asserted }) => [evidence, asserted])).toEqual([
      ['Pablo Picasso', 2],
      ['photographs', 3],
    ]);
  });
});

it('takes the most similar value where several are similar enough', () => {
  const score = (one: string, other: string) => (one.startsWith(other) ? other.length / one.length : 0);
  const store = createFactStore({ ontology: getOntology({ 'A.B': {} }), similarity: { threshold: 0.3, score } });
  talk(store, [said('A.B', 'abcdef'), said('A.B', 'abcx')], [said('A.B', 'abc')]);
  expect(store.facts.map(({ value, asserted }) => [value, asserted])).toEqual([
    ['abcdef', 1],
    ['abcx', 2],
  ]);
});

describe('a museum talk', () => {
  const ontology = getOntology({
    'Visitor.Need': { persistence_class: 'permanent', salience_weight: 1 },
    'Visitor.Interest': {},
    'Visitor.Wish': { persistence_class: 'ephemeral', salience_weight: 0.9 },
    'Visitor.Time': { persistence_class: 'session', salience_weight: 0.8, cardinality: 1, eviction: 'recency' },
  });

  it('keeps a need for ever, an interest for long, the time for the visit and a wish for four turns', () => {
    const store = createFactStore({ ontology });
    talk(
      store,
      [said('Visitor.Need', 'deaf'), said('Visitor.Interest', 'photography')],
      [said('Visitor.Time', 'an hour'), said('Visitor.Wish', 'coffee')],
      [],
      [],
    );
    expect(values(store.facts)).toContain('coffee');
    expect(values(talk(store, [])[0]?.pruned ?? [])).toEqual(['coffee']);
    talk(store, [], [], []);
    expect(values(store.facts)).toEqual(['deaf', 'photography', 'an hour']);
    expect(values(store.endSession('s1'))).toEqual(['an hour']);

    const next = createFactStore({ ontology, state: JSON.parse(JSON.stringify(store.serialize())) as FactState });
    next.applyTurn([], { turnId: 't1', sessionId: 's2', atMs: START });
    expect(values(next.facts)).toEqual(['deaf', 'photography']);
  });
});

describe('applyTurn', () => {
  it('keeps the first wording and its time, with the newest evidence', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': {} }) });
    talk(store, [said('A.B', ' Dark Mode ', { evidence: 'Dark Mode' })], [said('A.B', 'dark mode')]);
    expect(store.facts).toMatchObject([
      { value: 'Dark Mode', evidence: 'dark mode', turn_id: 't2', asserted: 2, valid_from: '2026-03-01T00:00:00.000Z' },
    ]);
  });

  it('counts what a turn says twice once, and prefers the word of the user', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': {} }) });
    talk(store, [said('A.B', 'x', { origin: 'assistant', evidence: 'X it is' }), said('A.B', 'X', { evidence: 'X' })]);
    expect(store.facts).toMatchObject([{ value: 'X', origin: 'user', evidence: 'X', asserted: 1 }]);
  });

  it('keeps the user as origin when the assistant repeats a fact', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': {} }) });
    talk(store, [said('A.B', 'x')], [said('A.B', 'x', { origin: 'assistant' })]);
    expect(store.facts).toMatchObject([{ origin: 'user', asserted: 2 }]);
  });

  it('closes what is negated, a permanent fact too, and takes it up as a new fact when it is said again', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': { persistence_class: 'permanent' } }) });
    const [, second] = talk(
      store,
      [said('A.B', 'x')],
      [negated('A.B', ' X'), negated('A.B', 'other')],
      [said('A.B', 'x')],
    );
    expect(second?.negated).toEqual(store.closed);
    expect(store.closed).toMatchObject([{ value: 'x', evidence: ' X', valid_to: '2026-03-01T00:01:00.000Z' }]);
    expect(store.facts).toMatchObject([{ value: 'x', valid_to: null, asserted: 1 }]);
    expect(store.facts[0]?.id).not.toBe(store.closed[0]?.id);
  });

  it('drops the oldest by recency, where saying it again makes a fact new', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': { cardinality: 2, eviction: 'recency' } }) });
    const changes = talk(store, [said('A.B', 'x')], [said('A.B', 'y')], [said('A.B', 'x')], [said('A.B', 'z')]);
    expect(values(store.facts)).toEqual(['x', 'z']);
    expect(values(changes[3]?.evicted ?? [])).toEqual(['y']);
    expect(values(changes[3]?.added ?? [])).toEqual(['z']);
  });

  it('drops the weakest by salience', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': { cardinality: 2 } }) });
    talk(store, [said('A.B', 'x')], [said('A.B', 'x')], [said('A.B', 'y')], [said('A.B', 'z')]);
    expect(values(store.facts)).toEqual(['x', 'z']);
  });

  it('rejects undeclared concepts and empty values', () => {
    const store = createFactStore({ ontology: getOntology({ 'A.B': {} }) });
    talk(store, [said('A.C', 'x'), said('constructor', 'x'), said('__proto__', 'x'), said('A.B', '  ')]);
    expect(store.facts).toEqual([]);
  });

  it('leaves what holds for another session alone', () => {
    const session = { persistence_class: 'session', cardinality: 1, eviction: 'recency' } as const;
    const store = createFactStore({ ontology: getOntology({ 'A.B': session }) });
    talk(store, [said('A.B', 'x')]);
    store.applyTurn([said('A.B', 'y'), negated('A.B', 'x')], { turnId: 't', sessionId: 's2', atMs: START });
    expect(shown(store.facts)).toEqual({ x: '0.59', y: '0.59' });
    expect(values(store.endSession('s2'))).toEqual(['y']);
  });
});

it('forgets a fact by id and a concept by name, closed facts too', () => {
  const store = createFactStore({ ontology: getOntology({ 'A.B': {}, 'A.C': {} }) });
  talk(store, [said('A.B', 'x'), said('A.B', 'y'), said('A.C', 'z')], [negated('A.B', 'y')]);
  expect(values(store.forget(store.facts.find(({ value }) => value === 'z')?.id ?? ''))).toEqual(['z']);
  expect(values(store.forget('A.B'))).toEqual(['x', 'y']);
  expect(store.serialize()).toEqual({ version: 1, facts: [], closed: [] });
});

it('drops restored facts whose concept is gone, and refuses what is no state', () => {
  const store = createFactStore({ ontology: getOntology({ 'A.B': {}, 'A.C': {} }) });
  talk(store, [said('A.B', 'x'), said('A.C', 'y')]);
  const state = store.serialize();
  expect(values(createFactStore({ ontology: getOntology({ 'A.B': {} }), state }).facts)).toEqual(['x']);
  const broken = { ...state, facts: [{ ...state.facts[0], salience: 7 }] } as FactState;
  expect(() => createFactStore({ ontology: store.ontology, state: broken })).toThrow('salience');
});

const ONTOLOGY = getOntology({
  'P.Free': { persistence_class: 'permanent', salience_weight: 0.05 },
  'P.Two': { persistence_class: 'permanent', cardinality: 2, eviction: 'recency' },
  'L.Free': {},
  'L.One': { cardinality: 1, eviction: 'recency', salience_weight: 1 },
  'L.Three': { cardinality: 3, salience_weight: 0.12 },
  'S.Two': { persistence_class: 'session', cardinality: 2 },
  'S.Free': { persistence_class: 'session', salience_weight: 0.4 },
  'E.Two': { persistence_class: 'ephemeral', cardinality: 2, eviction: 'recency', salience_weight: 0.9 },
});

const fact = fc.record<ExtractedFact>({
  concept: fc.constantFrom(...Object.keys(ONTOLOGY.concepts), 'Un.Known'),
  value: fc.constantFrom('a', 'A', ' b', 'b', 'c', 'd', 'e', ' '),
  polarity: fc.constantFrom('asserted', 'asserted', 'asserted', 'negated'),
  evidence: fc.constantFrom('one', 'two'),
  origin: fc.constantFrom('user', 'assistant'),
});
const turn = fc.array(fact, { maxLength: 5 });
const session = fc.constantFrom('s1', 's2');
type Operation =
  | { readonly do: 'turn'; readonly facts: ExtractedFact[]; readonly session: string }
  | { readonly do: 'end'; readonly session: string }
  | { readonly do: 'forget'; readonly concept: string }
  | { readonly do: 'restore' };
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('turn' as const), facts: turn, session }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('end' as const), session }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('forget' as const), concept: fc.constantFrom('L.Three', 'S.Free') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const) }) },
);

function run(store: FactStore, one: Operation, at: number): FactStore {
  if (one.do === 'turn') {
    store.applyTurn(one.facts, { turnId: `t${at}`, sessionId: one.session, atMs: START + at });
  } else if (one.do === 'end') store.endSession(one.session);
  else if (one.do === 'forget') store.forget(one.concept);
  else
    return createFactStore({ ontology: ONTOLOGY, state: JSON.parse(JSON.stringify(store.serialize())) as FactState });
  return store;
}

/** The rules written out one by one, with lists and loops. */
class Reference {
  open: {
    concept: string;
    value: string;
    evidence: string;
    origin: string;
    salience: number;
    in: string;
    count: number;
  }[] = [];
  gone: { concept: string; value: string }[] = [];

  #settings(concept: string) {
    return ONTOLOGY.concepts[concept] as Ontology['concepts'][string];
  }

  #applies(concept: string, of: string, here: string): boolean {
    const { persistence_class: each } = this.#settings(concept);
    return each === 'permanent' || each === 'long_term' || of === here;
  }

  #at(concept: string, value: string, here: string): number {
    return this.open.findIndex(
      (each) =>
        each.concept === concept &&
        each.value.toLowerCase() === value.trim().toLowerCase() &&
        this.#applies(concept, each.in, here),
    );
  }

  turn(facts: readonly ExtractedFact[], here: string): void {
    const valid = facts.filter(({ concept, value }) => concept !== 'Un.Known' && value.trim() !== '');
    for (const origin of ['user', 'assistant']) {
      for (const each of valid) {
        const at = this.#at(each.concept, each.value, here);
        if (each.polarity === 'asserted' || each.origin !== origin || at < 0) continue;
        this.gone.push(...this.open.splice(at, 1).map(({ concept, value }) => ({ concept, value })));
      }
    }
    const done: string[] = [];
    for (const origin of ['user', 'assistant']) {
      for (const each of valid) {
        if (each.polarity === 'negated' || each.origin !== origin) continue;
        const name = `${each.concept} ${each.value.trim().toLowerCase()}`;
        if (done.includes(name)) continue;
        done.push(name);
        this.#say(each, here);
      }
    }
    for (const concept of Object.keys(ONTOLOGY.concepts)) this.#shrink(concept, here);
    const rates = { permanent: 1, long_term: 0.99, session: 0.85, ephemeral: 0.55 };
    for (const each of this.open) {
      if (this.#applies(each.concept, each.in, here)) {
        each.salience *= rates[this.#settings(each.concept).persistence_class];
      }
    }
    this.open = this.open.filter((each) => each.salience >= 0.1 || each.concept.startsWith('P.'));
  }

  #say({ concept, value, evidence, origin }: ExtractedFact, here: string): void {
    const weight = this.#settings(concept).salience_weight;
    const at = this.#at(concept, value, here);
    if (at < 0) {
      this.open.push({ concept, value: value.trim(), evidence, origin, salience: weight, in: here, count: 1 });
      return;
    }
    for (const old of this.open.splice(at, 1)) {
      const by = old.origin === 'user' ? 'user' : origin;
      const salience = Math.min(old.salience + 0.3 * weight, 1);
      this.open.push({ ...old, evidence, origin: by, salience, in: here, count: old.count + 1 });
    }
  }

  #shrink(concept: string, here: string): void {
    const { cardinality, eviction } = this.#settings(concept);
    for (;;) {
      const all = this.open.filter((each) => each.concept === concept && this.#applies(concept, each.in, here));
      if (cardinality === 'unlimited' || all.length <= cardinality) return;
      let victim = all[0];
      if (eviction === 'salience') {
        for (const each of all) if (each.salience < (victim?.salience ?? 0)) victim = each;
      }
      this.open = this.open.filter((each) => each !== victim);
    }
  }

  run(one: Operation): void {
    if (one.do === 'turn') this.turn(one.facts, one.session);
    if (one.do === 'end') this.open = this.open.filter((each) => /^[PL]/.test(each.concept) || each.in !== one.session);
    if (one.do === 'forget') {
      this.open = this.open.filter((each) => each.concept !== one.concept);
      this.gone = this.gone.filter((each) => each.concept !== one.concept);
    }
  }
}

describe('for any conversation', () => {
  it('the store agrees with a plain model, over 10,000 operations', () => {
    fc.assert(
      fc.property(fc.array(operation, { minLength: 100, maxLength: 100 }), (operations) => {
        let store = createFactStore({ ontology: ONTOLOGY });
        const reference = new Reference();
        for (const [at, one] of operations.entries()) {
          store = run(store, one, at);
          reference.run(one);
          expect(
            store.facts.map(({ concept, value, evidence, origin, salience, session_id, asserted }) => {
              return { concept, value, evidence, origin, salience, in: session_id, count: asserted };
            }),
          ).toEqual(reference.open);
          expect(store.closed.map(({ concept, value }) => ({ concept, value }))).toEqual(reference.gone);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('salience rises by assertion only, and stays within 0 and 1', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        let store = createFactStore({ ontology: ONTOLOGY });
        for (const [at, one] of operations.entries()) {
          const before = new Map(store.facts.map((each) => [each.id, each]));
          store = run(store, one, at);
          for (const { id, salience, asserted } of store.facts) {
            const old = before.get(id);
            expect(salience).toBeLessThanOrEqual(1);
            if (old !== undefined && old.asserted === asserted) expect(salience).toBeLessThanOrEqual(old.salience);
          }
        }
      }),
    );
  });

  it('no concept holds more facts than its cardinality', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        let store = createFactStore({ ontology: ONTOLOGY });
        for (const [at, one] of operations.entries()) {
          store = run(store, one, at);
          for (const [concept, { cardinality }] of Object.entries(ONTOLOGY.concepts)) {
            const sessions = /^[PL]/.test(concept) ? [/./] : [/s1/, /s2/];
            for (const each of sessions) {
              const held = store.facts.filter((held) => held.concept === concept && each.test(held.session_id));
              if (cardinality !== 'unlimited') expect(held.length).toBeLessThanOrEqual(cardinality);
            }
          }
        }
      }),
    );
  });

  it('the order of facts in a turn matters for ties of an eviction only', () => {
    const distinct = fc.uniqueArray(fact, {
      maxLength: 6,
      selector: ({ concept, value, polarity }) => `${concept} ${value.trim().toLowerCase()} ${polarity}`,
    });
    const orders = distinct.chain((facts) =>
      fc.tuple(fc.constant(facts), fc.shuffledSubarray(facts, { minLength: facts.length })),
    );
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 8 }), orders, (before, [facts, shuffled]) => {
        const results = [facts, shuffled].map((each) => {
          const store = createFactStore({ ontology: ONTOLOGY });
          talk(store, ...before);
          const { evicted } = store.applyTurn(each, { turnId: 'last', sessionId: 's1', atMs: START });
          const byId = store.facts.toSorted((one, other) => (one.id < other.id ? -1 : 1));
          const weak = byId.filter(({ concept }) => ONTOLOGY.concepts[concept]?.eviction === 'salience');
          return {
            facts: evicted.length === 0 ? byId : byId.map(({ concept }) => concept).sort(),
            saliences: weak.map(({ concept, salience }) => `${concept} ${salience}`).sort(),
          };
        });
        expect(results[0]).toEqual(results[1]);
      }),
      { numRuns: 500 },
    );
  });

  it('serializing and restoring is the identity', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        let store = createFactStore({ ontology: ONTOLOGY });
        for (const [at, one] of operations.entries()) store = run(store, one, at);
        const state = store.serialize();
        const text = JSON.stringify(state);
        const again = createFactStore({ ontology: ONTOLOGY, state: JSON.parse(text) as FactState });
        expect(again.serialize()).toEqual(state);
        expect(JSON.stringify(again.serialize())).toBe(text);
      }),
    );
  });
});

describe('a turn of the past', () => {
  const ONTOLOGY_OF_PAST = getOntology({ 'A.Lasting': {}, 'A.Passing': { persistence_class: 'session' } });
  const at = (days: number): number => START + days * 86_400_000;
  const past = (store: FactStore, facts: Parameters<FactStore['applyTurn']>[0], days: number, turnsSince: number) =>
    store.applyTurn(facts, { turnId: `p${days}`, sessionId: 'old', atMs: at(days), turnsSince });

  it('leaves what lasts as weak as if it had been kept then, and nothing where that is too weak', () => {
    const store = createFactStore({ ontology: ONTOLOGY_OF_PAST });
    past(store, [said('A.Lasting', 'tea'), said('A.Passing', 'the parser')], -9, 100);
    expect(store.facts.map(({ value, salience }) => [value, Number(salience.toFixed(6))])).toEqual([
      ['tea', Number((0.7 * 0.99 ** 101).toFixed(6))],
    ]);
    past(store, [said('A.Lasting', 'cocoa')], -8, 200);
    expect(store.facts.map(({ value }) => value)).toEqual(['tea']);
  });

  it('changes nothing that was said or ended since', () => {
    const store = createFactStore({ ontology: ONTOLOGY_OF_PAST });
    store.applyTurn([said('A.Lasting', 'tea')], { turnId: 't1', sessionId: 's1', atMs: at(0) });
    const before = store.facts;
    past(store, [said('A.Lasting', 'tea')], -2, 1);
    past(store, [negated('A.Lasting', 'tea')], -1, 1);
    expect(store.facts).toEqual(before);
    store.applyTurn([negated('A.Lasting', 'tea')], { turnId: 't2', sessionId: 's1', atMs: at(1) });
    past(store, [said('A.Lasting', 'tea')], -3, 2);
    expect(store.facts).toEqual([]);
  });

  it('ends what was said before it', () => {
    const store = createFactStore({ ontology: ONTOLOGY_OF_PAST });
    past(store, [said('A.Lasting', 'tea')], -3, 2);
    past(store, [negated('A.Lasting', 'tea')], -2, 1);
    expect([store.facts, store.closed.map(({ valid_to }) => valid_to)]).toEqual([[], [new Date(at(-2)).toISOString()]]);
  });
});
