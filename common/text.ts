// C0 and C1 controls except tab and newline, zero-width, bidi and tag characters: remembered text comes from anywhere and
// must neither control the terminal nor contain text that a reader cannot see.
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const toRecord = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});

export const toText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Content blocks of a message; a string is one text. */
export function findBlocks(content: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

/** The first hex digits of a SHA-256. Crypto is loaded on use: elsewhere it would take a sixth of the time of a hook. */
export function sha256(text: string | Uint8Array, digits = 64): string {
  return process.getBuiltinModule('node:crypto').hash('sha256', text).slice(0, digits);
}

/** Also with the mark at the beginning that some editors write. @throws SyntaxError */
export const jsonOf = (text: string): unknown => JSON.parse(text.replace(/^\uFEFF/, '')) as unknown;

/** Undefined where the text is not percent-encoded, as with a stray `%`. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Undefined where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return jsonOf(text);
  } catch {
    return undefined;
  }
}

/** The message of an error without the text that JSON.parse quotes in it: that text may be anything. */
export function unquoted({ name, message }: Error): string {
  if (name !== 'SyntaxError') return message;
  return message.replace(/(?:^|,? )(?:\.\.\.)?".*/s, '') || 'not valid JSON';
}

/** `text` without characters that a terminal would obey. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, '');

/** `json` with those characters escaped. */
export function escaped(json: string): string {
  return json.replace(UNPRINTABLE, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

export const oneLine = (text: string): string => printable(text).replace(/\s+/g, ' ').trim();

/** Zero-width, bidi controls, soft hyphens, tag characters: they hide or reorder text. */
const INVISIBLE = /\p{Cf}/gu;
const BREAKS = /[\s\p{Cc}]+/gu;
const LOOKS_LIKE_TAG = /<(?=[/!?]?[\p{L}_])/gu;
const ROLE_MARK = /^(?:\s*(?:human|user|assistant|system)\s*:\s*)+/i;

/** Marks all injected text, so that it is never mistaken for the conversation's own. */
export const FENCE = 'comet-cc-memory';

/** Marks lines as data. `fence` must be unpredictable, so that no line can close it. */
export function fenceLines(lines: readonly string[], fence: string): string {
  return [`<${FENCE} fence="${fence}">`, ...lines, `</${FENCE} fence="${fence}">`].join('\n');
}

/** One line that cannot be taken for markup, a role or a fence. Longer than `maxChars`: cut at the end of a word. */
export function neutralLine(text: string, maxChars: number): string {
  const flat = text.replace(INVISIBLE, '').replace(BREAKS, ' ').trim();
  const plain = flat
    .replace(ROLE_MARK, '')
    .replace(LOOKS_LIKE_TAG, '‹')
    .replaceAll('comet-cc-memory', 'comet-cc memory');
  return clip(plain, maxChars);
}

/** At most `maxChars`, cut at the end of a word and marked with `…`. */
export function clip(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = text.slice(0, Math.max(0, maxChars - 1));
  const space = head.lastIndexOf(' ');
  const whole = space > maxChars / 2 ? head.slice(0, space) : head.replace(/[\ud800-\udbff]$/, '');
  return `${whole}…`;
}

/** Without the `characters` at its end. A regular expression would start at each of a long run of them. */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** Orders by code unit; `localeCompare` depends on the locale. */
export const compareText = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1);

/** "$1.23", "-$0.01". */
export function dollars(usd: number): string {
  return usd.toLocaleString('en-US', { style: 'currency', currency: 'USD', signDisplay: 'negative' });
}

/** "940", "17.5k", "312k", "1.2M". */
export function amount(value: number): string {
  if (value < 1_000) return String(Math.round(value));
  const thousands = value / 1_000;
  if (thousands < 99.95) return `${Number(thousands.toFixed(1))}k`;
  return thousands < 999.5 ? `${Math.round(thousands)}k` : `${(thousands / 1_000).toFixed(1)}M`;
}

/** "1 memory", "1,200 memories". */
export function formatCount(value: number, one: string, several = `${one}s`): string {
  return `${Math.round(value).toLocaleString('en-US')} ${value === 1 ? one : several}`;
}

/** How much smaller `sent` is than `original`, in percent; negative where it is larger. */
export function percentSaved(original: number, sent: number): number {
  return original === 0 ? 0 : Math.round((100 * (original - sent)) / original);
}

/** "2026-11-21", in the time zone of this machine. @param when  milliseconds, or as ISO 8601 */
export function localDay(when: number | string): string {
  const at = new Date(when);
  return [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
}

/** "14:05" for a time of today, else "2026-11-21 14:05", in the time zone of this machine. */
export function localTime(atMs: number, nowMs: number): string {
  const at = new Date(atMs);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return localDay(atMs) === localDay(nowMs) ? time : `${localDay(atMs)} ${time}`;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** An estimate: that of a line with its end. */
export const countTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4) + 1;

const QUOTATION = /^ {0,3}>(?:[ \t].*)?$/gm;
/** What is quoted or pasted may be anybody's words. */
export const getQuotations = (text: string): string => (text.match(QUOTATION) ?? []).join('\n');
export const withoutQuotations = (text: string): string => text.replace(QUOTATION, '');
