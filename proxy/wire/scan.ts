/** Bytes `[start, end)` of the body. */
export interface Slice {
  readonly start: number;
  readonly end: number;
}

/** Where things stand in a Messages request; nothing is decoded. */
export interface BodyScan {
  /** Value of each top-level field. */
  readonly fields: ReadonlyMap<string, Slice>;
  readonly messages: readonly Slice[];
  /** Elements of `system` where that is an array. */
  readonly system: readonly Slice[] | null;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * Finds the slices of a JSON object body without decoding it: parsing and writing again would change numbers
 * beyond 2^53 and lone surrogates, and with them the bytes that signed thinking is bound to.
 *
 * @returns null for anything but one well-bracketed object with a `messages` array and no field twice
 */
export function scanBody(body: Buffer): BodyScan | null {
  const start = skipSpace(body, 0);
  const fields = scanObject(body, start);
  if (fields === null) return null;
  const end = fields.end;
  if (skipSpace(body, end) !== body.length) return null;
  const messagesAt = fields.values.get('messages');
  const messages = messagesAt === undefined ? null : scanArray(body, messagesAt.start);
  if (messages === null || messages.length === 0) return null;
  const systemAt = fields.values.get('system');
  const isArray = systemAt !== undefined && body[systemAt.start] === OPEN_BRACKET;
  const system = isArray ? scanArray(body, systemAt.start) : null;
  if (isArray && system === null) return null;
  return { fields: fields.values, messages, system };
}

export interface ObjectScan {
  readonly values: ReadonlyMap<string, Slice>;
  /** Just after the closing brace. */
  readonly end: number;
}

/** Fields of the object at `start`; null when it is no object, is cut short, or names a field twice. */
export function scanObject(body: Buffer, start: number): ObjectScan | null {
  if (body[start] !== OPEN_BRACE) return null;
  const values = new Map<string, Slice>();
  let at = skipSpace(body, start + 1);
  if (body[at] === CLOSE_BRACE) return { values, end: at + 1 };
  for (;;) {
    if (body[at] !== QUOTE) return null;
    const keyEnd = skipString(body, at);
    if (keyEnd < 0) return null;
    const key = readKey(body, at, keyEnd);
    const colon = skipSpace(body, keyEnd);
    if (key === null || values.has(key) || body[colon] !== COLON) return null;
    const valueStart = skipSpace(body, colon + 1);
    const valueEnd = skipValue(body, valueStart);
    if (valueEnd < 0) return null;
    values.set(key, { start: valueStart, end: valueEnd });
    at = skipSpace(body, valueEnd);
    if (body[at] === CLOSE_BRACE) return { values, end: at + 1 };
    if (body[at] !== COMMA) return null;
    at = skipSpace(body, at + 1);
  }
}

/** Elements of the array at `start`; null when it is no array or is cut short. */
export function scanArray(body: Buffer, start: number): Slice[] | null {
  if (body[start] !== OPEN_BRACKET) return null;
  const elements: Slice[] = [];
  let at = skipSpace(body, start + 1);
  if (body[at] === CLOSE_BRACKET) return elements;
  for (;;) {
    const end = skipValue(body, at);
    if (end < 0) return null;
    elements.push({ start: at, end });
    at = skipSpace(body, end);
    if (body[at] === CLOSE_BRACKET) return elements;
    if (body[at] !== COMMA) return null;
    at = skipSpace(body, at + 1);
  }
}

function readKey(body: Buffer, start: number, end: number): string | null {
  const text = body.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return null; // an escape that JSON does not know: the caller passes the body through
  }
}

function skipSpace(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = body[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** End of the value at `start`, or -1. Brackets inside it are matched, scalars are not judged. */
function skipValue(body: Buffer, start: number): number {
  const first = body[start];
  if (first === QUOTE) return skipString(body, start);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipBrackets(body, start);
  let at = start;
  while (at < body.length && isScalarByte(body[at] as number)) at += 1;
  return at === start ? -1 : at;
}

function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e ||
    byte === 0x45
  );
}

function skipBrackets(body: Buffer, start: number): number {
  const closers: number[] = [];
  let at = start;
  while (at < body.length) {
    const byte = body[at] as number;
    if (byte === QUOTE) {
      at = skipString(body, at);
      if (at < 0) return -1;
      continue;
    }
    if (byte === OPEN_BRACE) closers.push(CLOSE_BRACE);
    else if (byte === OPEN_BRACKET) closers.push(CLOSE_BRACKET);
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (closers.pop() !== byte) return -1;
      if (closers.length === 0) return at + 1;
    }
    at += 1;
  }
  return -1;
}

function skipString(body: Buffer, start: number): number {
  let at = start + 1;
  for (;;) {
    const quote = body.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    let slashes = 0;
    while (body[quote - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}
