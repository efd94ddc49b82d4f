import type { Span } from './span.ts';

/** Names that mark a value as secret. */
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

/** Values with a secret name: `API_KEY=…`, `"password": "…"`, `authorization: …`. */
export function findAssignments(text: string): Span[] {
  const spans: Span[] = [];
  for (const match of text.matchAll(NAMED)) {
    const [whole, sign, quote, quoted, bare] = match;
    const value = quoted ?? bare ?? '';
    const end = match.index + whole.length;
    const secret =
      quote === undefined ? isBareSecret(value, whole, sign) && !isCodeCharacter(text[end]) : looksSecret(value);
    if (secret) spans.push({ start: end - value.length, end, type: 'secret' });
  }
  for (const match of text.matchAll(HEADER)) {
    const value = match[1] ?? '';
    const end = match.index + match[0].length;
    if (looksSecret(value) && !isCodeCharacter(text[end]))
      spans.push({ start: end - value.length, end, type: 'auth-header' });
  }
  return spans;
}

/** Whether the key of a JSON member marks its string as secret. */
export function isSecretMember(key: string, value: string): boolean {
  if (HEADER_KEY.test(key)) return value.length >= 4 && !isPlaceholder(value);
  return SECRET_KEY.test(key) && value.length >= 6 && looksSecret(value);
}

/** A placeholder instead of a secret: a redaction mark, `$TOKEN`, `<token>`, `{{ token }}`, `%s`, `***`. */
export function isPlaceholder(text: string): boolean {
  return MARK.test(text) || /^(?:[<{%[(]|\$(?:[{(]|\w+$)|\*+$|\.{3}|x+$)/i.test(text);
}

// Unquoted text is often code: `TOKEN=…` is a setting, `token = nextToken` is not.
function isBareSecret(value: string, whole: string, sign: string | undefined): boolean {
  const isSetting = sign === '=' && whole.endsWith(`=${value}`) && !/\s/.test(whole);
  return isSetting ? looksSecret(value) : value.length >= 16 && looksSecret(value) && /\d\D*\d/.test(value);
}

export function looksSecret(value: string): boolean {
  const isMixed = /[A-Za-z]/.test(value) && (/\d/.test(value) || isRandom(value));
  return isMixed && !/\s/.test(value) && !/^[./~]/.test(value) && !isPlaceholder(value);
}

/** Letters only: names have few capitals, words few distinct letters. */
function isRandom(value: string): boolean {
  if (value.length < 20 || !/^[A-Za-z]+$/.test(value)) return false;
  const capitals = value.replace(/[^A-Z]/g, '').length / value.length;
  return capitals > 0.25 && capitals < 0.75 && bitsPerCharacter(value) >= 3.8;
}

function isCodeCharacter(next: string | undefined): boolean {
  return next !== undefined && '([{$'.includes(next);
}

/** `NAME=value` as in settings files and shells, with bounded lengths. */
const SETTING = /(?<![\w$.=-](?<!\\[nrt]))([A-Z][A-Z0-9_]{1,60})=(\\?["'])?([^\s"'`\\<>]{10,300})(?![^\s"'`\\<>])/g;
/** Names that imply a secret value. */
const GUARDED =
  /(?:^|_)(?:KEY|AUTH|PASS|PWD|PASSWD|PASSWORD|PASSPHRASE|SALT|PEPPER|COOKIE|SESSION|CREDS?|DSN|WEBHOOK|SEED|MNEMONIC|LICENSE|HMAC|SIGNATURE)(?:_|$)/;
const PASSWORD = /(?:^|_)(?:PASS|PWD|PASSWD|PASSWORD|PASSPHRASE)$/;
/** Digests and versions are as random as keys, but public. */
const PUBLIC =
  /(?:^|_)(?:SHA\d*|HASH|DIGEST|CHECKSUM|INTEGRITY|COMMIT|REVISION|VERSION|PUBLIC|URL|PATH|DIR|ID|UUID)(?:_|$)/;

/** Values of settings that are as random as keys or named as passwords. */
export function findSettings(text: string): Span[] {
  const spans: Span[] = [];
  for (const match of text.matchAll(SETTING)) {
    const [whole, name, , value] = match as unknown as [string, string, string | undefined, string];
    if (!isSecretSetting(name, value)) continue;
    const end = match.index + whole.length;
    spans.push({ start: end - value.length, end, type: 'secret' });
  }
  return spans;
}

function isSecretSetting(name: string, value: string): boolean {
  if (isPlaceholder(value) || /^(?:\.|~|\/[a-z.])|:\/\/|[(){}[\];,]|^sha\d+-/.test(value)) return false;
  const bits = bitsPerCharacter(value);
  if (PASSWORD.test(name)) return bits >= 2.8 && !/[.]/.test(value);
  if (PUBLIC.test(name) || value.length < 16) return false;
  if (GUARDED.test(name)) return bits >= 3.2 && /\d/.test(value);
  const isMixed = /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
  return isMixed && value.length >= 24 && bits >= 4.2 && /^[\w+/=.~-]+$/.test(value);
}

/** Shannon entropy in bits per character: words have about 3, random keys over 4. */
export function bitsPerCharacter(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}
