import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_ONTOLOGY } from '../../../../memory/facts/default-ontology.ts';
import type { Fact } from '../../../../memory/facts/fact.ts';
import { findScope, parseFactPage, renderFactPage, withoutFacts } from '../../../../memory/storage/fact-markdown.ts';
import { factFilesContract } from '../../../contract/fact-files.ts';
import { createMemoryFactFiles } from '../../../helpers/memory-fact-files.ts';

const NOW = '2026-11-23T10:00:00.000Z';
const words = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .map((text) => text.replace(/\s+/g, ' ').trim())
  .filter((text) => text !== '');
const spiced = fc.oneof(
  words,
  fc.constantFrom('a [by:: user]', '[x]', '\\', 'to] [id:: y', '- Project.Owner: z', '](#'),
);
const fact: fc.Arbitrary<Fact> = fc.record({
  id: fc.stringMatching(/^fact_[0-9a-f]{13}$/),
  concept: fc.constantFrom(...Object.keys(DEFAULT_ONTOLOGY.concepts)),
  value: spiced,
  evidence: spiced,
  turn_id: fc.constantFrom('t1', 't2', ''),
  session_id: fc.uuid(),
  salience: fc.integer({ min: 0, max: 10_000 }).map((value) => value / 10_000),
  origin: fc.constantFrom('user' as const, 'assistant' as const),
  asserted: fc.integer({ min: 1, max: 99 }),
  valid_from: fc.constant(NOW),
  valid_to: fc.constant(null),
});

describe('a file of facts', () => {
  it('is read as it was written', () => {
    const scopes = fc.constantFrom('', '/home/dev/shop', 'C:\\work\\shop', 'github.com/dev/till');
    fc.assert(
      fc.property(scopes, fc.array(fact, { maxLength: 5 }), fc.array(fact, { maxLength: 3 }), (scope, facts, past) => {
        const closed = past.map((each) => ({ ...each, valid_to: NOW }));
        const text = renderFactPage(scope, { facts, closed, others: ['A note.', '- Shoe: 43'] });
        expect(findScope(text)).toBe(scope);
        const page = parseFactPage(text, DEFAULT_ONTOLOGY, NOW);
        expect(page).toMatchObject({ facts, closed, others: ['A note.', '- Shoe: 43'] });
        expect(page.problems).toHaveLength(1);
        expect(renderFactPage(scope, page)).toBe(text);
      }),
    );
  });

  it('takes a bare line for the user’s own words', () => {
    const { facts } = parseFactPage('---\nscope: user\n---\n* Person.Language: Polish\n', DEFAULT_ONTOLOGY, NOW);
    expect(facts).toMatchObject([{ value: 'Polish', origin: 'user', salience: 0.9, asserted: 1, valid_from: NOW }]);
  });

  it('reads a line that a person wrote twice once', () => {
    const lines = ['- Person.Language: Polish', '- Person.Language: Polish', '* Person.Language: Czech'];
    const { facts } = parseFactPage(['---', 'scope: user', '---', ...lines].join('\n'), DEFAULT_ONTOLOGY, NOW);
    expect(facts.map(({ value }) => value)).toEqual(['Polish', 'Czech']);
  });

  it.each([
    ['- Person.Language: Polish [salience:: high]', 'salience'],
    ['- Person.Language: Polish [by:: web]', 'origin'],
    ['- Person.Language: ', 'expected'],
    ['- Project.Secret: x', 'declares no Project.Secret'],
    [`- Person.Language: ${'x'.repeat(3_000)}`, 'too long'],
  ])('keeps a line that it cannot read: %#', (line, problem) => {
    const page = parseFactPage(`---\nscope: user\n---\n${line}\n`, DEFAULT_ONTOLOGY, NOW);
    expect(page.facts).toEqual([]);
    expect(page.others).toEqual([line.trimEnd()]);
    expect(page.problems.join()).toContain(problem);
  });

  it.each(['', 'no front matter', '---\nscope: user', '---\nscope: project\n---\n', '---\n: [\n---\n'])(
    'names no scope where the front matter does not: %#',
    (text) => expect(findScope(text)).toBeNull(),
  );

  it('loses the facts of turns and ids that are gone, and nothing else', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fact, { maxLength: 6, selector: ({ id }) => id }), (facts) => {
        const text = renderFactPage('', { facts, closed: [], others: ['[turn:: t1]'] });
        const gone = { ids: new Set(facts.slice(0, 1).map(({ id }) => id)), turnIds: new Set(['t1']) };
        const left = facts.filter(({ id, turn_id }) => !(gone.ids.has(id) || turn_id === 't1'));
        expect(
          parseFactPage(
            withoutFacts(text, ({ id, turn }) => gone.ids.has(id) || gone.turnIds.has(turn)),
            DEFAULT_ONTOLOGY,
            NOW,
          ),
        ).toMatchObject({
          facts: left,
          others: ['[turn:: t1]'],
        });
      }),
    );
  });
});

describe('fact files in memory', () => factFilesContract(async () => createMemoryFactFiles()));
