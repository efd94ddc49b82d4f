import { createHmac, randomBytes } from 'node:crypto';
import { readOrCreateSecret } from './files.ts';
import type { HomePaths } from './paths.ts';
import { findAssignments, isSecretMember } from './redact/assignments.ts';
import { escapedOffsets, stringLiterals } from './redact/json.ts';
import { findJwts, findPrivate, findPrivateKeys, findUrlPasswords } from './redact/scanners.ts';
import { mergeSpans, type Span } from './redact/span.ts';
import { findTokens } from './redact/tokens.ts';

/**
 * Takes secrets out of text before it is written, embedded or shown to a model. Best effort, linear time,
 * idempotent. A secret becomes `[REDACTED:type:hmac8]`, the same one always the same mark.
 */
export interface Redactor {
  /** The very same string when nothing was found. */
  text(text: string): string;
  /**
   * Redacts inside the string literals; every other character, number and escape stays as it was. A private
   * tag left open goes on through the later `text` and `content` members. What is not JSON is treated as text.
   */
  json(jsonText: string): { readonly text: string; readonly redacted: boolean };
}

export function createRedactor(options: { readonly markKey: Buffer }): Redactor {
  const mark = (type: string, secret: string): string => {
    const digest = createHmac('sha256', options.markKey).update(secret, 'utf8').digest('hex');
    return `[REDACTED:${type}:${digest.slice(0, 8)}]`;
  };
  const redactText = (input: string): string =>
    replace(
      input,
      findSecrets(input, 0).spans.map((span) => ({ ...span, by: mark(span.type, input.slice(span.start, span.end)) })),
    );
  const text = (input: string): string => untilSettled(input, redactText);
  const json = (input: string): { text: string; redacted: boolean } => {
    const output = isJson(input) ? untilSettled(input, (it) => redactLiterals(it, mark)) : text(input);
    return { text: output, redacted: output !== input };
  };
  return { text, json };
}

/**
 * The install's key for the marks; made on first use.
 *
 * @throws CometError `unsafe_file` when the file is not ours alone
 */
export async function markKey(paths: HomePaths): Promise<Buffer> {
  return Buffer.from(await readOrCreateSecret(paths.markKeyFile, () => randomBytes(32).toString('hex')), 'hex');
}

// A mark is an edge of its own: it can set free what was glued to the secret before it.
const MOST_PASSES = 8;

function untilSettled(input: string, pass: (text: string) => string): string {
  let output = input;
  for (let i = 0; i < MOST_PASSES; i += 1) {
    const next = pass(output);
    if (next === output) break;
    output = next;
  }
  return output;
}

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

function findSecrets(text: string, depth: number): { readonly spans: Span[]; readonly depth: number } {
  const fenced = findPrivate(text, depth);
  const spans = mergeSpans([
    ...fenced.spans,
    ...findPrivateKeys(text),
    ...findTokens(text),
    ...findJwts(text),
    ...findUrlPasswords(text),
    ...findAssignments(text),
  ]);
  return { spans, depth: fenced.depth };
}

function redactLiterals(json: string, mark: (type: string, secret: string) => string): string {
  const replacements: Replacement[] = [];
  let depth = 0;
  let key: { readonly name: string; readonly end: number } | null = null;
  for (const literal of stringLiterals(json)) {
    const { start, end, value, isKey } = literal;
    const member = !isKey && key !== null && /^"\s*:\s*"$/.test(json.slice(key.end, start)) ? key.name : '';
    const carries = member === 'text' || member === 'content';
    const found = findSecrets(value, carries ? depth : 0);
    if (carries) depth = found.depth;
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

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
