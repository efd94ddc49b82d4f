import { expect, test } from 'vitest';
import { asksExact, recallQuery } from '../../../../memory/recall/query.ts';
import { contentTokens } from '../../../../memory/text/keywords.ts';

test('a prompt with its own words is the query', () => {
  expect(recallQuery('which port does staging use?', ['talk about penguins'])).toBe('which port does staging use?');
});

test.each(['yes, do it', 'the other one', 'ok go ahead', 'no, again please', 'continue'])(
  '%j takes its words from the turns before, the nearest first',
  (prompt) => {
    const query = recallQuery(prompt, ['paint the shed', 'move postgres to 5433', 'shall I restart redis?']);
    expect(query).toContain('restart redis');
    expect(query.indexOf('redis')).toBeLessThan(query.indexOf('postgres'));
    expect(query).not.toContain('shed');
  },
);

test('reminders and what we injected are not asked for', () => {
  const prompt = 'rename the parser module\n<system-reminder>penguin\npenguin</system-reminder>';
  expect(contentTokens(recallQuery(prompt, []))).toEqual(contentTokens('rename the parser module'));
  const before = 'shall I deploy the shop?\n<system-reminder>penguin';
  expect(recallQuery('yes', [before])).not.toContain('penguin');
});

test('where nothing names anything the query is empty', () => {
  expect(recallQuery('yes', [])).toBe('');
  expect(recallQuery('go on', ['ok', 'sure, thanks'])).toBe('');
  expect(recallQuery('', [])).toBe('');
});

test('of a long paste beginning and end are kept', () => {
  const query = recallQuery(`why does alpha fail?\n${'x'.repeat(50_000)}\nlook at omega`, []);
  expect(query.length).toBeLessThanOrEqual(4_001);
  expect(query).toContain('alpha');
  expect(query).toContain('omega');
});

test('exact values and wordings are known by how they are asked for', () => {
  for (const query of ['Which port does billing use?', 'how many retries are there?', 'quote the error verbatim']) {
    expect(asksExact(query)).toBe(true);
  }
  for (const query of ['why did we drop redis?', 'go on with the importer']) expect(asksExact(query)).toBe(false);
});
