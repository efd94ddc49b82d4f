import { describe, expect, test } from 'vitest';
import { candidatesOf } from '../../../../memory/pages/statement.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const item = (text: string, origin: 'user' | 'assistant' = 'assistant') => ({ text, origin, turn: 'end-1' });
const taken = (node: Parameters<typeof makeNode>[0]) =>
  candidatesOf(makeNode({ summary: 'x', ...node })).map(({ section, topic, text }) => [section, topic, text]);

describe('how things work', () => {
  test('stands under a heading of its own, on the page of its subject or of the project', () => {
    const behavior = [
      item('The invoice worker reads `config.toml` once'),
      item('`retry_count` - How often a webhook is sent again'),
      item('The manual strategy stores `<hash>` in `entries`'),
    ];
    expect(taken({ behavior, topic_tags: ['keep'] })).toEqual([
      ['How it works', 'configuration', behavior[0]?.text],
      ['How it works', 'api', behavior[1]?.text],
      ['How it works', 'overview', 'The manual strategy stores `‹hash>` in `entries`'],
    ]);
  });

  test('what the user settles by name is a decision', () => {
    expect(taken({ behavior: [item('we only use gitCli where there is no worktree', 'user')] })).toEqual([
      ['Decisions', 'conventions', 'we only use gitCli where there is no worktree'],
    ]);
  });

  test('what came from outside is left out', () => {
    const outside = { ...item('The invoice worker reads `config.toml` once'), origin: 'external' as const };
    expect(taken({ behavior: [outside] })).toEqual([]);
  });

  test('an account of tests is no value', () => {
    const fact = { concept: 'trimLine', polarity: 'positive' as const, evidence: ['end-1'] };
    expect(
      taken({ facts: [{ ...fact, value: '`trimLine`: 12 test cases cover its edges', origin: 'assistant' }] }),
    ).toEqual([]);
  });
});

test('what the assistant says again of the figures that the user gave is no second line', () => {
  const said = (value: string, origin: 'user' | 'assistant') => {
    return { concept: 'ledger', value, polarity: 'positive' as const, evidence: ['end-1'], origin };
  };
  const user = said('The ledger listens on port 5711', 'user');
  const echo = said('The ledger service now listens on port 5711', 'assistant');
  const more = said('The ledger listens on port 5712 in staging', 'assistant');
  expect(taken({ facts: [user, echo, more] }).map(([, , text]) => text)).toEqual([user.value, more.value]);
});
