import { findAssignments, findSettings, isSecretMember } from './assignments.ts';
import { findCommandSecrets } from './commands.ts';
import { escapedOffsets, stringLiterals } from './json.ts';
import { findJwts, findPrivate, findPrivateKeys, findUrlPasswords } from './scanners.ts';
import { containsSpan, mergeSpans, type Span } from './span.ts';
import { findTokens } from './tokens.ts';

/** Creates the replacement of a secret. */
export type Marker = (type: string, secret: string) => string;

/** One pass over a text, yielding between steps. `others` are spans found by another scanner. */
export type RedactPass = (text: string, others: readonly Span[], mark: Marker) => Generator<void, string>;

export function* redactText(text: string, others: readonly Span[], mark: Marker): Generator<void, string> {
  const { spans } = yield* findSecrets(text, 0, others);
  return replace(
    text,
    spans.map((span) => ({ ...span, by: mark(span.type, text.slice(span.start, span.end)) })),
  );
}

/** Redacts inside the string literals of JSON. `others` are spans in the values joined by one character each. */
export function* redactLiterals(json: string, others: readonly Span[], mark: Marker): Generator<void, string> {
  const replacements: Replacement[] = [];
  let depth = 0;
  let key: { readonly name: string; readonly end: number } | null = null;
  let at = 0;
  let next = 0;
  for (const { start, end, value, isKey } of stringLiterals(json)) {
    const ownOthers: Span[] = [];
    while (next < others.length && (others[next] as Span).start < at + value.length) {
      const span = others[next] as Span;
      const own = { ...span, start: Math.max(0, span.start - at), end: Math.min(value.length, span.end - at) };
      if (own.start < own.end) ownOthers.push(own);
      if (span.end > at + value.length) break;
      next += 1;
    }
    at += value.length + 1;
    const member = !isKey && key !== null && /^"\s*:\s*"$/.test(json.slice(key.end, start)) ? key.name : '';
    const opensPrivate = member === 'text' || member === 'content';
    const found = yield* findSecrets(value, opensPrivate ? depth : 0, ownOthers);
    if (opensPrivate) depth = found.depth;
    const whole = isSecretMember(member, value) ? [{ start: 0, end: value.length, type: 'secret' }] : [];
    const spans = mergeSpans([...found.spans, ...whole]);
    const offsets = escapedOffsets(
      json.slice(start, end),
      spans.flatMap((span) => [span.start, span.end]),
    );
    spans.forEach((span, i) => {
      const by = mark(span.type, value.slice(span.start, span.end));
      replacements.push({ start: start + (offsets[2 * i] ?? 0), end: start + (offsets[2 * i + 1] ?? 0), by });
    });
    if (isKey) key = { name: value, end };
  }
  return replace(json, replacements);
}

const FINDERS = [
  findPrivateKeys,
  findTokens,
  findJwts,
  findUrlPasswords,
  findAssignments,
  findCommandSecrets,
  findSettings,
] as const;

function* findSecrets(
  text: string,
  depth: number,
  others: readonly Span[],
): Generator<void, { readonly spans: Span[]; readonly depth: number }> {
  const fenced = findPrivate(text, depth);
  let own = fenced.spans;
  for (const find of FINDERS) {
    yield;
    own = own.concat(find(text));
  }
  // Other scanners mark a whole URL or line in which our rules find the secret itself.
  const merged = mergeSpans(own);
  return { spans: mergeSpans(own.concat(others.filter((other) => !containsSpan(other, merged)))), depth: fenced.depth };
}

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

function replace(text: string, replacements: readonly Replacement[]): string {
  if (replacements.length === 0) return text;
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, by } of replacements) {
    parts.push(text.slice(at, start), by);
    at = end;
  }
  parts.push(text.slice(at));
  return parts.join('');
}
