import { looksSecret, NAME } from './assignments.ts';
import type { Span } from './span.ts';

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
const RULES: readonly RegExp[] = [
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
  return RULES.flatMap((rule) => {
    if (text.search(rule) < 0) return [];
    return [...text.matchAll(rule)].flatMap((match): Span[] => {
      const value = (match[1] ?? '').replace(/[.:!?]+$/, '');
      const start = match.index + match[0].length - (match[1] ?? '').length;
      return looksSecret(value) && /\d/.test(value) ? [{ start, end: start + value.length, type: 'secret' }] : [];
    });
  });
}
