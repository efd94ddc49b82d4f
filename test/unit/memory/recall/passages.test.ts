import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SpokenPart } from '../../../../memory/model/turn.ts';
import { bestPassage, type PassageRules } from '../../../../memory/recall/passages.ts';
import { UNSEEN, weighTerms } from '../../../../memory/recall/relevance-filter.ts';
import { contentTokens } from '../../../../memory/text/keywords.ts';
import { hostileText } from '../../../helpers/random-nodes.ts';

const RULES: PassageRules = { maxChars: 120, callsAnswer: false, isPast: () => false };
const user = (text: string): SpokenPart => ({ by: 'user', origin: 'user', text });
const answer = (text: string, origin: SpokenPart['origin'] = 'assistant'): SpokenPart => ({
  by: 'assistant',
  origin,
  text,
});

function getPassage(question: string, parts: readonly SpokenPart[], over: Partial<PassageRules> = {}) {
  const idfs = new Map([...contentTokens(question), UNSEEN].map((token) => [token, 3]));
  const terms = weighTerms(question, idfs);
  return bestPassage(parts, terms, { ...RULES, ...over });
}

describe('the passage of a turn', () => {
  const filler = 'The weather of the day is fine and so is the mood of everybody who works here. ';

  test('is the place with most of the terms, whole sentences, and what follows it', () => {
    const text = `${filler}${filler}The staging port is 5433. It was taken before. ${filler}`;
    expect(getPassage('staging port', [answer(text)])?.text).toMatch(
      /^The staging port is 5433\. It was taken before\./,
    );
  });

  test('of a short prompt is its answer, with the prompt in front', () => {
    const parts = [user('which port does staging use?'), answer(`${filler}It listens on port 5433.`)];
    const found = getPassage('port of staging', parts);
    expect(found).toMatchObject({ by: 'assistant', asked: 'which port does staging use?' });
    expect(found?.text).toContain('5433');
  });

  test('of a prompt that alone matches is the end of the answer', () => {
    const found = getPassage('port of staging', [
      user('which port does staging use?'),
      answer(`${filler}${filler}5433.`),
    ]);
    expect(found).toMatchObject({ by: 'assistant', asked: 'which port does staging use?' });
    expect(found?.text).toMatch(/5433\.$/);
  });

  test('of several as good is the last: an answer ends with what it comes to', () => {
    const text = `The staging port was 1234. ${filler}${filler}The staging port is 5433.`;
    expect(getPassage('staging port', [answer(text)])?.text).toMatch(/staging port is 5433\.$/);
  });

  test('of a long prompt has what the turn says to it', () => {
    const prompt = user(`${filler}The fetch of the branch has no limit and may hang. ${filler}`);
    const said = answer(`${filler}${filler}Done: the fetch of the branch ends after 2 minutes. ${filler}`);
    const long = { maxChars: 420 };
    const found = getPassage('why may the fetch of the branch hang without limit', [prompt, said], long);
    expect(found).toMatchObject({ by: 'assistant', asked: expect.stringContaining('has no limit and may hang') });
    expect(found?.text).toContain('ends after 2 minutes');
    const quoted = answer('The fetch of the branch ends after 9 minutes.', 'external');
    expect(getPassage('why may the fetch of the branch hang without limit', [prompt, quoted], long)).toMatchObject({
      by: 'user',
      asked: '',
    });
  });

  test('has the origin of the part it stands in', () => {
    const parts = [user(`${filler}${filler}staging has port 5433`), answer('the wiki names port 1', 'external')];
    expect(getPassage('staging port', parts)).toMatchObject({ by: 'user', origin: 'user' });
    expect(getPassage('wiki port', parts)).toMatchObject({ by: 'assistant', origin: 'external' });
  });

  test('is a tool call only where nothing else says it, or a call is asked for', () => {
    const parts = [
      answer('I ran the port check.'),
      { by: 'call', origin: 'tool', text: 'Bash port check --staging' } as const,
    ];
    expect(getPassage('port check', parts)?.by).toBe('assistant');
    expect(getPassage('port check staging', parts, { callsAnswer: true })?.by).toBe('call');
  });

  test('passes over what is no longer so', () => {
    const text = 'The staging port is 5432. Then nothing happened for long. The staging port is 5433.';
    const isPast = (said: string): boolean => said.includes('5432');
    expect(getPassage('staging port', [answer(text)], { isPast, maxChars: 40 })?.text).toContain('5433');
  });

  test('is null where no part has a term', () => {
    expect(getPassage('billing', [user('hello there'), answer('hi')])).toBeNull();
    expect(getPassage('billing', [])).toBeNull();
  });

  test('is verbatim and never longer than allowed, in linear time', () => {
    fc.assert(
      fc.property(hostileText, hostileText, (said, asked) => {
        const found = getPassage('port', [user(asked), answer(`${said} port ${said}`)]);
        expect(found?.text.length ?? 0).toBeLessThanOrEqual(RULES.maxChars);
        expect(`${asked}\n${said} port ${said}`).toContain(found?.text ?? '');
      }),
      { numRuns: 200 },
    );
    const long = getPassage('port', [answer(`${'port '.repeat(20_000)}end`)]);
    expect(long?.text).toContain('port');
  });
});
