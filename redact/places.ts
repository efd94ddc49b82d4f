import type { Steps } from '../common/async.ts';
import { trimEnd } from '../common/text.ts';
import { isSecretMember, NO_PASSWORD } from './assignments.ts';
import { findMatches, getEnd, getMatches, isRandomKey, matchFrom, type Span } from './patterns.ts';
import { isGenerated, isPlaceholder, randomness } from './randomness.ts';

const COOKIES = /(?:cookie\\?["']?\s{0,2}[:=,]|\s-(?:b|-cookie)\s)\s{0,4}\\{0,3}["']?([^\n"'\\]{1,4096})/gi;
const COOKIE = /(?:^|[;\s])[^=;\s]{1,64}=([^;\s]{8,})/g;
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

/** In quotes it may have signs that end a word of a shell. */
const VALUE = String.raw`((?<=["'](?:[\w.@%+-]{1,64}[:%])?)[^\s"'\x60\\]{6,200}(?=\\?["'])|[^\s"'\x60\\<>[\]{}(),;|&]{6,})`;
const QUOTE = String.raw`\\?["']?`;
const OPTIONS = String.raw`\s(?:[^\n]{0,100}?\s)?`;

/** What is right before a password. Literal first characters make text without them cheap. */
const BEFORE: readonly string[] = [
  // curl -u name:…, curl -uname:…, smbclient -U name%…
  String.raw`\s-(?:u[ =]?|-user[ =]|-proxy-user[ =])${QUOTE}[\w.@%+-]{1,64}:|\s-U\s{0,2}${QUOTE}[\w\\/.@-]{1,64}%`,
  // docker login -p …, redis-cli -a …, zip -P …, ssh-keygen -N …, ldapsearch -w …
  String.raw`(?:psexec(?:\.exe)?|login|mongo\w{0,8}|mosquitto_\w{3}|user(?:add|mod)|add-\w{1,20}-password|redis-cli|zip|ipmitool|ssh-keygen|ldap\w{3,10}|snmp\w{2,10}|openssl enc)${OPTIONS}-[paPNwAk]\s{1,4}`,
  // sshpass -p …, mysql -p… and 7z -p…, where a word after a space is a database
  String.raw`sshpass\s-p\s?|(?:mysql\w{0,8}|mariadb|7za?|rar)${OPTIONS}-p|freerdp${OPTIONS}\/p:`,
  String.raw`rclone obscure\s|encrypt_string\s|--passphrase[ =]\s{0,3}|-pass(?:in|out)?\spass:|-(?:store|key)pass\s`,
  // sudo -S <<< …
  String.raw`(?:sudo -S|-stdin|-token|passwd -f|pass insert\s[^\n]{0,99})\s?<<<\s`,
  // machine … login … password …
  String.raw`(?:machine\s{1,4}\S{1,99}\s{1,4}(?:login\s{1,4}\S{1,64}\s{1,4})?|^\s{0,8}login\s{1,4}\S{1,64}\s{1,4})password\s{1,4}`,
  String.raw`SecureString(?:\s{1,4}(?:--?(?:String|value)\s{1,4})?|${QUOTE},\s{0,12}${QUOTE}[vV]alue${QUOTE}:\s{0,4})`,
  // cookies.txt, a QR code of a network, a network of Windows
  String.raw`\t(?:TRUE|FALSE)\t\d{1,12}\t[^\t\n]{1,100}\t|WIFI:[^\s]{0,99}?;P:|Key Content\s{1,20}: |<keyMaterial>`,
  // kubectl create secret --from-literal=name=…, gh secret set NAME --body …
  String.raw`--from-literal[ =][\w.-]{1,64}=|secret set\s[\w -]{1,64}(?:--body|-b)[ =]`,
  // The settings of Redis, of a Java program; net use … /user:name …
  String.raw`^\s{0,8}(?:requirepass|masterauth)\s|-D[\w.]{1,64}[pP]assword=|(?:wpa_passphrase|add_user|change_password)\s\S{1,64}\s|nmcli\s[^\n]{1,99}\spassword\s|\/user:\S{1,64}\s`,
  String.raw`htpasswd\s{1,4}-\w{0,6}b\w{0,6}\s{1,4}\S{1,200}\s{1,4}\S{1,64}\s{1,4}`,
  // CREATE USER … IDENTIFIED BY '…', ALTER ROLE … PASSWORD '…'
  String.raw`[iI](?:dentified|DENTIFIED)\s{1,4}(?:(?:with|WITH)\s{1,4}[\w'"]{1,40}\s{1,4})?(?:by|BY)\s{1,4}(?=\\?["'])`,
  String.raw`(?:alter|create|set|ALTER|CREATE|SET)\s{1,4}(?:user|role|password|USER|ROLE|PASSWORD)\s[^\n;]{1,99}[\s=]\s{0,4}(?=\\?')`,
];

/** The value is the last group and ends the match. */
const COMMANDS: readonly RegExp[] = [
  ...BEFORE.map((source) => new RegExp(`(?:${source})${QUOTE}${VALUE}`, 'gm')),
  // net use Z: share …, net user name … /add
  /net\suser?(?:\s{1,4}[^\s/]{1,99}){1,2}\s{1,4}([^\s"'\x60<>/]{6,64})(?=\s{1,4}\/)/gi,
  // NetworkCredential("name", "…"), new PDO('…', 'name', '…'), auth=('name', '…')
  /(?:Credential|DirectoryEntry|WiFi\.begin|mysqli(?:_connect)?|PDO|DBI->connect|getConnection|auth=)\((?:\s{0,8}["'][^"'\n]{1,100}["']\s{0,4},){1,2}\s{0,8}["']([^"'\s]{6,})/g,
  // echo … > ….key, echo … | sudo -S, | docker login --password-stdin, | chpasswd
  /(?:echo|printf)\s(?:-\w\s)?\\?["']?([^\s"'`\\<>[\]{}(),;|&]{6,99})(?=\\?["']?\s?(?:>\s?[\w./-]{0,40}(?:pass\w{0,8}|secrets?|token|\.key)(?:\.txt)?(?![\w.-])|\|[^\n|]{0,99}(?:sudo -S|-stdin|chpasswd|secrets create|wg pub)))/g,
  // Expect, Terraform's state
  /assword[^\n]{0,40}\n\s{0,20}(?:exp_)?send(?: --)? "([^"\s\\]{6,99})/g,
  /random_password\\?"[^}]{0,400}?"result\\?":\s{0,2}\\?"([^"\s\\]{6,})/g,
  // name:…@tcp(host), host:5432:database:name:… of .pgpass, sqlplus name/…@host
  /:([^\s"'`<>@:/[\]]{6,200})(?=@(?:tcp|unix)\()/g,
  /:(?:54\d\d|6432|\*):[^\s:]{1,64}:[^\s:]{1,64}:([^\s"'`\\:]{6,})/g,
  /(?:thin:|sqlplus\s)[\w.-]{1,64}\/([^@\s"'\\<>]{6,99})(?=@)/g,
  // An app password of Google
  /(?:PASS\w{0,8}=|[aA]pp[ -]?[pP]assword["']?\s?(?:[:=]|is)\s{0,3})["']?([a-z]{4}(?: [a-z]{4}){3})(?![\w ])/g,
];

function findCommands(text: string): Steps<Span[]> {
  return findMatches(COMMANDS, text, ({ 1: given = '' }, end) => {
    const [value, start] = [trimEnd(given, '.:!?'), end - given.length];
    if (isPlaceholder(value) || NO_PASSWORD.test(value) || (/^[./~:-]/.test(value) && !isGenerated(value))) return null;
    return { start, end: start + value.length, type: 'password' };
  });
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

const HEADING = /^(?:[ \t]{0,8}\d{1,6}[→\t])?[\w -]{1,40}([,\t])[\w -]{1,40}(?:\1[\w -]{1,40}){0,39}\r?$/;

/** Cells below the heading of a secret, in tables of Markdown and of database clients, in CSV, and between tabs. */
function* findCells(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  let columns: readonly (string | null)[] | null = null;
  let separator = '';
  for (let at = 0; at < text.length; ) {
    yield;
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(at, Math.min(end, at + 2_000));
    if (line.includes(' | ')) separator = '|';
    else separator = HEADING.exec(line)?.[1] ?? separator;
    const cells = separator !== '' && line.includes(separator) ? line.split(separator) : [];
    if (cells.length < 2) {
      if (!/^[\s\d→|:+-]{0,200}$/.test(line)) [columns, separator] = [null, ''];
    } else if (columns === null) {
      columns = cells.map((cell) => (/^[\w -]{2,40}$/.test(cell.trim()) ? cell.trim().replace(/^\d{1,6}→/, '') : null));
    } else {
      let start = at;
      for (const [i, cell] of cells.entries()) {
        const name = columns[i] ?? '';
        const value = cell.trim().replace(/^"(.*)"$/, '$1');
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

const INSERT = /\binto\s{1,4}[\w.\\"`[\]]{1,120}\s{0,4}\(([\w\s,\\"`[\]]{1,800})\)\s{0,8}values(?=\s{0,8}\()/gi;
const ROW = /\s{0,40},?\s{0,40}\(/y;
const SQL_VALUE = /(?:\s{0,40}[EeNn]?'((?:[^'\\]|''|\\.){0,300})'\s{0,40}|(?:[^,()']|\([^()]{0,100}\)){0,200})[,)]/y;

/** Strings in columns with the name of a secret: `INSERT INTO users (name, password) VALUES ('ann', '…'), …`. */
function* findInserted(text: string): Steps<Span[]> {
  const spans: Span[] = [];
  for (const insert of yield* getMatches(INSERT, text)) {
    const columns = (insert[1] ?? '').split(',').map((name) => name.replace(/\W/g, ''));
    let at = getEnd(insert);
    for (let row = matchFrom(ROW, text, at); row !== null; row = matchFrom(ROW, text, at)) {
      at = getEnd(row);
      for (const name of columns) {
        yield;
        const match = matchFrom(SQL_VALUE, text, at);
        if (match === null) break;
        at = getEnd(match);
        const value = match[1] ?? '';
        const start = match.index + match[0].indexOf("'") + 1;
        if (isSecretMember(name, value)) spans.push({ start, end: start + value.length, type: 'secret' });
      }
    }
  }
  return spans;
}

const PHRASE = '(?:[a-z]{3,8} ){11,23}[a-z]{3,8}';
const PHRASES: readonly RegExp[] = [
  new RegExp(`^(?:[ \\t]{0,16}\\d{1,6}→)?(${PHRASE})$`, 'gm'),
  new RegExp(`(?:seed|mnemonic|recovery|phrase)\\W{1,6}(${PHRASE})`, 'g'),
  // Numbered, as wallets show them.
  /(?<![^\s|])(1[.)]\s{1,4}[a-z]{3,8}(?:[\s|]{1,20}\d{1,2}[.)]\s{1,4}[a-z]{3,8}){11,23})(?![\w-]|[ \t]{1,4}\w)/g,
];
/** Words of sentences that no list of seed words has. */
const PROSE =
  /\b(?:the|and|for|are|was|with|not|but|from|has|its|than|when|where|which|does|been|were|your|our|their|each)\b/;

/** Twelve or more words from which a wallet's keys are made. */
function findPhrases(text: string): Steps<Span[]> {
  return findMatches(PHRASES, text, ({ 1: phrase = '' }, end) => {
    if ((phrase.match(/[a-z]+/g) ?? []).length % 3 !== 0 || PROSE.test(phrase)) return null;
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

/** Secrets known by their place in a header, a command, a table or a phrase. */
export const PLACED = [findHeaders, findCommands, findHookPaths, findCells, findInserted, findPhrases, findCodes];
