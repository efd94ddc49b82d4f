import { createHmac } from 'node:crypto';
import { runAtOnce, runInSlices, type Steps } from '../common/async.ts';
import { parseJson } from '../common/text.ts';
import { findAssignments, isSecretMember } from './assignments.ts';
import { findBlocks, findEncoded, findEscaped, findKeys } from './encoded.ts';
import {
  findPrivate,
  findPrivateKeys,
  findRandomTokens,
  findSettings,
  findTokens,
  findUrlPasswords,
  mergeSpans,
  type Span,
} from './patterns.ts';
import { PLACED } from './places.ts';

export { findPrivateTexts } from './patterns.ts';

/**
 * Removes secrets from text before it is written, embedded or shown to a model. Best effort, linear time, idempotent.
 * A secret becomes `[REDACTED:type:hmac8]`; equal secrets get equal marks.
 */
export interface Redactor {
  /** Synchronous, for short texts. Returns the same string when nothing is found. */
  text(text: string): string;
  /**
   * Redacts inside string literals; all other characters stay. An open private tag continues through later `text` and
   * `content` members. Input that is not JSON is treated as text.
   */
  json(jsonText: string): string;
  /** What the mark of a secret ends with. */
  digest(secret: string): string;
  /**
   * The same for texts of any length: the event loop runs in between. What is `known`, by its text and type, is
   * redacted wherever it stands; secrets that are found become known.
   */
  readonly inSlices: {
    text(text: string): Promise<string>;
    json(jsonText: string, known?: Map<string, string>): Promise<string>;
  };
}

// A mark is a word boundary, so a pass can expose a secret that was joined to the one before.
const MAX_PASSES = 8;

export function createRedactor({ markKey }: { readonly markKey: Buffer }): Redactor {
  const digest = (secret: string): string =>
    createHmac('sha256', markKey).update(secret, 'utf8').digest('hex').slice(0, 8);
  const mark: Marker = (type, secret) => `[REDACTED:${type}:${digest(secret)}]`;

  function* redact(input: string, pass: RedactPass): Steps<string> {
    let output = input;
    for (let i = 0; i < MAX_PASSES; i += 1) {
      const next = yield* pass(output, mark);
      if (next === output) break;
      output = next;
    }
    return output;
  }

  const passOf = (input: string, known?: Map<string, string>): RedactPass =>
    isJson(input) ? (text) => redactLiterals(text, mark, known) : redactText;
  return {
    text: (input) => runAtOnce(redact(input, redactText)),
    json: (input) => runAtOnce(redact(input, passOf(input))),
    digest,
    inSlices: {
      text: (input) => runInSlices(redact(input, redactText)),
      json: (input, known) => runInSlices(redact(input, passOf(input, known))),
    },
  };
}

export type Marker = (type: string, secret: string) => string;

/** One pass over a text, yielding between steps. */
export type RedactPass = (text: string, mark: Marker) => Steps<string>;

export function* redactText(text: string, mark: Marker): Steps<string> {
  const { spans } = yield* findSecrets(text, 0);
  const replacements: Replacement[] = [];
  for (const span of spans) {
    yield;
    replacements.push({ ...span, by: getMark(text, span, mark, '\n') });
  }
  return replace(text, replacements);
}

/** No word with a number: elsewhere the same text is the same secret. */
export const DISTINCT = /^(?=\S*\d)(?=\S*[A-Za-z])(?![A-Za-z]+[-_.]?\d{1,4}$)\S{8,300}$/;

/** A log may hold thousands, and each is looked for in all of the text. */
const MAX_KNOWN = 800;

export function* redactLiterals(json: string, mark: Marker, known = new Map<string, string>()): Steps<string> {
  const replacements: Replacement[] = [];
  let depth = 0;
  let before = { member: '', value: '' };
  for (const { start, end, value, member, isKey } of readableLiterals(json)) {
    const opensPrivate = member === 'text' || member === 'content';
    const secrets = yield* findSecrets(value, opensPrivate ? depth : 0);
    if (opensPrivate) depth = secrets.depth;
    // {"name": "DB_PASSWORD", "value": "…"}, ["--token", "…"]
    const isNamed = /^(?:name|key) value$|^--/i.test(member === '' ? before.value : `${before.member} ${member}`);
    const name = isNamed && !isKey ? before.value : member;
    if (!isKey) before = { member, value };
    const whole = isSecretMember(name, value) ? [{ start: 0, end: value.length, type: 'secret' }] : [];
    const spans = mergeSpans([...secrets.spans, ...whole, ...(yield* findRepeated(value, known))]);
    const offsets = escapedOffsets(
      json.slice(start, end),
      spans.flatMap((span) => [span.start, span.end]),
    );
    for (const [i, span] of spans.entries()) {
      yield;
      const secret = value.slice(span.start, span.end);
      if (known.size < MAX_KNOWN && DISTINCT.test(secret) && !known.has(secret)) known.set(secret, span.type);
      const by = getMark(value, span, mark, '\\n');
      replacements.push({ start: start + (offsets[2 * i] ?? 0), end: start + (offsets[2 * i + 1] ?? 0), by });
    }
  }
  return replace(json, replacements);
}

function* findRepeated(text: string, known: ReadonlyMap<string, string>): Steps<Span[]> {
  const spans: Span[] = [];
  for (const [secret, type] of known) {
    yield;
    for (let start = text.indexOf(secret); start >= 0; start = text.indexOf(secret, start + secret.length))
      spans.push({ start, end: start + secret.length, type });
  }
  return spans;
}

/** The mark of a secret; the lines after a key keep their numbers. */
function getMark(text: string, { start, end, type }: Span, mark: Marker, lineBreak: string): string {
  const secret = text.slice(start, end);
  return mark(type, secret) + lineBreak.repeat(type === 'private' ? 0 : secret.split('\n').length - 1);
}

const FINDERS = [
  findPrivateKeys,
  findTokens,
  findUrlPasswords,
  findAssignments,
  ...PLACED,
  findSettings,
  findRandomTokens,
] as const;

function* findSecrets(text: string, depth: number): Steps<{ readonly spans: Span[]; readonly depth: number }> {
  const fenced = yield* findPrivate(text, depth);
  const own = fenced.spans.concat(yield* findOwn(text, 0), yield* findEscaped(text, (plain) => findOwn(plain, 0)));
  yield;
  return { spans: mergeSpans(own), depth: fenced.depth };
}

/** Base64 in base64, as of a Docker configuration in a Kubernetes secret. */
const MAX_LEVEL = 2;

function* findOwn(text: string, level: number): Steps<Span[]> {
  const blocks = yield* findBlocks(text);
  const { keys, open } = yield* findKeys(text, blocks);
  const secret = replace(
    text,
    open.map(({ start, end }) => ({ start, end, by: text.slice(start, end).replace(/[^\n]/g, ' ') })),
  );
  let spans = keys;
  for (const find of FINDERS) {
    yield;
    // A known form is a secret also next to a certificate.
    spans = spans.concat(yield* find(find === findTokens ? text : secret));
  }
  return level === MAX_LEVEL
    ? spans
    : spans.concat(yield* findEncoded(blocks, (decoded) => findOwn(decoded, level + 1)));
}

type Replacement = Pick<Span, 'start' | 'end'> & { readonly by: string };

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

export interface Literal {
  /** Offsets of the characters between the quotes. */
  readonly start: number;
  readonly end: number;
  readonly value: string;
  /** The literal is the name of a member. */
  readonly isKey: boolean;
}

/** The string literals of valid JSON text, in order. */
export function* stringLiterals(json: string): Generator<Literal> {
  let open = json.indexOf('"');
  while (open !== -1) {
    const close = closingQuote(json, open + 1);
    const raw = json.slice(open + 1, close);
    const value = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
    yield { start: open + 1, end: close, value, isKey: /^\s*:/.test(json.slice(close + 1, close + 65)) };
    open = json.indexOf('"', close + 1);
  }
}

/** Images and documents in base64 by their first bytes: PNG, JPEG, GIF, WebP, PDF. */
const BINARY = /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|JVBERi0)/;
const BASE64 = /^[A-Za-z0-9+/]{100,}={0,2}$/;

/** The literals with the member that each is the value of; '' for one whose base64 would hold keys by chance alone. */
function* readableLiterals(json: string): Generator<Literal & { readonly member: string }> {
  let key: Literal | null = null;
  let type = '';
  for (const literal of stringLiterals(json)) {
    const { start, value, isKey } = literal;
    const member = !isKey && key !== null && /^"\s*:\s*"$/.test(json.slice(key.end, start)) ? key.value : '';
    if (isKey) key = literal;
    if (member === 'type') type = value;
    const isBinary = /^(?:data|signature)$/.test(member) && (type.endsWith('thinking') || BINARY.test(value));
    yield { ...literal, member, value: isBinary && BASE64.test(value) ? '' : value };
  }
}

export const isJson = (text: string): boolean => parseJson(text) !== undefined;

/** Maps ascending indices in a literal's value to offsets in its escaped form. */
export function escapedOffsets(raw: string, indices: readonly number[]): number[] {
  const depths: number[] = [];
  let at = 0;
  let index = 0;
  for (const wanted of indices) {
    for (; index < wanted; index += 1) at += raw[at] !== '\\' ? 1 : raw[at + 1] === 'u' ? 6 : 2;
    depths.push(at);
  }
  return depths;
}

function closingQuote(json: string, from: number): number {
  for (let quote = json.indexOf('"', from); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (json[quote - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return quote;
  }
}
