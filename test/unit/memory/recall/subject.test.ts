import { expect, test } from 'vitest';
import { subjectTokens } from '../../../../memory/recall/subject.ts';

test.each([
  ['What did we decide on as database for billing?', ['bill']],
  ['What is the limit of sandbox per minute?', ['sandbox']],
  ['When may the backfill run?', ['backfill']],
  ['Which command repairs satellite?', ['satellit']],
  ['What version is pinned in router, and why not the newer release?', ['router']],
  ['', []],
])('%j is about %j', (question, tokens) => {
  expect(subjectTokens(question)).toEqual(tokens);
});
