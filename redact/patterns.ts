import { runAtOnce, type Steps } from '../common/async.ts';
import { isPlaceholder, isRandomWord, randomness } from './randomness.ts';

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

/** Prefixes that services gave to their tokens so that scanners find them. */
const PREFIXES = [
  'gsk_|ntn_|xai-|hv[sb]\\.|tvly-|pplx-|r8_|nvapi-|sk-lf-|fc-|lsv2_|jina_',
  'glsa_|glc_|gl[a-z]{2,6}-|sbp_|pscale_[a-z]{2,5}_|lin_api_|secret_|nfp_|fo1_|fm[12]r?_|HRKU-|rubygems_|pul-|NR(?:AK|II|JS|RA)-',
  'shp[a-z]{2}_|shippo_[a-z]{4}_|sq0[a-z]{3}-|EAA[A-Z]|EZ[AT]K|FLWSECK(?:_TEST)?-|sm_[a-z]{3}_|sk\\.|[ps]at\\.|tfp_|IGQVJ',
  'do[opr]_v1_|dp\\.[a-z]{2,5}\\.|dt0[a-z]\\d\\d\\.|dapi|fio-u-|ico-|PMAK-|API-|sgp_|sntry[su]_|x(?:key|smtp)sib-|glptt-|ops_|alcht_|aio_',
  'SG\\.|nsec1|s\\.(?=\\w{24}(?!\\w))|CLOJARS_|CCIPAT_|AKCp|cmVm|ATATT3|LTAI|sl\\.|t1\\.|s-s4t2[a-z]{2}-|amzn\\.mws\\.|endr\\+|cio|oy2|pat-[a-z]{2}\\d-|00D[A-Za-z0-9]{12}!|eyJrIjoi|ZXlK',
].join('|');
const KNOWN = new RegExp(`(?:${PREFIXES})([\\w=+/.-]{12,})`, 'y');

/** The next lines of a key that a terminal has wrapped. */
const WRAPPED = String.raw`(?: {0,9}\r?\n {0,9}(?=\S*\d)(?=\S*[A-Z])(?=\S*[a-z])[\w.-]{16,}(?!\S)){0,20}`;

/** A line of codes that are used once, numbered or not. */
const CODES = String.raw`[ \t>*•|+-]{0,8}(?:\d{1,6}[.)→\t][ \t]{0,4})?[A-Za-z0-9]{4,16}(?:[ \t-]{1,4}[A-Za-z0-9]{4,16}){0,7}[ \t]{0,4}`;
export const RULES: readonly Rule[] = [
  // {"alg":…}.{…}.signature, or five parts where it is encrypted
  {
    type: 'jwt',
    pattern: new RegExp(
      EDGE.replace('[A-Za-z0-9]', '[\\w-]') + String.raw`eyJ[\w-]{5,}(?:\.[\w-]*){0,4}${WRAPPED}`,
      'g',
    ),
    accepts: (text) => /\.eyJ|(?:\.[\w-]*){4}/.test(text),
  },
  { type: 'anthropic-key', pattern: new RegExp(String.raw`sk-ant-[\w-]{10,}${WRAPPED}`, 'g') },
  { type: 'openai-key', pattern: edged(String.raw`sk-[\w-]{20,}${WRAPPED}`), accepts: isRandomKey },
  { type: 'github-token', pattern: edged(String.raw`(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})`) },
  { type: 'gitlab-token', pattern: edged(String.raw`gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[\w-]{20,}`) },
  { type: 'aws-key-id', pattern: edged('(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}[A-Za-z0-9]*') },
  { type: 'gcp-key', pattern: edged(String.raw`(?:AIza[\w-]{35,}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|1//0[\w-]{40,})`) },
  { type: 'vault-key', pattern: /(?:unseal|recovery) key \d{1,2}: {1,4}([\w+/=]{40,})/gi },
  { type: 'stripe-key', pattern: edged('(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})') },
  { type: 'slack-token', pattern: edged('(?:xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,})') },
  { type: 'slack-webhook', pattern: /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Za-z0-9/_-]{20,})/g },
  {
    type: 'private-key',
    pattern:
      /(?:privateExponent|prime[12]|exponent[12]|coefficient|priv):\s{1,8}((?:[0-9a-f]{2}(?![0-9A-Za-z]):?\s{0,12}){15,})/g,
  },
  // Private members of a JWK
  {
    type: 'private-key',
    pattern: /(?<![\w$-])(?:[dk]|d?[pq]|qi)\\{0,3}["']?:\s{0,4}(?:\\{0,3}["']|(?=[\w-]{42}))([\w-]{20,})/g,
    accepts: isMemberKey,
  },
  // A line of WireGuard: a key of X25519 has five bits that are the same in all.
  {
    type: 'private-key',
    pattern:
      /=(?<=(?<![\w+/]{40}\r?\n)^[ \t]{0,16}(?:\d{1,6}[→\t])?([ACEGIKMOQSUWYacegikmoqsuwy02468+][A-P][A-Za-z0-9+/]{39}[E-HU-Xk-n0-3][AEIMQUYcgkosw048]=))(?=\r?$)/gm,
  },
  {
    type: 'secret',
    pattern: /secret_?id\\{0,3}["']?\s{0,12}[:=]?\s{0,12}\\{0,3}["']?([0-9a-f]{8}(?:-[0-9a-f]{4,12}){4})(?!\w)/gi,
  },
  { type: 'signature', pattern: /[?&;](?:[\w-]{0,11}Signature|sig|code)=([\w%+/.=~-]{20,})/gi, accepts: isRandomKey },
  {
    type: 'recovery-codes',
    pattern: new RegExp(
      `(?:(?:recovery|backup|scratch|rescue|one-time|wiederherstellungs)[ _-]?codes?|c[oó]d(?:es|igos) de (?:r[eé]cup|secours|respaldo))[^\\n]{0,99}\\n(?:[^\\n]{0,99}\\n){0,3}?((?:${CODES}\\r?\\n){2,24}${CODES})(?!\\w)`,
      'gi',
    ),
    accepts: (codes) => codes.split('\n').every((line) => /\d/.test(line)),
  },
  // The output of a command in the same text
  {
    type: 'secret',
    pattern:
      /(?:openssl rand|wg gen\w{3}|urandom|token_(?:hex|urlsafe)|randomBytes)[^\n]{0,160}\n(?:[ \t]{0,16}\d{1,6}[→\t])?(?:<bash-stdout>|['"])?([\w+/=-]{16,})/g,
    accepts: isRandomKey,
  },
  // A key of one-time passwords, as it is shown
  { type: 'secret', pattern: /\b(?=[A-F2-7 ]{0,40}[G-Z])(?:[A-Z2-7]{4} ){7,15}[A-Z2-7]{4}\b/gi, accepts: isRandomKey },
  {
    type: 'registry-token',
    pattern: edged(String.raw`(?:(?:npm|hf)_[A-Za-z0-9]{30,}|pypi-AgE[\w-]{40,}|dckr_[po]at_[\w-]{20,})`),
  },
  { type: 'age-key', pattern: edged('AGE-SECRET-KEY-1[A-Z0-9]{50,}[A-Za-z0-9]*') },
  // 1Password, Azure
  { type: 'api-token', pattern: edged(String.raw`A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}-(?:[A-Z0-9]{5}-){1,4}[A-Z0-9]{5}`) },
  { type: 'api-token', pattern: /(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,}/g },
  { type: 'discord-token', pattern: edged(String.raw`[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{25,}`) },
  // Telegram, Facebook
  { type: 'api-token', pattern: /(?<!\d)(?:\d{8,10}:[\w-]{34,}|\d{15,16}\|[\w-]{27,})/g, accepts: isRandomKey },
  { type: 'twilio-key', pattern: edged('(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])') },
  {
    type: 'password-hash',
    pattern:
      /(?:\$(?:2[abxy]|[1567y]|apr1|argon2id?|scrypt)|pbkdf2_\w{3,8})\$[\w./$,=+-]{20,}|\{S?SHA\d{0,3}\}[\w+/=]{20,}/g,
  },
  {
    type: 'bearer',
    pattern: edged(String.raw`bearer(?:\s{1,4}|%20|\+)([\w.~+/=-]{16,})`, 'gi'),
    accepts: (text) => /\d/.test(text) || isRandomWord(text),
  },
  { type: 'basic-auth', pattern: edged(String.raw`basic\s{1,4}([A-Za-z0-9+/=_-]{6,})`, 'gi'), accepts: isBasicPair },
];

/** The first match of a global pattern at or after an offset. Between two steps others use the same pattern. */
export function matchFrom(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

export function* getMatches(pattern: RegExp, text: string): Steps<RegExpExecArray[]> {
  const matches: RegExpExecArray[] = [];
  yield;
  // Cheaper than matchAll, which copies the pattern first.
  for (let match = matchFrom(pattern, text, 0); match !== null; match = matchFrom(pattern, text, getEnd(match))) {
    matches.push(match);
    yield;
  }
  return matches;
}

/** Spans that `read` gives for the matches of patterns; null where one is no secret. */
export function* findMatches(
  patterns: readonly RegExp[],
  text: string,
  read: (match: RegExpExecArray, end: number) => Span | null,
): Steps<Span[]> {
  const spans: Span[] = [];
  for (const pattern of patterns) {
    for (const match of yield* getMatches(pattern, text)) {
      yield;
      const span = read(match, getEnd(match));
      if (span !== null) spans.push(span);
    }
  }
  return spans;
}

export const getEnd = ({ index, 0: whole }: RegExpExecArray): number => index + whole.length;

/** Finds where a run of characters ends, `run` being sticky; ascending offsets scan each character once. */
export function createRunEnd(text: string, run: RegExp): (start: number) => number {
  let [start, end] = [0, -1];
  return (at) => {
    if (at < start || at > end) {
      matchFrom(run, text, at);
      [start, end] = [at, run.lastIndex];
    }
    return end;
  };
}

/** Secrets recognizable by their format. */
export function* findTokens(text: string): Steps<Span[]> {
  let spans: Span[] = [];
  for (const { type, pattern, accepts } of RULES) {
    const found = yield* findMatches([pattern], text, ({ 0: whole, 1: secret = whole }, end) =>
      accepts?.(secret) === false ? null : { start: end - secret.length, end, type },
    );
    spans = spans.concat(found);
  }
  for (const id of spans.filter(({ type }) => type in KEYS_NEAR_ID)) {
    yield;
    // A secret key is recognizable only by its length, so it is searched for only near its id.
    const from = Math.max(0, id.start - REACH);
    for (const { 0: secret, index } of text.slice(from, id.end + REACH).matchAll(KEYS_NEAR_ID[id.type] as RegExp))
      spans.push({ start: from + index, end: from + index + secret.length, type: 'secret' });
  }
  return spans;
}

export function isRandomKey(text: string): boolean {
  return randomness(text) >= 0.45 && (/\d/.test(text) || text.length >= 30);
}

/** Of a JWK; digests in hex have one case. */
export function isMemberKey(text: string): boolean {
  return /^[\w-]{20,}$/.test(text) && /[a-z]/.test(text) && /[A-Z]/.test(text) && isRandomKey(text);
}

/** Two or three parts joined by dots, each as random as a key. */
function isDottedToken(text: string): boolean {
  const parts = text.split('.');
  const isRandom = (part: string): boolean =>
    part.length >= 14 && /\d/.test(part) && /[a-z]/.test(part) && randomness(part) >= 0.5;
  return (
    !text.startsWith('ey') && parts.length <= 3 && parts.every(isRandom) && parts.some(({ length }) => length >= 20)
  );
}

const CHARS_PER_STEP = 4_096;
const SHORTEST_TOKEN = 20;
const LONGEST_TOKEN = 200;
const RUN_CHARACTERS = getCharacters('-+.!');
const TOKEN_CHARACTERS = getCharacters('-');

function getCharacters(signs: string): Uint8Array {
  const set = new Uint8Array(128);
  for (let code = 0; code < 128; code += 1) {
    const character = String.fromCharCode(code);
    if (/\w/.test(character) || signs.includes(character)) set[code] = 1;
  }
  return set;
}

/** Tokens with a known prefix, and those of unknown services: a prefix and a long random end, or longer without one. */
export function* findRandomTokens(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  for (let end = 0, start = 0; end <= text.length; end += 1) {
    if (end % CHARS_PER_STEP === 0) yield;
    if (end < text.length && RUN_CHARACTERS[text.charCodeAt(end)] === 1) continue;
    if (end - start >= SHORTEST_TOKEN) for (const token of yield* tokensIn(text, start, end)) spans.push(token);
    start = end + 1;
  }
  return spans;
}

function* tokensIn(text: string, from: number, end: number): Steps<Span[]> {
  const written = text[from - 1] === '\\' ? from + 1 : text[from - 1] === '%' ? from + 2 : from;
  const isLine = written > from || from === 0 || /[\n→]/.test(text.charAt(from - 1));
  const start = isLine && /[+-]/.test(text.charAt(written)) ? written + 1 : written;
  const match = matchFrom(KNOWN, text, start);
  if (match !== null && isRandomKey(match[1] ?? '')) {
    const before = text.slice(Math.max(0, start - 64), start);
    // After a `/` or `+` in base64, a prefix is chance.
    if (!/^[A-Za-z0-9+/]{64}$/.test(before) || randomness(before) < 0.45)
      return [{ start, end: getEnd(match), type: 'api-token' }];
  }
  const spans: Span[] = [];
  const run = text.slice(start, end);
  if (run.length <= 2 * LONGEST_TOKEN && run.includes('.') && isDottedToken(run))
    return [{ start, end, type: 'api-token' }];
  for (let at = start, to = start; to <= end; to += 1) {
    if (to % CHARS_PER_STEP === 0) yield;
    if (to < end && TOKEN_CHARACTERS[text.charCodeAt(to)] === 1) continue;
    const token = text.slice(at, to);
    const isHash = (): boolean => /(?:sha\d{1,3}|md5|base64)\W{1,3}$/i.test(text.slice(Math.max(0, at - 9), at));
    if (isUnknownToken(token, at === start && isLine ? '' : text.charAt(at - 1), text.charAt(to)) && !isHash())
      spans.push({ start: at, end: to, type: 'token' });
    at = to + 1;
  }
  return spans;
}

function isUnknownToken(run: string, before: string, after: string): boolean {
  if (run.length < SHORTEST_TOKEN || run.length > LONGEST_TOKEN || /[+/.\\%]/.test(before) || /[+/.]/.test(after))
    return false;
  if (/^(?:key-[0-9a-f]{32}|[0-9a-f]{32}-(?:us\d{1,2}|[0-9a-f]{8}-[0-9a-f]{8}))$/.test(run)) return true;
  // A digest; the address of a contract.
  if (/^(?:sha\d{1,3}|md5)[-_]|^0x[\dA-Fa-f]{40}$/.test(run)) return false;
  const prefix = /^[a-z][a-z0-9]{1,11}(?:[_-][a-z]{2,8}){0,2}_/.exec(run)?.[0] ?? '';
  const body = run.slice(prefix.length);
  const isMixed = isMixedKey(body);
  if (randomness(body) < 0.55) return false;
  if (prefix !== '') return isMixed ? body.length >= 26 : /^[0-9a-f]{32,}$/.test(body);
  // 43 characters are a SHA-256 in base64url, and words in base64 are no key.
  return (
    isMixed &&
    body.length >= 36 &&
    body.length !== 43 &&
    isMixedKey(/[A-Za-z0-9]{24,}/.exec(body)?.[0] ?? '') &&
    !/^[\n\x20-\x7e]{8,}$/.test(Buffer.from(body, 'base64').toString('latin1'))
  );
}

export const isMixedKey = (text: string): boolean => /[a-z]/.test(text) && /[A-Z]/.test(text) && /\d\D+\d/.test(text);

const REACH = 300;
const KEYS_NEAR_ID: Readonly<Record<string, RegExp>> = {
  'aws-key-id': /(?<![\w+/])(?=[A-Z0-9+/]{0,39}[a-z])(?=[a-z0-9+/]{0,39}[A-Z])[A-Za-z0-9+/]{40}(?![\w+/=])/g,
  'twilio-key': /(?<!\w)[0-9a-f]{32}(?!\w)/g,
};

/** Base64 of `name:password`. */
export function isBasicPair(text: string): boolean {
  const pair = Buffer.from(text, 'base64').toString('latin1');
  return pair.includes(':') && /^[\x20-\x7e]+$/.test(pair);
}

/** Digests and versions are as random as keys, but public. */
const PUBLIC = 'SHA\\d*|HASH|DIGEST|CHECKSUM|INTEGRITY|COMMIT|REVISION|VERSION|PUBL[A-Z]*|URL|PATH|DIR|ID|UUID';
/** `NAME=value` as in settings files and shells, with bounded lengths. */
const SETTING = new RegExp(
  String.raw`(?<![\w$.=-](?<!\\[nrt]))(?!(?:[A-Z0-9_]{0,60}_)?(?:${PUBLIC})[_=])[A-Z][A-Z0-9_]{1,60}=(?:\\?["'])?(?!sha\d{1,3}-)([\w+=-][\w+/=.~-]{23,299})(?![^\s"'\x60\\<>])`,
  'g',
);

export function findSettings(text: string): Steps<Span[]> {
  return findMatches([SETTING], text, ({ 1: value = '' }, end) => {
    const isMixed = /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
    return isMixed && randomness(value) >= 0.5 ? { start: end - value.length, end, type: 'secret' } : null;
  });
}

const PEM_BEGIN = '-----BEGIN ';
const PEM_HEADER = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y;
const PEM_FOOTER = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
// Line breaks (also escaped), line numbers and quote marks, followed by letters of the key or the end.
const PEM_OPENING = /^(?:\\[nrt]|[\s>|+:→0-9])*(?:Proc-Type|[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/=]{0,15}$)/;

/** PEM private keys, also with escaped line breaks. A key without an end extends to the end of the text. */
export function* findPrivateKeys(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  const footers = yield* getMatches(PEM_FOOTER, text);
  let next = 0;
  let at = text.indexOf(PEM_BEGIN);
  while (at !== -1) {
    yield;
    const header = matchFrom(PEM_HEADER, text, at);
    const from = header === null ? at : at + header[0].length;
    // Code that names the header closes a quote after it.
    const isKey = header !== null && !/["'`)]/.test(text.charAt(from));
    const isOpen = isKey && PEM_OPENING.test(text.slice(from, from + 256));
    while ((footers[next]?.index ?? from) < from) next += 1;
    const footer = isKey ? footers[next] : undefined;
    const end = footer !== undefined ? getEnd(footer) : isOpen ? text.length : null;
    if (end !== null) spans.push({ start: at, end, type: 'private-key' });
    at = text.indexOf(PEM_BEGIN, end ?? at + PEM_BEGIN.length);
  }
  return spans;
}

const URL_END = /[\s"'`<>\\]|:\/\//g;

/** Passwords in manuals. */
const EXAMPLE = /^.{0,3}$|^(?:pass(?:w(?:or)?d)?|pwd|secret|token)$/i;

/** The password in a URL, between the first colon and the host. */
export function* findUrlPasswords(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  for (let at = text.indexOf('://'); at !== -1; at = text.indexOf('://', at + 3)) {
    yield;
    if (at === 0 || !/[A-Za-z0-9]/.test(text.charAt(at - 1))) continue;
    const run = text.slice(at + 3, matchFrom(URL_END, text, at + 3)?.index ?? text.length);
    const password = findPassword(run);
    // `https://TOKEN@host`
    const token = /^([\w.~%+-]{16,255})@/.exec(run)?.[1] ?? '';
    if (password === null && /\d/.test(token) && randomness(token) >= 0.45) {
      spans.push({ start: at + 3, end: at + 3 + run.indexOf('@'), type: 'token' });
      continue;
    }
    if (password === null || EXAMPLE.test(password.text) || isPlaceholder(password.text)) continue;
    const start = at + 3 + password.at;
    spans.push({ start, end: start + password.text.length, type: 'password' });
  }
  return spans;
}

function findPassword(run: string): { readonly at: number; readonly text: string } | null {
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
 * @param depth  tags still open from the previous text
 */
export function* findPrivate(text: string, depth: number): Steps<{ readonly spans: Span[]; readonly depth: number }> {
  const spans: Span[] = [];
  let open = depth;
  let start = 0;
  for (const match of yield* getMatches(PRIVATE_TAG, text)) {
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
  return runAtOnce(findPrivate(text, 0)).spans.map(({ start, end }) =>
    text.slice(start, end).replace(PRIVATE_TAG, '\n'),
  );
}
