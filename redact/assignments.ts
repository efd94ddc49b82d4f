import type { Steps } from '../common/async.ts';
import { trimEnd } from '../common/text.ts';
import { createRunEnd, getEnd, isBasicPair, isMemberKey, matchFrom, type Span } from './patterns.ts';
import { isPlaceholder, isRandomWord, randomness } from './randomness.ts';

/** How much a name says about its value: that it is a password, a secret, or only that it may be one. */
type Kind = 'password' | 'secret' | 'generic';

// A pre-shared key of a network only in `psk=` and with a quote.
const PASSWORD_WORDS = String.raw`pa[as]sw(?:or[dt]|d)|pass(?:phrase|code|ord(?:et)?)?|pwd|p/?w|psk(?=["']?=["']?\S|["']?\s{0,4}[=:]\s{0,4}["'])|kennwort|wachtwoord|senha|parola|heslo|hasło|lösenord(?:et)?|salasana|adgangskoden?|mot de passe`;
const FOREIGN_WORD = /(contraseña|şifre|пароль|密[码碼]|口令|パスワード|패스워드|비밀번호|비번|암호)/gi;
const SECRET_WORDS = 'secret|token|credentials?|creds|api-schlüssel|crumb|wallet|mnemonic|samlresponse|code_?verifier';
const GENERIC_WORDS = 'key|auth|cookie|nonce|salt|seed|pepper|sig|signature|webhook|license|hmac';
const WORD = new RegExp(`(${PASSWORD_WORDS})|(${SECRET_WORDS})|(?:${GENERIC_WORDS})`, 'gi');

/** Words before `key` and `auth` with which the name is that of a secret. */
const SECRET_BEFORE =
  /(?:api|access|account|private|secret|signing|encryption|shared|preshared|master|app|admin|service|subscription|deploy|jwt|hmac|softlayer|sl|registry|_)[_. -]?$/i;
/** Names of values as random as keys, but public. */
const PUBLIC_BEFORE =
  /(?:public|publishable|pub|cache|foreign|primary|sort|partition|idempotency|next|page|continuation|sync|cursor|dedupe|row|object|hot|group|lock|route|query|config|unique|translation|message|event|cancel|csp|script|style)[_. -]?$/i;
const PUBLIC_AFTER =
  /(?:names?|types?|url|uri|files?|path|id(?:s|hex)?|uuid|fields?|labels?|endpoint|expir\w{0,10}|ttl|age|count|index|limit|max|min|length|len|size|format|regex|pattern|hash(?:ed)?|digest|sha\d{0,3}|header|prefix|suffix|policy|placeholder|messages?|errors?|hint|inputs?|form|store|alias|refs?|usage|version|kind|class|mode|codes?|info|text|title|status|state|provider|param|dir|scope|algorithm|alg|method|enabled|required|host|issuer|manager|service|validator|checksum|commit|revision|integrity|color|rotation)$/i;

/** What may follow the word in its name. A small letter would make it another word: passenger, keyboard. */
const TAIL = String.raw`(s?(?:(?:[A-Z0-9_]|[.-](?=\w))[\w.-]{0,24})?)`;
const CLOSE = String.raw`(?:\\{0,3}["'\x60]|[\])*]){0,3}`;
const TYPE = String.raw`(?:\s{0,2}:\s{0,2}&?(?:'static )?(?:str|[sS]tring)(?=\s)|\s[sS]tring(?=\s)|\[\d{0,6}\])?`;
const INDIRECT = String.raw`[\s,{]{1,12}["']?(?:[vV]alue|default)["']?\s{0,3}[:=]`;
const SIGN = String.raw`(?::-|:{1,3}=?|[?+.|&]{0,2}=>?|->|\|\||\?\?|[：는은是为為は]|%3[ADad]|${INDIRECT})(?:\*{2,3}(?=\s))?`;
const CALL = String.raw`(?:[A-Za-z_][\w.:!]{0,30}\(\s{0,4})?`;
const QUOTE = String.raw`(?:@|[bBrRuU]{1,2}(?=["']))?(\\{0,3}["'\x60]{1,3})`;
const AFTER_FLAG = String.raw`(?:(?<="--\S{1,40}\s{4})\s{1,28})?`;
const sticky = (source: string, flags = 'y'): RegExp => new RegExp(source, flags);

/** From the word to its value. The last group is the opening quote, empty where the value is bare. */
const CONNECTORS: readonly { readonly how: How; readonly pattern: RegExp }[] = [
  { how: 'quoted', pattern: sticky(String.raw`${TAIL}${CLOSE}${TYPE}\s{0,8}${SIGN}\s{0,8}${CALL}${QUOTE}`) },
  { how: 'quoted', pattern: sticky(String.raw`${TAIL}\\{0,3}["']\s{0,4},\s{0,4}${AFTER_FLAG}${QUOTE}`) },
  { how: 'quoted', pattern: sticky(String.raw`${TAIL}\(${QUOTE}`) },
  { how: 'element', pattern: sticky(String.raw`${TAIL}>\s{0,12}()`) },
  { how: 'variable', pattern: sticky(String.raw`${TAIL}=()`) },
  { how: 'setting', pattern: sticky(String.raw`${TAIL}${CLOSE}\s{0,8}${SIGN}\s{0,8}(?:[|>][+-]?\s{1,12})?()`) },
  // A line of two columns.
  {
    how: 'setting',
    pattern: sticky(
      String.raw`(?<=^[\W\d]{0,12}[\w.-]{0,40})${TAIL}:?(?: {2,40}|\t{1,4})(?=\S{6,300}\s{0,4}$)()`,
      'my',
    ),
  },
  { how: 'cell', pattern: sticky(String.raw`${TAIL},()`) },
  { how: 'spaced', pattern: sticky(String.raw`${TAIL}[ \t]{1,4}(\\?["']?)`) },
  {
    how: 'said',
    pattern: sticky(
      String.raw`(s?)(?: (?:for|of|to|on|in|für|von|zu[mr]?|d(?:e[rsl]?|ell[ao]|i|u|[ao]s?)|para|pour|voor|van|k|do|от|для|до|к)(?: [\wÀ-ӿ.@/'"-]{1,30}){1,6}?)? {0,2}(?:: {0,4}| [-–—] {0,4}| (?:is|was|ist|lautet|est|es|è|é|är|er|je|to):? {1,4})(\\?["']?)`,
    ),
  },
  { how: 'said', pattern: sticky(String.raw`()\(()`) },
];
type How = 'quoted' | 'element' | 'variable' | 'setting' | 'cell' | 'spaced' | 'said';

const BARE = /[^\s"'`\\<>,;&|(){}[\]]*/y;
const LONGEST_BARE = 300;
const MAX_VALUE = 1_024;

/** Values with a secret name, in the syntaxes of settings, programs, commands, markup and sentences. */
export function* findAssignments(text: string): Steps<Span[]> {
  const ascii = yield* getValues(text, WORD);
  return /[\u0080-\uffff]/.test(text) ? ascii.concat(yield* getValues(text, FOREIGN_WORD)) : ascii;
}

function* getValues(text: string, words: RegExp): Steps<Span[]> {
  const spans: Span[] = [];
  const bareEnd = createRunEnd(text, BARE);
  let at = 0;
  for (let word = matchFrom(words, text, 0); word !== null; word = matchFrom(words, text, at)) {
    yield;
    const end = getEnd(word);
    at = end;
    const kind = kindOfName(word[0], text.slice(Math.max(0, word.index - 16), word.index), word[1], word[2]);
    if (kind === null) continue;
    const before = findNameBefore(text, word.index);
    if (text.slice(Math.max(0, word.index - before.length - 10), word.index).includes('[REDACTED:')) continue;
    const span = readValueAfter({ text, bareEnd }, end, kind, before + word[0]);
    if (span === null) continue;
    at = span.end;
    spans.push(span);
  }
  return spans;
}

type Searched = { readonly text: string; readonly bareEnd: (start: number) => number };

/** Up to 32 characters of a name, without the sign of a diff. */
function findNameBefore(text: string, end: number): string {
  let start = end;
  while (start > Math.max(0, end - 32) && /[\w.-]/.test(text.charAt(start - 1))) start -= 1;
  return text.slice(start, end).replace(/^-(?=\w)/, (sign) => (start === 0 || text[start - 1] === '\n' ? '' : sign));
}

/** Whether the name of a JSON member marks its string as secret. */
export function isSecretMember(name: string, value: string): boolean {
  if (/^(?:proxy-)?authorization$|^x-api-key$|^(?:set-)?cookie$/i.test(name))
    return value.length >= 4 && !isPlaceholder(value);
  if (/^(?:[dk]|d?[pq]|qi)$/.test(name)) return isMemberKey(value);
  for (let word = matchFrom(WORD, name, Math.max(0, name.length - 64)); word !== null; word = WORD.exec(name)) {
    const kind = kindOfName(word[0], name.slice(0, word.index).slice(-32), word[1], word[2]);
    const tail = name.slice(WORD.lastIndex);
    if (kind !== null && /^s?(?:[A-Z0-9_.-]|$)/.test(tail) && !PUBLIC_AFTER.test(tail))
      return isSecret(value, kind, 'quoted');
  }
  return false;
}

function kindOfName(word: string, before: string, password?: string, secret?: string): Kind | null {
  // `pw` and `key` are parts of other words, unless a sign or a capital begins them.
  const isOwnWord = !/[A-Za-z]$/.test(before) || (/^[A-Z]/.test(word) && /[a-z]$/.test(before));
  if (password !== undefined) return /^(?:pw|p\/w|psk)$/i.test(word) && !isOwnWord ? null : 'password';
  if (secret !== undefined) return PUBLIC_BEFORE.test(before) ? null : 'secret';
  if (PUBLIC_BEFORE.test(before)) return null;
  if (SECRET_BEFORE.test(before) && /^(?:key|auth)$/i.test(word)) return 'secret';
  return isOwnWord ? 'generic' : null;
}

function readValueAfter(searched: Searched, from: number, kind: Kind, name: string): Span | null {
  const { text, bareEnd } = searched;
  for (const { how, pattern } of CONNECTORS) {
    if ((how === 'said' || how === 'spaced') && kind === 'generic') continue;
    // The result of a test.
    if (name === 'PASS' && (text[from] === ':' || how === 'spaced')) continue;
    const match = matchFrom(pattern, text, from);
    if (match === null || PUBLIC_AFTER.test(match[1] ?? '')) continue;
    const start = pattern.lastIndex;
    const quote = match.at(-1) ?? '';
    const value = quote === '' ? bareAt(searched, start, how) : findQuote(searched, start, quote);
    const isFlag = how === 'spaced' && /^-{1,2}[\w-]{0,40}$/.test(name);
    const context = isFlag ? 'setting' : quote === '' ? how : 'quoted';
    if (value === null) continue;
    const isWord = isAnyWord(searched, { kind, how, tail: match[1] ?? '', nameAt: from - name.length, start, value });
    if ((/\s/.test(value) && !isWord) || !isSecret(value, kind, context, name, isWord)) continue;
    const end = value.length < LONGEST_BARE ? start + value.length : bareEnd(start + value.length);
    return { start, end, type: kind === 'password' ? 'password' : 'secret' };
  }
  return null;
}

const USER =
  /(?:(?:user(?:[ _-]?(?:name|id))?|uid|login|account|e-?mail|ssid|host(?:name)?|server|database|dbname)\\{0,3}["']?(?:\s{0,4}[:=]\s{0,4}|>)|login\s|--user(?:name)?\s(?!and\s|or\s))\\{0,3}["']?([^\s"'<>;,&\\]{1,64})\\{0,3}["']?(?:<\/[\w-]{1,32}>)?(?:[^A-Za-z]|\\[nrt]){1,24}$/i;
const NO_PASSWORD = new RegExp(
  `${PASSWORD_WORDS}|^(?:str(?:ing)?|text|varchar|char|secret|required|optional|true|false|null|none|undefined|bool(?:ean)?|any|unknown)$`,
  'i',
);

/** `NAME=`, `NAME: ` of YAML, `"NAME": ` of JSON, `$env:NAME = ` of PowerShell; not the name of an error or a message. */
const ENVIRONMENT =
  /^(?!(?:ERR(?:OR)?|INVALID|WRONG|MISSING|NO|BAD|FORGOT|RESET|CONFIRM|CHANGE|ENTER)_)(?:[A-Z][A-Z\d_]*=\\?["']?|[A-Z\d]{1,32}_[A-Z\d_]{1,32}(?:: {0,2}|\\?": {0,2}\\?")|\$env:[A-Z\d_]+ = ["']?)$/;
const ENVIRONMENT_TAIL = /^(?:_?(?:KEY|BASE|PROD|DEV|TEST|STAGING|ROOT|ADMIN|USER|APP|DB|\d{1,2})){0,3}$/;

/**
 * Whether any word there is the secret: in the environment of a process, in `password=…` that stands alone, said in
 * quotes, or right after the name of a user or a server.
 */
function isAnyWord(
  { text }: Searched,
  at: {
    readonly kind: Kind;
    readonly how: How;
    /** What follows the word in its name. */
    readonly tail: string;
    readonly nameAt: number;
    readonly start: number;
    readonly value: string;
  },
): boolean {
  const { kind, how, tail, nameAt, start, value } = at;
  const [name, before] = [text.slice(nameAt, start), text.slice(Math.max(0, nameAt - 160), nameAt)];
  const next = text.charAt(start + value.length);
  if (/^psk/i.test(name)) return value.length >= 8;
  if (kind === 'generic' || NO_PASSWORD.test(value)) return false;
  const isLine = /^\s?$/.test(next);
  if (ENVIRONMENT.test(`${/\$env:$/.exec(before)?.[0] ?? ''}${name}`) && ENVIRONMENT_TAIL.test(tail))
    return (
      /^\w/.test(value) &&
      !(name.includes(': ') && /^[A-Z]/.test(value)) &&
      (isLine || /["'\\]$/.test(name) || (how === 'variable' && /[;&|"'\\]/.test(next)))
    );
  if (kind !== 'password') return false;
  if (how === 'element' && tail === '') return true;
  if (how === 'said' && /[a-zèéä] {1,4}\\?["']$/.test(name)) return true;
  const user = USER.exec(before)?.[1];
  if (user === value) return false;
  const isAlone = isLine && /(?:^|\s)$/.test(before) && /^[a-z]+$/i.test(value);
  if (isAlone && tail === '' && /^[\w.-]+=$/.test(name)) return true;
  const isCode = /[,()]/.test(next) && [before, name].some((part) => /\s["']?$/.test(part));
  return user !== undefined && !isCode;
}

function findQuote(searched: Searched, start: number, quote: string): string | null {
  const { text } = searched;
  const rest = text.slice(start, start + MAX_VALUE);
  const end = rest.indexOf(quote.slice(0, quote.search(/["'`]/) + 1));
  const value = end === -1 ? '' : rest.slice(0, end);
  if (end === -1) return runAt(searched, start);
  return /\n|^\s|\s$/.test(value) || (/\s/.test(value) && quote.length > 1) ? null : value;
}

function bareAt(searched: Searched, start: number, how: How): string | null {
  const { text } = searched;
  const run = runAt(searched, start);
  if (run === null) return null;
  const value = how === 'said' || how === 'spaced' ? trimEnd(run, '.:!?') : run;
  const next = text.charAt(start + value.length);
  if (next !== '' && '([{$'.includes(next)) return null;
  if (how === 'element' && !/^\s{0,12}<\//.test(text.slice(start + value.length, start + value.length + 16)))
    return null;
  return how === 'cell' && next !== ',' && next !== '\n' && next !== '' ? null : value;
}

function runAt({ text, bareEnd }: Searched, start: number): string | null {
  const end = Math.min(bareEnd(start), start + LONGEST_BARE);
  return end > start ? text.slice(start, end) : null;
}

const CODE = /^(?:[a-z_$][\w$]*\.)+[a-z_$][\w$]*$|^(?:\.{0,2}\/|~|[a-z][\w+.-]{1,20}:\/\/)|^(?:0x|#)[\da-f]{6,40}$/i;

/** Of GitHub Actions: words and a digest. */
const CACHE_KEY = /^(?:[\w.]{1,24}[-|]){2,12}[\dA-Fa-f]{8,64}$/;

function isSecret(value: string, kind: Kind, how: How, name = '', isWord = false): boolean {
  const text = value.slice(0, 100);
  if (text.length < (kind === 'password' ? 6 : 8) || isPlaceholder(text) || CODE.test(text)) return false;
  if (kind === 'secret' && /cred\w{0,9}$/i.test(name) && /^[\w.@-]{1,64}:[^\s:/\d]*\d[^\s:/]*$/.test(text)) return true;
  const hasDigit = /\d/.test(text);
  if (isWord) return true;
  if (kind === 'password') return isPassword(text, how, name);
  if (!/[A-Za-z]/.test(text)) return false;
  if (kind === 'generic') return text.length >= 16 && hasDigit && randomness(text) >= 0.5 && !CACHE_KEY.test(text);
  if (text.length >= 16 && isBasicPair(text)) return true;
  const enough = text.length >= 16 ? 0.35 : 0.45;
  if (how === 'quoted' || how === 'element')
    return hasDigit ? randomness(text) >= enough : text.length >= 20 && randomness(text) >= 0.45;
  const least = how === 'setting' || how === 'variable' ? 10 : 16;
  return text.length >= least && hasDigit && randomness(text) >= enough;
}

function isPassword(text: string, how: How, name: string): boolean {
  const hasDigit = /\d/.test(text);
  const hasLetter = /[A-Za-z]/.test(text);
  const hasSign = /[!@#$%^&*+=?~]/.test(text);
  if (how !== 'spaced' && isRandomWord(text)) return true;
  if (how === 'quoted' || how === 'element') return hasLetter && (hasDigit || (hasSign && text.length >= 8));
  if (how === 'setting') return hasDigit && hasLetter;
  if (how === 'variable')
    return (hasLetter && hasDigit) || (/^[A-Z][A-Z_0-9]*$/.test(name) && text.length >= 10 && !/[.]/.test(text));
  const isMixed = /[a-z]/.test(text) && /[A-Z]/.test(text);
  const isSaid = how === 'said' && /^[a-z]{4,}\d{1,4}$/.test(text);
  return text.length >= 8 && hasDigit && hasLetter && (isMixed || hasSign || isSaid || randomness(text) >= 0.5);
}
