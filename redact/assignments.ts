import { bitsPerCharacter } from './entropy.ts';
import type { Span } from './span.ts';

/** How whoever names a value says that it is secret. */
export const NAME =
  '(?:passw(?:or)?d|passphrase|secret|token|credential|(?:api|access|account|private|secret|signing|encryption)[_-]?key(?:[_-]?base)?)s?';
const NAMED = new RegExp(
  String.raw`${NAME}\\?["']?\s{0,4}(:=|=>|[:=])\s{0,4}(?:\\?(["'\x60])([^\s"'\x60\\<>]{8,})|([\w+/=~.-]{8,}))`,
  'gi',
);
const MARK = /\[REDACTED:[a-z-]+:[0-9a-f]{8}\]/;
const HEADER =
  /authorization\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?(?:(?:bearer|basic|token|apikey)\s{1,4})?([\w+/=~.-]{8,})/gi;
const SECRET_KEY = new RegExp(`${NAME}$`, 'i');
const HEADER_KEY = /^(?:proxy-)?authorization$|^x-api-key$|^(?:set-)?cookie$/i;

/** Values whose name says that they are secret: `API_KEY=…`, `"password": "…"`, `authorization: …`. */
export function findAssignments(text: string): Span[] {
  const spans: Span[] = [];
  for (const match of text.matchAll(NAMED)) {
    const [whole, sign, quote, quoted, bare] = match;
    const value = quoted ?? bare ?? '';
    const end = match.index + whole.length;
    const secret = quote === undefined ? isBareSecret(value, whole, sign) && !isCode(text[end]) : looksSecret(value);
    if (secret) spans.push({ start: end - value.length, end, type: 'secret' });
  }
  for (const match of text.matchAll(HEADER)) {
    const value = match[1] ?? '';
    const end = match.index + match[0].length;
    if (looksSecret(value) && !isCode(text[end])) spans.push({ start: end - value.length, end, type: 'auth-header' });
  }
  return spans;
}

/** Whether the string under `key` of a JSON object is a secret by its name. */
export function isSecretMember(key: string, value: string): boolean {
  if (HEADER_KEY.test(key)) return value.length >= 4 && !isPlaceholder(value);
  return SECRET_KEY.test(key) && value.length >= 6 && looksSecret(value);
}

/** What stands where the secret is not: a mark of ours, `$TOKEN`, `<token>`, `{{ token }}`, `%s`, `***`. */
export function isPlaceholder(text: string): boolean {
  return MARK.test(text) || /^(?:[<{%[(]|\$(?:[{(]|\w+$)|\*+$|\.{3}|x+$)/i.test(text);
}

// Unquoted text is code as often as not: `TOKEN=…` is a setting, `token = nextToken` is not.
function isBareSecret(value: string, whole: string, sign: string | undefined): boolean {
  const isSetting = sign === '=' && whole.endsWith(`=${value}`) && !/\s/.test(whole);
  return isSetting ? looksSecret(value) : value.length >= 16 && looksSecret(value) && /\d\D*\d/.test(value);
}

export function looksSecret(value: string): boolean {
  const isMixed = /[A-Za-z]/.test(value) && (/\d/.test(value) || isRandom(value));
  return isMixed && !/\s/.test(value) && !/^[./~]/.test(value) && !isPlaceholder(value);
}

/** Letters alone: names have few capitals, words few different letters. */
function isRandom(value: string): boolean {
  if (value.length < 20 || !/^[A-Za-z]+$/.test(value)) return false;
  const capitals = value.replace(/[^A-Z]/g, '').length / value.length;
  return capitals > 0.25 && capitals < 0.75 && bitsPerCharacter(value) >= 3.8;
}

function isCode(next: string | undefined): boolean {
  return next !== undefined && '([{$'.includes(next);
}
