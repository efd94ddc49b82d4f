import type { Steps } from '../common/async.ts';
import { trimEnd } from '../common/text.ts';
import { isSecretMember } from './assignments.ts';
import { findMatches, getEnd, getMatches, isRandomKey, type Span } from './patterns.ts';
import { isPlaceholder, isRandomWord, randomness } from './randomness.ts';

/** Secrets known by their place in a header, a command, a table or a phrase. */
export function* findPlaced(text: string): Steps<Span[]> {
  return [
    ...(yield* findHeaders(text)),
    ...(yield* findCommands(text)),
    ...(yield* findHookPaths(text)),
    ...(yield* findCells(text)),
    ...(yield* findPhrases(text)),
    ...(yield* findCodes(text)),
  ];
}

const COOKIES = /(?:cookie\\?["']?\s{0,2}[:=,]|\s-(?:b|-cookie)\s)\s{0,4}\\{0,3}["']?([^\n"'\\]{1,4096})/gi;
const COOKIE = /(?:^|[;\s])[^=;\s]{1,64}=([^;\s]{12,})/g;
const AUTHORIZATION =
  /authorization\\?["']?\s{0,4}(?:[:=,]\s{0,4}\\?["'\x60]?(?:[\w-]{2,24}\s{1,4})?|(?:bearer|basic|token|apikey)\s{1,4})?([\w+/=~.-]{8,})/gi;

function* findHeaders(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  for (const match of yield* getMatches(COOKIES, text)) {
    yield;
    const pairs = match[1] ?? '';
    const at = getEnd(match) - pairs.length;
    for (const pair of pairs.matchAll(COOKIE)) {
      const value = pair[1] ?? '';
      if (randomness(value) < 0.45 || !/\d/.test(value)) continue;
      const start = at + pair.index + pair[0].length - value.length;
      spans.push({ start, end: start + value.length, type: 'cookie' });
    }
  }
  const headers = yield* findMatches([AUTHORIZATION], text, ({ 1: value = '' }, end) => {
    const isSecret = randomness(value) >= 0.4 && /\d/.test(value) && !isPlaceholder(value);
    if (!isSecret || '([{$'.includes(text[end] ?? ' ')) return null;
    return { start: end - value.length, end, type: 'auth-header' };
  });
  return [...spans, ...headers];
}

const VALUE = String.raw`([^\s"'\x60\\<>[\]{}(),;|&]{6,})`;
const QUOTE = String.raw`\\?["']?`;

/** The value is the last group and ends the match. Literal first characters make text without them cheap. */
const COMMANDS: readonly RegExp[] = [
  // curl -u name:…, curl -uname:…
  new RegExp(String.raw`\s-(?:u[ =]?|-user[ =]|-proxy-user[ =])${QUOTE}[\w.@%+-]{1,64}:${VALUE}`, 'g'),
  // mysql -p…, 7z -p…
  new RegExp(String.raw`(?:sshpass|mysql\w{0,8}|mariadb|7za?)\s(?:[^\n]{0,100}?\s)?-p\s?${QUOTE}${VALUE}`, 'g'),
  // docker login -p …, redis-cli -a …, zip -P …, ssh-keygen -N …, ldapsearch -w …
  new RegExp(
    String.raw`(?:psexec(?:\.exe)?|login|mongo\w{0,8}|redis-cli|zip|ipmitool|ssh-keygen|ldap\w{3,10}|snmp\w{2,10}|openssl enc)\s(?:[^\n]{0,100}?\s)?-[paPNwAk]\s{1,4}${QUOTE}${VALUE}`,
    'gi',
  ),
  // machine … login … password …
  new RegExp(String.raw`login\s[^\n]{0,100}?\spassword\s{1,4}${QUOTE}${VALUE}`, 'g'),
  // net use Z: share …, net user name … /add
  /net\suser?(?:\s{1,4}[^\s/]{1,99}){1,2}\s{1,4}([^\s"'\x60<>/]{6,64})(?=\s{1,4}\/)/gi,
  // smbclient -U name%…
  new RegExp(String.raw`\s-U\s{0,2}${QUOTE}[\w\\/.@-]{1,64}%${VALUE}`, 'g'),
  // ConvertTo-SecureString "…"
  new RegExp(
    String.raw`SecureString(?:\s{1,4}(?:--?(?:String|value)\s{1,4})?|${QUOTE},\s{0,12}${QUOTE}Value${QUOTE}:\s{0,4})${QUOTE}${VALUE}`,
    'gi',
  ),
  // NetworkCredential("name", "…"), DirectoryEntry("…", "name", "…"), new PDO('…', 'name', '…')
  /(?:Credential|DirectoryEntry|WiFi\.begin|mysqli(?:_connect)?|PDO|DBI->connect|getConnection)\((?:\s{0,8}["'][^"'\n]{1,100}["']\s{0,4},){1,2}\s{0,8}["']([^"'\s]{6,})/g,
  // cookies.txt, a QR code of a network, a network of Windows
  new RegExp(
    String.raw`(?:\t(?:TRUE|FALSE)\t\d{1,12}\t[^\t\n]{1,100}\t|WIFI:[^\s]{0,99}?;P:|Key Content\s{1,20}: |<keyMaterial>)${VALUE}`,
    'g',
  ),
  // kubectl create secret --from-literal=name=…, gh secret set NAME --body …
  new RegExp(
    String.raw`(?:--from-literal[ =][\w.-]{1,64}=|secret set\s[\w -]{1,64}(?:--body|-b)[ =])${QUOTE}${VALUE}`,
    'g',
  ),
  // echo … > ….key
  /(?:echo|printf)\s(?:-\w\s)?\\?["']?([^\s"'`\\<>[\]{}(),;|&]{6,99})(?=\\?["']?\s?>\s?[\w./-]{0,40}(?:pass|secret|token|\.key))/g,
  // Terraform's state
  /random_password\\?"[^}]{0,400}?"result\\?":\s{0,2}\\?"([^"\s\\]{6,})/g,
];

/** The same where whatever stands there is a password. */
const CERTAIN_COMMANDS: readonly RegExp[] = [
  // echo … | sudo -S, | docker login --password-stdin, | chpasswd
  /(?:echo|printf)\s(?:-\w\s)?\\?["']?([^\s"'`\\<>[\]{}(),;|&]{6,99})(?=\\?["']?\s?\|[^\n|]{0,99}(?:sudo -S|-stdin|chpasswd|secrets create|wg pub))/g,
  // name:…@tcp(host), host:5432:database:name:… of .pgpass
  /:([^\s"'`<>@:/[\]]{6,200})(?=@(?:tcp|unix)\()/g,
  /:(?:54\d\d|6432|\*):[^\s:]{1,64}:[^\s:]{1,64}:([^\s"'`\\:]{6,})/g,
  // sshpass -p …, mysql -p… and 7z -p…, where a word after a space is a database
  new RegExp(String.raw`(?:sshpass\s-p\s?|(?:mysql\w{0,8}|mariadb|7za?)\s(?:[^\n]{0,100}?\s)?-p)${QUOTE}${VALUE}`, 'g'),
  // docker login -p …, redis-cli -a …, zip -P …, rclone obscure …, gpg --passphrase …, openssl -pass pass:…
  new RegExp(
    String.raw`(?:docker login\s[^\n]{0,99}?-p\s|redis-cli\s(?:[^\n]{0,100}?\s)?-a\s|zip\s(?:[^\n]{0,100}?\s)?-P\s|rclone obscure\s|--passphrase[ =]|-pass(?:in|out)?\spass:)\s{0,3}${QUOTE}${VALUE}`,
    'g',
  ),
  // sqlplus name/…@host, wpa_passphrase network …, keytool -storepass …, the settings of Redis, of a Java program
  /(?:thin:|sqlplus\s)[\w.-]{1,64}\/([^@\s"'\\<>]{6,99})(?=@)/g,
  new RegExp(
    String.raw`(?:wpa_passphrase\s\S{1,64}\s|nmcli\s[^\n]{1,99}\spassword\s|-(?:store|key)pass\s|-D[\w.]{1,64}[pP]assword=|\/user:\S{1,64}\s|^\s{0,8}(?:requirepass|masterauth)\s)${QUOTE}${VALUE}`,
    'gm',
  ),
  // An app password of Google
  /(?:PASS\w{0,8}=|[aA]pp[ -]?[pP]assword["']?\s?(?:[:=]|is)\s{0,3})["']?([a-z]{4}(?: [a-z]{4}){3})(?![\w ])/g,
  // htpasswd -b file name …
  new RegExp(String.raw`htpasswd\s{1,4}-\w{0,6}b\w{0,6}\s{1,4}\S{1,200}\s{1,4}\S{1,64}\s{1,4}${QUOTE}${VALUE}`, 'g'),
  // CREATE USER … IDENTIFIED BY '…', ALTER ROLE … PASSWORD '…'
  new RegExp(String.raw`identified\s{1,4}(?:with\s{1,4}[\w'"]{1,40}\s{1,4})?by\s{1,4}\\?["']${VALUE}`, 'gi'),
  new RegExp(String.raw`(?:alter|create|set)\s{1,4}(?:user|role|password)\s[^\n;]{1,99}[\s=]\s{0,4}\\?'${VALUE}`, 'gi'),
];

function* findCommands(text: string): Steps<Span[]> {
  const read = (isCertain: boolean) => (match: RegExpExecArray, end: number) => {
    const given = match[1] ?? '';
    const [value, start] = [trimEnd(given, '.:!?'), end - given.length];
    const isMixed = /\d/.test(value) && /[A-Za-z]/.test(value) && !/^[./~]/.test(value);
    const isSecret = (isCertain || isMixed || isRandomWord(value)) && !isPlaceholder(value);
    return isSecret ? { start, end: start + value.length, type: 'password' } : null;
  };
  const certain = yield* findMatches(CERTAIN_COMMANDS, text, read(true));
  return certain.concat(yield* findMatches(COMMANDS, text, read(false)));
}

const HOOK = /:\/\/[\w.-]{0,80}hook[\w.-]{0,80}\/|:\/\/[\w.-]{1,80}\/(?:[\w-]{1,20}\/){0,2}\w{0,8}hooks?\w{0,4}\//g;
const PATH_END = /[\s"'`<>\\)\]},;]/g;

/** The random end of a webhook's path. */
function findHookPaths(text: string): Steps<Span[]> {
  return findMatches([HOOK], text, (_match, from) => {
    const rest = text.slice(from, from + 1_024);
    const end = rest.search(PATH_END);
    const path = end === -1 ? rest : rest.slice(0, end);
    const first = path.split('/').find((part) => part.length >= 16 && randomness(part) >= 0.45);
    if (first === undefined || isPlaceholder(path)) return null;
    return { start: from + path.indexOf(first), end: from + path.length, type: 'webhook' };
  });
}

/** Cells below the heading of a secret, in tables of Markdown and of database clients. */
function* findCells(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  if (!text.includes(' | ')) return spans;
  let columns: readonly (string | null)[] | null = null;
  for (let at = 0; at < text.length; ) {
    yield;
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(at, Math.min(end, at + 2_000));
    const cells = line.includes(' | ') ? line.split('|') : [];
    if (cells.length < 2) {
      if (!/^[\s\d→|:+-]{0,200}$/.test(line)) columns = null;
    } else if (columns === null) {
      columns = cells.map((cell) => (/^[\w -]{2,40}$/.test(cell.trim()) ? cell.trim().replace(/^\d{1,6}→/, '') : null));
    } else {
      let start = at;
      for (const [i, cell] of cells.entries()) {
        const name = columns[i] ?? '';
        const value = cell.trim();
        if (name !== '' && !/\s/.test(value) && isSecretMember(name.replace(/\s/g, '_'), value)) {
          const from = start + cell.indexOf(value);
          spans.push({ start: from, end: from + value.length, type: 'secret' });
        }
        start += cell.length + 1;
      }
    }
    at = end + 1;
  }
  return spans;
}

const PHRASE = '(?:[a-z]{3,8} ){11,23}[a-z]{3,8}';
const PHRASES: readonly RegExp[] = [
  new RegExp(`^(?:[ \\t]{0,16}\\d{1,6}→)?(${PHRASE})$`, 'gm'),
  new RegExp(`(?:seed|mnemonic|recovery|phrase)\\W{1,6}(${PHRASE})`, 'g'),
];
/** Words of sentences that no list of seed words has. */
const PROSE =
  /\b(?:the|and|for|are|was|with|not|but|from|has|its|than|when|where|which|does|been|were|your|our|their|each)\b/;

/** Twelve or more words from which a wallet's keys are made. */
function findPhrases(text: string): Steps<Span[]> {
  return findMatches(PHRASES, text, ({ 1: phrase = '' }, end) => {
    if (phrase.split(' ').length % 3 !== 0 || PROSE.test(phrase)) return null;
    return { start: end - phrase.length, end, type: 'seed-phrase' };
  });
}

const CODE = '[a-z0-9]{4,5}-[a-z0-9]{4,5}';
const NEXT = String.raw`[\s"',|](?:[\s"',*•|-]|\d{1,6}[.)→\t]){0,20}${CODE}`;
/** From the first dash, which is rare, back to the code that it is in. */
const CODES = new RegExp(String.raw`-(?<=(?<![\w-])([a-z0-9]{4,5})-)[a-z0-9]{4,5}(?:${NEXT}){2,24}(?![\w-])`, 'g');

/** Three or more recovery codes without a heading. */
function findCodes(text: string): Steps<Span[]> {
  return findMatches([CODES], text, ({ 0: rest, 1: first = '', index }, end) => {
    const parts = (first + rest).match(/[a-z0-9]{4,}/g) ?? [];
    const isRandom = isRandomKey(first + rest) && new Set(parts).size === parts.length;
    return isRandom ? { start: index - first.length, end, type: 'recovery-codes' } : null;
  });
}
