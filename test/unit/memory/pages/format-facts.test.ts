import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countTokens } from '../../../../common/text.ts';
import { DEFAULT_ONTOLOGY } from '../../../../memory/facts/default-ontology.ts';
import { createFactStore } from '../../../../memory/facts/fact-store.ts';
import { changedFactLines, factLines, withFacts } from '../../../../memory/pages/format-facts.ts';
import { negated, START, said, talk } from '../../../helpers/facts.ts';

const CONCEPTS = ['Project.Decision', 'Person.Preference', 'Session.Focus', 'Project.Environment'];
const store = () => createFactStore({ ontology: DEFAULT_ONTOLOGY });
const redis = 'Redis for the cache';

describe('facts that changed since they were shown', () => {
  it('are named once: what is new, what was negated, and what holds again', () => {
    const facts = store();
    talk(facts, [said('Project.Decision', redis), said('Person.Preference', 'small commits')]);
    const block = factLines(facts, { sessionId: 's2', told: [], budgetTokens: 300 });
    const since: string[] = [];
    const next = (): readonly string[] => {
      const lines = changedFactLines(facts, { block, since, blockMs: START, sessionId: 's2', budgetTokens: 300 });
      since.push(...lines);
      return lines.slice(1);
    };
    expect(next()).toEqual([]);
    talk(facts, [said('Project.Decision', 'Kafka'), negated('Project.Decision', redis)]);
    expect(next()).toEqual(['- Project.Decision: "Kafka"', `- no longer Project.Decision: "${redis}"`]);
    expect(next()).toEqual([]);
    talk(facts, [said('Project.Decision', redis)]);
    expect(next()).toEqual([`- Project.Decision: "${redis}"`]);
    expect(next()).toEqual([]);
  });

  it('are neither those that fade, nor those that the rest of the block says', () => {
    const facts = store();
    talk(facts, [said('Session.Focus', 'the parser'), said('Project.Decision', redis)]);
    const brief = ['## Decided', `- we use ${redis}`];
    const told = { block: [...brief, '- Session.Focus: "the parser"'], since: [], blockMs: 0 };
    talk(facts, ...Array.from({ length: 20 }, () => []));
    expect(facts.facts.map(({ concept }) => concept)).toEqual(['Project.Decision']);
    expect(changedFactLines(facts, { ...told, sessionId: 's2', budgetTokens: 300 })).toEqual([]);
  });

  it('are neither what the block had no room for, unless it is about the user, nor what the session says itself', () => {
    const facts = store();
    talk(facts, [said('Project.Decision', redis), said('Person.Preference', 'small commits')]);
    const told = { block: ['## Brief'], since: [], blockMs: START + 60_000, budgetTokens: 300 };
    expect(changedFactLines(facts, { ...told, sessionId: 's1' })).toEqual([]);
    expect(changedFactLines(facts, { ...told, sessionId: 's2' }).slice(1)).toEqual([
      '- Person.Preference: "small commits"',
    ]);
    facts.applyTurn([said('Project.Decision', 'Kafka')], { turnId: 't9', sessionId: 's1', atMs: START + 120_000 });
    expect(changedFactLines(facts, { ...told, sessionId: 's2' }).slice(1)).toEqual([
      '- Person.Preference: "small commits"',
      '- Project.Decision: "Kafka"',
    ]);
  });

  it('fit the budget, and whatever happens none is named twice in one state', () => {
    const fact = fc.tuple(
      fc.constantFrom(...CONCEPTS),
      fc.constantFrom('one', 'two', 'three "3"', '- no longer x: "y"'),
    );
    const turn = fc.array(fc.tuple(fact, fc.boolean()), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 12 }), fc.integer({ min: 0, max: 120 }), (turns, budgetTokens) => {
        const facts = store();
        const since: string[] = [];
        for (const each of turns) {
          talk(
            facts,
            each.map(([[concept, value], isEnd]) => (isEnd ? negated(concept, value) : said(concept, value))),
          );
          const rules = { block: [], since, blockMs: START, sessionId: 's2', budgetTokens };
          const lines = changedFactLines(facts, rules);
          expect(lines.reduce((sum, line) => sum + countTokens(line), 0)).toBeLessThanOrEqual(budgetTokens);
          since.push(...lines);
          const again = changedFactLines(facts, rules);
          expect(again.filter((line) => line.startsWith('- ') && lines.includes(line))).toEqual([]);
        }
      }),
    );
  });
});

it('facts that are being written do not hold up the block', async () => {
  const block = {
    refresh: async () => {},
    lines: () => ['# Library'],
    text: async () => '',
    linkedText: async () => '',
  };
  const facts = { refresh: () => new Promise<void>(() => {}), current: () => null };
  const shown = withFacts(block, facts, 300);
  const waiting = new Promise((resolve) => setTimeout(resolve, 2_000, 'still waiting'));
  expect(await Promise.race([shown.refresh(), waiting])).toBe(undefined);
  expect(shown.lines({ project: '/shop', sessionId: 's1', told: [] })).toEqual(['# Library']);
});
