import { parseJson } from '../../common/text.ts';
import { isThinking } from './message.ts';

/** Bytes `[start, end)` of the body. */
export interface Slice {
  readonly start: number;
  readonly end: number;
}

/** Positions of the parts of a Messages request, without decoding them. */
export interface BodyScan {
  /** The value of each top-level field. */
  readonly fields: ReadonlyMap<string, Slice>;
  readonly messages: readonly Slice[];
  /** Elements of `system`; null when it is not an array. */
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
/** Of numbers, `true`, `false` and `null`. */
const SCALAR_BYTES = new Set(Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz-+.E'));

/** An earlier scan, and the number of leading messages that the new body shares with it, with all bytes before them. */
export interface PreviousScan {
  readonly scan: BodyScan;
  readonly messages: number;
}

/**
 * Finds the slices of a JSON object without decoding it. Parsing and serializing would change numbers beyond 2^53 and
 * lone surrogates, and thereby the bytes that signed thinking is bound to.
 * @param previous  skips what is equal; at least one message
 * @returns null unless the body is one object with matching brackets, a `messages` array and unique fields
 */
export function scanBody(body: Buffer, previous: PreviousScan | null = null): BodyScan | null {
  const scan = previous === null ? scanWhole(body) : scanRest(body, previous);
  if (scan === null || scan.messages.length === 0) return null;
  if (skipSpace(body, scan.end) !== body.length) return null;
  const systemAt = scan.values.get('system');
  const isArray = systemAt !== undefined && body[systemAt.start] === OPEN_BRACKET;
  const system = isArray ? scanArray(body, systemAt.start) : null;
  if (isArray && system === null) return null;
  return { fields: scan.values, messages: scan.messages, system };
}

function scanWhole(body: Buffer) {
  const fields = scanObject(body, skipSpace(body, 0));
  const messagesAt = fields?.values.get('messages');
  const messages = messagesAt === undefined ? null : scanArray(body, messagesAt.start);
  return fields === null || messages === null ? null : { ...fields, messages };
}

function scanRest(body: Buffer, { scan, messages: shared }: PreviousScan) {
  const messages = scan.messages.slice(0, shared);
  const end = readElements(body, (messages.at(-1) as Slice).end, messages);
  if (end < 0) return null;
  const values = new Map<string, Slice>();
  for (const [name, at] of scan.fields) {
    values.set(name, name === 'messages' ? { start: at.start, end } : at);
    if (name === 'messages') break;
  }
  const fields = readFields(body, end, values);
  return fields === null ? null : { ...fields, messages };
}

/** The fields of the object at `start`, and the position after its closing brace; null when it is not an object, incomplete, or has a field twice. */
export function scanObject(body: Buffer, start: number) {
  if (body[start] !== OPEN_BRACE) return null;
  const values = new Map<string, Slice>();
  const first = skipSpace(body, start + 1);
  if (body[first] === CLOSE_BRACE) return { values, end: first + 1 };
  const end = scanField(body, first, values);
  return end < 0 ? null : readFields(body, end, values);
}

/** The fields after one that ends at `from`. */
function readFields(body: Buffer, from: number, values: Map<string, Slice>) {
  let at = skipSpace(body, from);
  while (body[at] === COMMA) {
    const end = scanField(body, skipSpace(body, at + 1), values);
    if (end < 0) return null;
    at = skipSpace(body, end);
  }
  return body[at] === CLOSE_BRACE ? { values, end: at + 1 } : null;
}

/** Adds the field at `at` to `values` and returns its end; -1 when it is invalid or a duplicate. */
function scanField(body: Buffer, at: number, values: Map<string, Slice>): number {
  const keyEnd = body[at] === QUOTE ? skipString(body, at) : -1;
  if (keyEnd < 0) return -1;
  const key = readKey(body, at, keyEnd);
  const colon = skipSpace(body, keyEnd);
  if (key === null || values.has(key) || body[colon] !== COLON) return -1;
  const start = skipSpace(body, colon + 1);
  const end = skipValue(body, start);
  if (end >= 0) values.set(key, { start, end });
  return end;
}

/** The elements of the array at `start`; null when it is not an array or incomplete. */
export function scanArray(body: Buffer, start: number): Slice[] | null {
  if (body[start] !== OPEN_BRACKET) return null;
  const elements: Slice[] = [];
  const first = skipSpace(body, start + 1);
  if (body[first] === CLOSE_BRACKET) return elements;
  const end = skipValue(body, first);
  if (end < 0) return null;
  elements.push({ start: first, end });
  return readElements(body, end, elements) < 0 ? null : elements;
}

/** Adds the elements after one that ends at `from` and returns the array's end; -1 when it is incomplete. */
function readElements(body: Buffer, from: number, elements: Slice[]): number {
  let at = skipSpace(body, from);
  while (body[at] === COMMA) {
    const start = skipSpace(body, at + 1);
    const end = skipValue(body, start);
    if (end < 0) return -1;
    elements.push({ start, end });
    at = skipSpace(body, end);
  }
  return body[at] === CLOSE_BRACKET ? at + 1 : -1;
}

function readKey(body: Buffer, start: number, end: number): string | null {
  const text = body.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  // Null for an invalid escape.
  return (parseJson(`"${text}"`) as string | undefined) ?? null;
}

function skipSpace(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = body[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** The end of the value at `start`, or -1. Matches brackets; does not validate scalars. */
function skipValue(body: Buffer, start: number): number {
  const first = body[start];
  if (first === QUOTE) return skipString(body, start);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipBrackets(body, start);
  let at = start;
  while (SCALAR_BYTES.has(body[at] as number)) at += 1;
  return at === start ? -1 : at;
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

export const parseSlice = (body: Buffer, at: Slice): unknown => JSON.parse(body.toString('utf8', at.start, at.end));

/** Replaces bytes `[start, end)` of the received body by `bytes`. The edits of a request never overlap. */
export interface Edit extends Slice {
  readonly bytes: Buffer;
}

/** Replaces an assistant message that held nothing but stripped thinking. */
const NO_TEXT = '{"type":"text","text":"(no text)"}';

interface MessageChange {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly stripThinking: boolean;
  /** The calls that these results answer are cut. */
  readonly dropResults: boolean;
}

/** Null when nothing changes. Blocks that stay keep their bytes. */
export function changeMessage(body: Buffer, slice: Slice, change: MessageChange) {
  if (change.before.length === 0 && change.after.length === 0 && !change.stripThinking && !change.dropResults)
    return null;
  const content = scanObject(body, slice.start)?.values.get('content');
  if (content === undefined) return null;
  const all = sliceBlocks(body, content);
  const blocks = change.dropResults ? all.filter((block) => !isToolResult(block)) : all;
  const rest = change.stripThinking
    ? blocks.filter((block) => !block.includes('thinking') || !isThinking(JSON.parse(block.toString('utf8'))))
    : blocks;
  const thinkingStripped = blocks.length - rest.length;
  if (rest.length === 0) rest.push(Buffer.from(NO_TEXT));
  rest.unshift(...change.before.map(encodeTextBlock));
  rest.push(...change.after.map(encodeTextBlock));
  const joined = prefixWithCommas(rest).subarray(1);
  const pieces = [body.subarray(slice.start, content.start), Buffer.from('['), joined, Buffer.from(']')];
  return { bytes: Buffer.concat([...pieces, body.subarray(content.end, slice.end)]), thinkingStripped };
}

function isToolResult(block: Buffer): boolean {
  return block.includes('tool_result') && Object(JSON.parse(block.toString('utf8'))).type === 'tool_result';
}

export function findResultsEnd(body: Buffer, content: Slice): number {
  const blocks = scanArray(body, content.start) ?? [];
  const results = blocks.findIndex((block) => !isToolResult(body.subarray(block.start, block.end)));
  return blocks[results - 1]?.end ?? 0;
}

function sliceBlocks(body: Buffer, content: Slice): Buffer[] {
  const blocks = scanArray(body, content.start);
  if (blocks !== null) return blocks.map((block) => body.subarray(block.start, block.end));
  const text = body.subarray(content.start, content.end);
  return [Buffer.concat([Buffer.from('{"type":"text","text":'), text, Buffer.from('}')])];
}

export function prefixWithCommas(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part) => [Buffer.from(','), part]));
}

const encodeTextBlock = (text: string): Buffer => Buffer.from(JSON.stringify({ type: 'text', text }));

/** Appends a system block. `system[0]` and all of Claude Code's blocks keep their place and their bytes. */
export function appendSystemBlock(view: { readonly body: Buffer; readonly scan: BodyScan }, added: string): Edit[] {
  const block = encodeTextBlock(added);
  const last = view.scan.system?.at(-1);
  if (last !== undefined) return [{ start: last.end, end: last.end, bytes: prefixWithCommas([block]) }];
  const value = view.scan.fields.get('system');
  const text = value === undefined ? null : parseSlice(view.body, value);
  if (value === undefined || typeof text !== 'string') return [];
  // An empty string is no block.
  const joined = prefixWithCommas(text === '' ? [block] : [...sliceBlocks(view.body, value), block]).subarray(1);
  return [{ ...value, bytes: Buffer.concat([Buffer.from('['), joined, Buffer.from(']')]) }];
}

/** Every byte outside the edits is the byte received. */
export function applyEdits(body: Buffer, edits: readonly Edit[]): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(body.subarray(from, edit.start), edit.bytes);
    from = edit.end;
  }
  pieces.push(body.subarray(from));
  return Buffer.concat(pieces);
}
