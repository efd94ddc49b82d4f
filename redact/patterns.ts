import { trimEnd } from '../common/text.ts';

/** A secret in a text, `[start, end)` in UTF-16 units. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** The type shown in the mark: lower case and dashes. */
  readonly type: string;
}

/** Merges overlapping spans; the type of the first listed one wins. The result is ascending and disjoint. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const sorted = spans.map((span, rank) => ({ ...span, rank })).sort((a, b) => a.start - b.start);
  const merged: (Span & { readonly rank: number })[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last === undefined || span.start >= last.end) {
      merged.push(span);
      continue;
    }
    const first = span.rank < last.rank ? span : last;
    merged[merged.length - 1] = { ...first, start: last.start, end: Math.max(last.end, span.end) };
  }
  return merged;
}

/** Whether the span contains one of the ascending, disjoint `parts`. */
export function containsSpan(span: Span, parts: readonly Span[]): boolean {
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((parts[middle] as Span).start < span.start) low = middle + 1;
    else high = middle;
  }
  const first = parts[low];
  return first !== undefined && first.end <= span.end;
}

/** Rules of another library; yields to the event loop. */
export type SecretScanner = (text: string) => Promise<readonly Span[]>;

interface Rule {
  readonly type: string;
  /**
   * Global. The secret is the whole match, or the last group, which then ends the match. Nothing is required after an
   * unbounded run, so that each rule stays linear on hostile text. No letter or digit may follow a match: after the mark
   * it would start a word, and a second pass would find more.
   */
  readonly pattern: RegExp;
  readonly accepts?: (secret: string) => boolean;
}

// No letter or digit before it, except the end of an escape: \n, \u000a, %3D.
const EDGE = String.raw`(?<![A-Za-z0-9](?<!\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}))`;
const edged = (source: string, flags = 'g'): RegExp => new RegExp(EDGE + source, flags);

const RULES: readonly Rule[] = [
  { type: 'anthropic-key', pattern: /sk-ant-[\w-]{10,}/g },
  { type: 'openai-key', pattern: edged(String.raw`sk-(?:(?:proj|svcacct|admin|None)-[\w-]{16,}|[A-Za-z0-9]{20,})`) },
  { type: 'github-token', pattern: edged('gh[pousr]_[A-Za-z0-9]{30,}') },
  { type: 'github-token', pattern: /github_pat_\w{22,}/g },
  { type: 'gitlab-token', pattern: edged(String.raw`gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[\w-]{20,}`) },
  { type: 'aws-key-id', pattern: edged('(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}[A-Za-z0-9]*') },
  { type: 'gcp-key', pattern: edged(String.raw`AIza[\w-]{35,}`) },
  { type: 'gcp-key', pattern: /GOCSPX-[\w-]{20,}/g },
  { type: 'gcp-token', pattern: edged(String.raw`ya29\.[\w-]{20,}`) },
  { type: 'stripe-key', pattern: edged('[sr]k_(?:live|test)_[A-Za-z0-9]{16,}') },
  { type: 'stripe-key', pattern: edged('whsec_[A-Za-z0-9+/=]{24,}') },
  { type: 'slack-token', pattern: edged('xox[a-z]-[A-Za-z0-9-]{10,}') },
  { type: 'slack-token', pattern: edged('xapp-[A-Za-z0-9-]{20,}') },
  { type: 'slack-webhook', pattern: /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Za-z0-9/_-]{20,})/g },
  { type: 'npm-token', pattern: edged('npm_[A-Za-z0-9]{30,}') },
  { type: 'pypi-token', pattern: edged(String.raw`pypi-AgE[\w-]{40,}`) },
  { type: 'hugging-face-token', pattern: edged('hf_[A-Za-z0-9]{30,}') },
  { type: 'docker-token', pattern: edged(String.raw`dckr_(?:pat|oat)_[\w-]{20,}`) },
  { type: 'digitalocean-token', pattern: edged('do[opr]_v1_[a-f0-9]{60,}[A-Za-z0-9]*') },
  { type: 'age-key', pattern: edged('AGE-SECRET-KEY-1[A-Z0-9]{50,}[A-Za-z0-9]*') },
  { type: 'api-token', pattern: edged(String.raw`(?:gsk_|ntn_|xai-|hv[sb]\.)[\w-]{24,}`) },
  {
    type: 'bearer',
    pattern: edged(String.raw`bearer(?:\s{1,4}|%20|\+)([\w.~+/=-]{16,})`, 'gi'),
    accepts: (text) => /\d/.test(text),
  },
  { type: 'basic-auth', pattern: edged(String.raw`basic\s{1,4}([A-Za-z0-9+/=_-]{6,})`, 'gi'), accepts: isBasicPair },
];

/** Secrets recognizable by their format. */
export function findTokens(text: string): Span[] {
  const spans: Span[] = [];
  for (const { type, pattern, accepts } of RULES) {
    // Cheaper than matchAll, which copies the pattern first.
    if (text.search(pattern) < 0) continue;
    for (const match of text.matchAll(pattern)) {
      const secret = match[1] ?? match[0];
      if (accepts !== undefined && !accepts(secret)) continue;
      const end = match.index + match[0].length;
      spans.push({ start: end - secret.length, end, type });
    }
  }
  return spans.concat(spans.filter(({ type }) => type === 'aws-key-id').flatMap((id) => awsSecretsNear(text, id)));
}

// A secret key is recognizable only by its length, so it is searched for only near an access key id.
const AWS_REACH = 300;
const AWS_SECRET = /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/g;

function awsSecretsNear(text: string, id: Span): Span[] {
  const from = Math.max(0, id.start - AWS_REACH);
  const window = text.slice(from, id.end + AWS_REACH);
  return [...window.matchAll(AWS_SECRET)]
    .filter(([secret]) => /[a-z]/.test(secret) && /[A-Z]/.test(secret))
    .map(({ index }) => ({ start: from + index, end: from + index + 40, type: 'aws-secret' }));
}

function isBasicPair(text: string): boolean {
  const pair = Buffer.from(text, 'base64').toString('latin1');
  return pair.includes(':') && /^[\x20-\x7e]+$/.test(pair);
}

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
function isPlaceholder(text: string): boolean {
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
const PASSWORD_NAME = /(?:^|_)(?:PASS|PWD|PASSWD|PASSWORD|PASSPHRASE)$/;
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
  if (PASSWORD_NAME.test(name)) return bits >= 2.8 && !/[.]/.test(value);
  if (PUBLIC.test(name) || value.length < 16) return false;
  if (GUARDED.test(name)) return bits >= 3.2 && /\d/.test(value);
  const isMixed = /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
  return isMixed && value.length >= 24 && bits >= 4.2 && /^[\w+/=.~-]+$/.test(value);
}

/** Shannon entropy in bits per character: words have about 3, random keys over 4. */
function bitsPerCharacter(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

const VALUE = String.raw`([^\s"'\x60\\<>[\]{}(),;|&]{8,})`;
const QUOTE = String.raw`\\?["']?`;

const PASSWORD =
  '(?:[Pp]assw(?:or)?d|[Pp]assphrase|[Pp]asswort|[Kk]ennwort|[Ww]achtwoord|[Mm]ot de passe|[Cc]ontraseña|[Ss]enha)';
const KEY = '(?:(?:[Aa][Pp][Ii]|[Aa]ccess|[Ss]ecret)[ -]?[Kk]ey|[Tt]oken|[Aa][Pp][Ii]-[Ss]chlüssel)';
/** As in: the password *for the staging database* is … */
const WHOSE = String.raw`(?: (?:for|of|to|on|für|von|zu[mr]?|de[rsl]?|du|para|pour|voor|van)(?: [\wÀ-ÿ.@/-]{1,30}){1,6})?`;
const IS = ` (?:is|ist|lautet|est|es)(?<=(?:${PASSWORD}${WHOSE}|${KEY}) (?:is|ist|lautet|est|es))`;
const CJK_IS = '(?:密码|密碼|口令)(?:是|为|為)|パスワードは|(?:비밀번호|암호)[는은]';

/**
 * The value is the last group and ends the match. Bounded quantifiers keep each rule linear; literal first characters
 * make text without them cheap.
 */
const COMMAND_RULES: readonly RegExp[] = [
  // deploy --api-key …, login --password …
  new RegExp(String.raw`--(?:[a-z]{1,20}-){0,3}${NAME}\s{1,4}${QUOTE}${VALUE}`, 'g'),
  // curl -u name:…
  new RegExp(String.raw`-(?:u|-user|-proxy-user)[ =]${QUOTE}[\w.@%+-]{1,64}:${VALUE}`, 'g'),
  // mysql -p…
  new RegExp(String.raw`mysql\w{0,8} [^\n]{0,100}?\s-p\s?${QUOTE}${VALUE}`, 'g'),
  // docker login -p …, and in .netrc: login … password …
  new RegExp(String.raw`login\s[^\n]{0,100}?\s(?:-p|password)\s{1,4}${QUOTE}${VALUE}`, 'g'),
  // the password is …
  new RegExp(`${IS}:? {1,4}${QUOTE}${VALUE}`, 'g'),
  new RegExp(String.raw`(?:${CJK_IS})[:：]?\s{0,4}${QUOTE}([\w!#$%&*+./:=?@^~-]{8,})`, 'g'),
  // npm's _auth=…
  new RegExp(String.raw`_auth\s{0,4}=\s{0,4}${QUOTE}([\w+/=-]{12,})`, 'g'),
];

/** Secrets in command lines, their files, and sentences, without an assignment sign. */
export function findCommandSecrets(text: string): Span[] {
  return COMMAND_RULES.flatMap((rule) => {
    if (text.search(rule) < 0) return [];
    return [...text.matchAll(rule)].flatMap((match): Span[] => {
      const value = trimEnd(match[1] ?? '', '.:!?');
      const start = match.index + match[0].length - (match[1] ?? '').length;
      return looksSecret(value) && /\d/.test(value) ? [{ start, end: start + value.length, type: 'secret' }] : [];
    });
  });
}

const PEM_BEGIN = '-----BEGIN ';
const PEM_HEADER = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y;
const PEM_FOOTER = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const PEM_LINE = /[A-Za-z0-9+/]{40}/g;
// Line breaks (also escaped), line numbers and quote marks, followed by letters of the key or the end.
const PEM_OPENING = /^(?:\\[nrt]|[\s>|+:→0-9])*(?:Proc-Type|[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/=]{0,15}$)/;

/** PEM private keys, also with escaped line breaks. A key without an end extends to the end of the text. */
export function findPrivateKeys(text: string): Span[] {
  const spans: Span[] = [];
  const footerAfter = nextMatch(text, PEM_FOOTER);
  const lineAfter = nextMatch(text, PEM_LINE);
  let at = text.indexOf(PEM_BEGIN);
  while (at !== -1) {
    PEM_HEADER.lastIndex = at;
    const header = PEM_HEADER.exec(text);
    const end = header === null ? null : endOfKey(at + header[0].length);
    if (end !== null) spans.push({ start: at, end, type: 'private-key' });
    at = text.indexOf(PEM_BEGIN, end ?? at + PEM_BEGIN.length);
  }
  return spans;

  function endOfKey(from: number): number | null {
    const footer = footerAfter(from);
    if (footer === null) return PEM_OPENING.test(text.slice(from, from + 256)) ? text.length : null;
    // In code that only names the header, a closing quote follows and no line of a key.
    const isNamed =
      /["'`)]/.test(text.charAt(from)) && (lineAfter(from)?.start ?? Number.POSITIVE_INFINITY) > footer.start;
    return isNamed ? null : footer.end;
  }
}

type Range = { readonly start: number; readonly end: number };

// With ascending positions, it scans each character once.
function nextMatch(text: string, pattern: RegExp): (from: number) => Range | null {
  let found: Range | null = { start: -1, end: 0 };
  return (from) => {
    if (found !== null && found.start < from) {
      pattern.lastIndex = from;
      const match = pattern.exec(text);
      found = match === null ? null : { start: match.index, end: match.index + match[0].length };
    }
    return found;
  };
}

/** `header.payload.signature`; the first two start with `{"` in base64. */
export function findJwts(text: string): Span[] {
  const spans: Span[] = [];
  for (let dot = text.indexOf('.eyJ'); dot !== -1; dot = text.indexOf('.eyJ', dot + 1)) {
    let runStart = dot;
    while (runStart > 0 && isBase64Url(text.charCodeAt(runStart - 1))) runStart -= 1;
    const start = text.slice(runStart, dot).indexOf('eyJ');
    if (start === -1 || dot - runStart - start < 8) continue;
    let end = dot + 1;
    while (end < text.length && (isBase64Url(text.charCodeAt(end)) || text[end] === '.')) end += 1;
    spans.push({ start: runStart + start, end, type: 'jwt' });
    dot = end - 1;
  }
  return spans;
}

function isBase64Url(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 48 && code <= 57) ||
    code === 45 ||
    code === 95
  );
}

const URL_END = /[\s"'`<>\\]|:\/\//g;

/** Shorter ones are examples in manuals. */
const MIN_PASSWORD_LENGTH = 4;

/** The password in a URL, between the first colon and the host. */
export function findUrlPasswords(text: string): Span[] {
  const spans: Span[] = [];
  for (let at = text.indexOf('://'); at !== -1; at = text.indexOf('://', at + 3)) {
    if (at === 0 || !/[A-Za-z0-9]/.test(text.charAt(at - 1))) continue;
    URL_END.lastIndex = at + 3;
    const run = text.slice(at + 3, URL_END.exec(text)?.index ?? text.length);
    const password = passwordIn(run);
    if (password === null || password.text.length < MIN_PASSWORD_LENGTH || isPlaceholder(password.text)) continue;
    const start = at + 3 + password.at;
    spans.push({ start, end: start + password.text.length, type: 'password' });
  }
  return spans;
}

function passwordIn(run: string): { readonly at: number; readonly text: string } | null {
  const colon = run.indexOf(':');
  if (colon === -1 || run.slice(0, colon).endsWith('[REDACTED')) return null;
  const authority = run.slice(0, run.search(/[/?#]|$/));
  // A password may contain a raw / ? or #, but then no port precedes it.
  const isHostAndPort = /^[^/?#]*:\d*$/.test(authority);
  const sign = authority.includes('@') || isHostAndPort ? authority.lastIndexOf('@') : run.lastIndexOf('@');
  return sign > colon + 1 && colon < authority.length ? { at: colon + 1, text: run.slice(colon + 1, sign) } : null;
}

const PRIVATE_TAG = /<\s{0,8}(\/?)\s{0,8}private(?=[\s/>])[^<>]{0,200}>/gi;

/**
 * Text in private tags, with the tags. Tags nest; without an end tag the span extends to the end of the text.
 *
 * @param depth  tags still open from the previous text
 */
export function findPrivate(text: string, depth: number): { readonly spans: Span[]; readonly depth: number } {
  const spans: Span[] = [];
  let open = depth;
  let start = 0;
  for (const match of text.matchAll(PRIVATE_TAG)) {
    const closes = match[1] === '/';
    if (closes && open === 0) continue;
    if (!closes && open === 0) start = match.index;
    open += closes ? -1 : 1;
    if (open === 0) spans.push({ start, end: match.index + match[0].length, type: 'private' });
  }
  if (open > 0 && start < text.length) spans.push({ start, end: text.length, type: 'private' });
  return { spans, depth: open };
}

/** The texts in private tags, without the tags. */
export function findPrivateTexts(text: string): string[] {
  return findPrivate(text, 0).spans.map(({ start, end }) => text.slice(start, end).replace(PRIVATE_TAG, '\n'));
}
