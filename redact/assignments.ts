import type { Steps } from '../common/async.ts';
import { trimEnd } from '../common/text.ts';
import { createRunEnd, getEnd, isBasicPair, isMemberKey, matchFrom, type Span } from './patterns.ts';
import { isGenerated, isPlaceholder, isRandomWord, randomness } from './randomness.ts';

/** How much a name says about its value: that it is a password, a secret, or only that it may be one. */
type Kind = 'password' | 'secret' | 'generic';

// A pre-shared key of a network only in `psk=` and with a quote.
const PASSWORD_WORDS = String.raw`pa[as]sw(?:or[dt]|d)|pass(?:phrase|code|ord(?:et)?)?|pwd|p/?w|(?<![A-Za-z\d])mdp|client[_-]?secret|psk(?=["']?=["']?\S|["']?\s{0,4}[=:]\s{0,4}["'])|kennwort|wachtwoord|senha|parola|heslo|hasło|lösenord(?:et)?|salasana|adgangskoden?|mot de passe|kata sandi`;
const FOREIGN_WORD =
  /(contraseña|şifre|пароль|密[码碼钥鑰]|口令|令牌|パスワード|トークン|패스워드|비밀번호|비번|암호|토큰|كلمة (?:ال)?(?:مرور|سر)|סיסמ[הא]|पासवर्ड|κωδικός|mật khẩu|รหัสผ่าน|jelszó)/gi;
const SECRET_WORDS = 'secret|token|credentials?|creds|api-schlüssel|crumb|wallet|mnemonic|samlresponse|code_?verifier';
const GENERIC_WORDS = 'key|auth|cookie|nonce|salt|seed|pepper|sig|signature|webhook|license|hmac';
const WORD = new RegExp(
  String.raw`(${PASSWORD_WORDS}|(?<![A-Za-z\d])pin)|(${SECRET_WORDS})|(?:${GENERIC_WORDS})`,
  'gi',
);

/** Words before `key` and `auth` with which the name is that of a secret. */
const SECRET_BEFORE =
  /(?:api|access|account|private|secret|signing|encryption|shared|preshared|master|app|admin|service|subscription|deploy|jwt|hmac|softlayer|sl|registry|_)[_. -]?$/i;
/** Names of values as random as keys, but public. */
const PUBLIC_BEFORE =
  /(?:public|publishable|pub|cache|foreign|primary|sort|partition|idempotency|next|page|continuation|sync|cursor|dedupe|row|object|hot|group|lock|route|query|config|unique|translation|message|event|cancel|csp|script|style)[_. -]?$/i;
const PUBLIC_AFTER =
  /(?:names?|types?|url|uri|files?|path|id(?:s|hex)?|uuid|fields?|labels?|endpoint|expir\w{0,10}|ttl|age|count|index|limit|max|min|length|len|size|format|regex|pattern|hash(?:e[dr]s?|ing)?|digest|sha\d{0,3}|header|prefix|suffix|policy|placeholder|messages?|errors?|hint|inputs?|form|store|alias|refs?|usage|version|kind|class|mode|codes?|info|text|title|status|state|provider|param|dir|scope|algorithm|alg|method|enabled|required|host|issuer|manager|service|validator|checksum|commit|revision|integrity|color|rotation)$/i;

/** What may follow the word in its name. A small letter would make it another word: passenger, keyboard. */
const TAIL = String.raw`(s?(?:(?:[A-Z0-9_]|[.-](?=\w))[\w.-]{0,24})?)`;
const CLOSE = String.raw`(?:\\{0,3}["'\x60]|[\])*]){0,3}`;
const TYPE = String.raw`(?:\s{0,2}:\s{0,2}&?(?:'static )?(?:str|[sS]tring)(?=\s)|\s[sS]tring(?=\s)|\[\d{0,6}\])?`;
const INDIRECT = String.raw`[\s,{]{1,12}["']?(?:[vV]alue|default)["']?\s{0,3}[:=]`;
const SIGN = String.raw`(?::-|:{1,3}=?|[?+.|&]{0,2}=>?|->|\|\||\?\?|[：는은是为為は]|%3[ADad]|<\/\w{1,20}>\s{0,24}<(?:string|value)>|${INDIRECT})(?:\*{2,3}(?=\s))?`;
const CALL = String.raw`(?:[A-Za-z_][\w.:!]{0,30}\(\s{0,4})?`;
const ABOUT = String.raw`(?: (?:for|of|to|on|in|für|von|zu[mr]?|d(?:e[rsl]?|ell[ao]|i|u|[ao]s?)|para|pour|voor|van|k|do|от|для|до|к)(?: [\wÀ-ӿ.@/'"-]{1,30}){1,6}?)?`;
const IS = '(?:is|are|was|ist|lautet|heißt|est|este|es|è|é|är|er|je|to|είναι|היא|है)';
/** Before a value among words. */
const OPEN = String.raw`((?:\\?["'\x60]|[“„‘«「『]\s?|\*\*)?)`;
const QUOTE = String.raw`(?:@|[bBrRuU]{1,2}(?=["']))?(\\{0,3}["'\x60]{1,3}|[“„‘«「『]\s?|\*\*(?=\w))`;
const AFTER_FLAG = String.raw`(?:(?<="--\S{1,40}\s{4})\s{1,28})?`;
/** A code quote before a word with a sign and a digit. */
const TICK = String.raw`\x60(?=[^\s\x60]{0,40}\d)(?=[^\s\x60]{0,40}[!#$%^&?~])`;
type Place = { readonly how: How; readonly start: number; readonly quote: string; readonly before: string };
type How = 'quoted' | 'element' | 'setting' | 'cell' | 'spaced' | 'said';

/** From the word to its value. The last group is the opening quote, empty where the value is bare. */
const SYNTAXES: readonly (readonly [How, string])[] = [
  ['quoted', String.raw`${TAIL}${CLOSE}${TYPE}\s{0,8}${SIGN}\s{0,8}${CALL}${QUOTE}`],
  ['quoted', String.raw`${TAIL}\\{0,3}["']\s{0,4},\s{0,4}${AFTER_FLAG}${QUOTE}`],
  ['quoted', String.raw`${TAIL}\(${QUOTE}`],
  ['element', String.raw`${TAIL}>\s{0,12}()`],
  ['setting', String.raw`${TAIL}${CLOSE}\s{0,8}${SIGN}\s{0,8}(?:[|>][+-]?\s{1,12})?()`],
  // A line of two columns.
  ['setting', String.raw`(?<=^[\W\d]{0,12}[\w.-]{0,40})${TAIL}:?(?: {2,40}|\t{1,4})(?=\S{6,300}\s{0,4}$)()`],
  ['cell', String.raw`${TAIL},()`],
  ['spaced', String.raw`${TAIL}[ \t]{1,4}([“„‘«「『]\s?|${TICK}|\\?["']?)`],
  ['said', String.raw`(s?)${ABOUT} {0,2}(?:: {0,4}| [-–—] {0,4}| ${IS}(?: now)?:? {1,4})${OPEN}`],
  ['said', String.raw`()\(()`],
];
const CONNECTORS = SYNTAXES.map(([how, source]) => ({ how, pattern: new RegExp(source, 'my') }));

const BARE = /[^\s"'`“”„«»「」。，\\<>,;&|(){}[\]]*/y;
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
  if (/^(?:proxy-)?authorization$|^x-[\w-]+(?:key|token|secret)$|^private-token$|^(?:set-)?cookie$/i.test(name))
    return value.length >= 4 && !isPlaceholder(value);
  if (/^(?:[dk]|d?[pq]|qi)$/.test(name)) return isMemberKey(value);
  for (let word = matchFrom(WORD, name, Math.max(0, name.length - 64)); word !== null; word = WORD.exec(name)) {
    const kind = kindOfName(word[0], name.slice(0, word.index).slice(-32), word[1], word[2]);
    const tail = name.slice(WORD.lastIndex);
    if (kind !== null && /^s?(?:[A-Z0-9_.-]|$)/.test(tail) && !PUBLIC_AFTER.test(tail))
      return isSecret(
        value,
        kind,
        'quoted',
        name,
        tail === '' && (kind === 'password' || /secret$/i.test(name)) && !NO_PASSWORD.test(value),
      );
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
    const value =
      findWhole(text, { how, start, quote, before: text.slice(0, from - name.length).slice(-130) }, kind) ??
      (quote === '' ? bareAt(searched, start, how) : findQuote(searched, start, quote));
    const isFlag = how === 'spaced' && /^-{1,2}[\w-]{0,40}$/.test(name);
    const context = isFlag ? 'setting' : quote === '' ? how : 'quoted';
    if (value === null) continue;
    const isWord = isAnyWord(text, { kind, how, tail: match[1] ?? '', from, fullName: name, start, value });
    if ((/\s/.test(value) && !isWord) || !isSecret(value, kind, context, name, isWord)) continue;
    const end = value.length < LONGEST_BARE ? start + value.length : bareEnd(start + value.length);
    return { start, end, type: kind === 'password' ? 'password' : 'secret' };
  }
  return null;
}

const USER =
  /(?:(?:user(?:[ _-]?(?:name|id))?|uid|login|account|e-?mail|ssid|host(?:name)?|server|database|dbname)\\{0,3}["']?(?:\s{0,4}[:=]\s{0,4}|>)|login\s|--user(?:name)?\s(?!and\s|or\s))\\{0,3}["']?([^\s"'<>;,&\\]{1,64})\\{0,3}["']?(?:<\/[\w-]{1,32}>)?(?:[^A-Za-z]|\\[nrt]){1,24}$/i;
export const NO_PASSWORD = new RegExp(
  String.raw`^\D{0,24}(?:${PASSWORD_WORDS})\D{0,24}$|^(?:str(?:ing)?|text|varchar|char|secret|required|optional|true|false|null|none|undefined|bool(?:ean)?|any|unknown)$|^(.)\1*$`,
  'i',
);

/** What is said about a password, or its type. */
const DESCRIPTION =
  /^[a-zà-ž]+(?:ed|en|ct|[aiu]t[ao]|ett[ao]|ect[ao]|[aií]d[ao]|[ai]ble|id|al|ing|ous|ive|less|ful|[td]e|ent|ri[aoe]|[id]re|lich|ig)$|^(?:wrong|weak|strong|short|long|empty|(?:un)?safe|(?:in)?secure|set|lost|gone|old|new|blank|fine|really|only|plain(?:text)?|public|unknown|random|falsch|leer|mandatory|necessary|enough)$/;

/** Names of errors and messages. */
const MESSAGE = /^(?:ERR(?:OR)?|INVALID|WRONG|MISSING|NO|BAD|FORGOT|RESET|CONFIRM|CHANGE|ENTER)_/;
/** `NAME=`, `NAME: ` of YAML, `"NAME": ` of JSON, `'NAME', ` of a call, `$env:NAME = ` of PowerShell; a header. */
const ENVIRONMENT =
  /^(?:[A-Z][A-Z\d_]*=\\?["']?|[A-Z\d]{1,32}_[A-Z\d_]{1,32}(?:\\?["']?[:,] {0,2}\\?["']?)|\$env:[A-Z\d_]+ = ["']?|(?:ENV|set(?:env| -\w{1,3}))[A-Z\d_]+ |(?:[Xx]-[\w-]{2,40}|PRIVATE-TOKEN)\\?["']?: {0,2}\\?["']?)$/;
const ENVIRONMENT_TAIL = /^(?:_?(?:KEY|BASE|PROD|DEV|TEST|STAGING|ROOT|ADMIN|USER|APP|DB|\d{1,2})){0,3}$/;

/**
 * Whether any word there is the secret: in the environment of a process, in `password=…` that stands alone, said in
 * quotes, or right after the name of a user or a server.
 */
function isAnyWord(
  text: string,
  /** `from` is the end of the name; `tail` is what follows the word in it. */
  at: Readonly<Record<'fullName' | 'tail' | 'value', string> & { kind: Kind; how: How; from: number; start: number }>,
): boolean {
  const { kind, how, tail, fullName, start, value } = at;
  const nameAt = at.from - fullName.length;
  const [name, before] = [text.slice(nameAt, start), text.slice(Math.max(0, nameAt - 160), nameAt)];
  const next = text.charAt(start + value.length);
  if (/^psk/i.test(name)) return value.length >= 8;
  if (kind === 'generic' || NO_PASSWORD.test(value) || MESSAGE.test(fullName)) return false;
  const shell = /(?:\$env:|(?:^|\s)(?:ENV|setenv|set -\w{1,3}) )$/.exec(before)?.[0].trim() ?? '';
  if (ENVIRONMENT.test(shell + name) && ENVIRONMENT_TAIL.test(tail)) {
    const isMessage = (/[:,] /.test(name) && /^[A-Z]/.test(value)) || (/, /.test(name) && /\s/.test(value));
    return /^\w/.test(value) && !isMessage && (/^[\s;&|"'\\]?$/.test(next) || /["'\\]$/.test(name));
  }
  const isSecretName = /secret$/i.test(fullName);
  if ((kind !== 'password' && !isSecretName) || (isSecretName && /secret/i.test(value))) return false;
  if (how === 'element' && tail === '') return true;
  const user = USER.exec(before)?.[1];
  if (user === value) return false;
  if (tail === '' && !/^[Pp]ass$|[a-z]pass$/.test(fullName)) {
    const [sign, after] = [name.slice(fullName.length), text.slice(start + value.length).slice(0, 4)];
    if (how === 'said' && SAID_QUOTE.test(sign)) return true;
    if (LOOKS_CHOSEN.test(value) && isWordValue({ how, fullName, value, before, sign, after })) return true;
  }
  const isCode = /[,()]/.test(next) && [before, name].some((part) => /\s["']?$/.test(part));
  return user !== undefined && !isCode;
}

/** A letter, and no sign that code has between words. */
const LOOKS_CHOSEN = /^(?!-)(?=.*[A-Za-zÀ-ž])[\w.@!#$%^&*+=?~À-ž-]+$/;
const VERB = / (?!to)[a-zèéäß]+:? {1,4}/.source;
const [SAID, SAID_QUOTE] = [new RegExp(`${VERB}$`), new RegExp(`${VERB}[^\\s\\w]+\\s?$`)];
const QUOTED_SIGN = /[:=>|?(：是为為は는은]\s{0,8}[^\s\w]{1,6}\s?$/;
/** Also behind the file and the number of a line, as `grep` prints them. */
const LINE_START = /(?:^|\n)(?:[\w./-]{1,99}[:-]\d{1,6}[:-])?[\s\d→+>*|-]{0,24}(?:export )?$/;

/** A word that only the line or a space ends, as in files of settings; `start` is that of the value. */
const WHOLE = /[^\s"'`$/]\S{7,300}(?=[ \t]{0,8}(?:\r?\n|$))/y;
const IN_CODE = /["'`]|\$[{(]|=>|[&;,]\w+=|^[A-Za-z]:\\/;

function findWhole(text: string, { how, start, quote, before }: Place, kind: Kind): string | null {
  if (quote !== '' || !(how === 'said' || (how === 'setting' && LINE_START.test(before)))) return null;
  const word = matchFrom(WHOLE, text, start)?.[0] ?? '';
  return randomness(word) >= 0.5 && !IN_CODE.test(word) && isSecret(word, kind, how) ? word : null;
}

/** Whether a word is the value in quotes after a sign, of a flag, said at the end of a clause, or alone on a line. */
function isWordValue(at: Record<'fullName' | 'value' | 'before' | 'sign' | 'after', string> & { how: How }): boolean {
  const { how, fullName, value, before, sign, after } = at;
  if (how === 'quoted') return QUOTED_SIGN.test(sign);
  if (how === 'spaced' && sign === ' ')
    return /^-{1,2}[\w-]+$/.test(fullName) && /(?<!\b(?:and|or|the|a|with|pass|use|using|via)) $/i.test(before);
  if (how === 'spaced') return /[a-z]P\w{3,9}$/.test(fullName) && /^ ["']$/.test(sign);
  if (sign === '=' && /^(?:\s|$|,\w)/.test(after) && /(?:^|\s)$/.test(before)) return true;
  if (DESCRIPTION.test(value) || /^secret$/i.test(fullName)) return false;
  if (how === 'said' && SAID.test(sign)) return /^[.,;!?]*(?:\n|$)|^[.,;!]+\s/.test(after);
  const isAssigned = /^(?:\**\s*:\**\s|：)/.test(sign) || (sign === ' = ' && !/^(?:self|this)\./.test(fullName));
  const isLabel = !/^[A-Z]/.test(value) || !/^[a-z]/.test(fullName);
  return (
    isAssigned &&
    isLabel &&
    /^(?:\r?\n|[，。]|[ \t]{1,2}#[ \t]|$)/.test(after) &&
    (LINE_START.test(before) || sign === '：')
  );
}

/** Not `\\"` in `"…"`, nor `''` in `'…'`. */
const CLOSING: Readonly<Record<string, RegExp>> = { '"': /(?<!(?<!\\)\\)"/, "'": /(?<!'|(?<!\\)\\)'(?!')|^'/ };

function findQuote(searched: Searched, start: number, quote: string): string | null {
  const rest = searched.text.slice(start, start + MAX_VALUE);
  const plain = quote.search(/["'`*]/);
  const closing = plain === -1 ? /\s?[”“’»」』]/ : plain === 0 ? CLOSING[quote.charAt(0)] : undefined;
  const end = closing === undefined ? rest.indexOf(quote.slice(0, plain + 1)) : rest.search(closing);
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
  if (kind === 'password' && how !== 'spaced' && /^\d{4,12}$/.test(text)) return !/pass$/i.test(name);
  if (/(?:^|[^a-z])pin$/i.test(name)) return false;
  if (text.length < (kind === 'password' ? 6 : 8) || isPlaceholder(text)) return false;
  if (CODE.test(text) && !isGenerated(text)) return false;
  if (kind === 'secret' && /cred\w{0,9}$/i.test(name) && /^[\w.@-]{1,64}:[^\s:/\d]*\d[^\s:/]*$/.test(text)) return true;
  const hasDigit = /\d/.test(text);
  if (isWord) return true;
  if (kind === 'password') return isPassword(text, how);
  if (!/[A-Za-z]/.test(text)) return false;
  if (kind === 'generic') return text.length >= 16 && hasDigit && randomness(text) >= 0.5 && !CACHE_KEY.test(text);
  if (text.length >= 16 && isBasicPair(text)) return true;
  const enough = text.length >= 16 ? 0.35 : 0.45;
  if (how === 'quoted' || how === 'element')
    return hasDigit ? randomness(text) >= enough : text.length >= 20 && randomness(text) >= 0.45;
  const least = how === 'setting' ? 10 : 16;
  return text.length >= least && hasDigit && randomness(text) >= enough;
}

function isPassword(text: string, how: How): boolean {
  const hasDigit = /\d/.test(text);
  const hasLetter = /[A-Za-zÀ-ӿ]/.test(text);
  const hasSign = /[!@#$%^&*+=?~]/.test(text);
  if (how !== 'spaced' && isRandomWord(text)) return true;
  if (how === 'quoted' || how === 'element') return hasLetter && (hasDigit || (hasSign && text.length >= 8));
  if (how === 'setting') return hasDigit && hasLetter;
  const isMixed = /[a-z]/.test(text) && /[A-Z]/.test(text);
  return text.length >= 8 && hasDigit && hasLetter && (isMixed || hasSign || randomness(text) >= 0.5);
}
