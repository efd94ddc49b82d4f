import { uniqueTokens } from './tokenizer.ts';

/** Paths, options, identifiers of several parts, codes, and names that do not begin a sentence. */
const ENTITY =
  /(?<![\w/])--?[a-z][\w-]+|[\w.@-]*[\w@][/\\][\w./\\@-]+|\b\w+(?:[._]\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*\b|\b[A-Za-z]+\d\w*\b|(?<=[\p{Ll},] )\p{Lu}\p{Ll}+/gu;

export function entityTokens(question: string): string[] {
  return [...new Set([...question.matchAll(ENTITY)].flatMap(([name]) => uniqueTokens(name)))];
}
