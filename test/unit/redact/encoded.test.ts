import { createHash, generateKeyPairSync } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../../redact/index.ts';

const { text: redact, json } = createRedactor({ markKey: Buffer.alloc(32, 7) });
const MARK = /\[REDACTED:[a-z-]+:[0-9a-f]{8}\]/g;

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const encrypted = { ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'x' };
const spki = { type: 'spki', format: 'pem' } as const;
const RSA = { modulusLength: 2_048, publicKeyEncoding: spki } as const;
const KEYS = {
  rsa: generateKeyPairSync('rsa', { ...RSA, privateKeyEncoding: { type: 'pkcs1', format: 'pem' } }),
  pkcs8: generateKeyPairSync('rsa', { ...RSA, privateKeyEncoding: pkcs8 }),
  encrypted: generateKeyPairSync('rsa', { ...RSA, privateKeyEncoding: encrypted }),
  curve: generateKeyPairSync('ec', {
    namedCurve: 'P-384',
    publicKeyEncoding: spki,
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
  }),
};

const eachLine = (write: (line: string, at: number) => string) => (text: string) =>
  text.split('\n').map(write).join('\n');

/** Ways in which tools print a file. */
const WAYS: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'with line numbers': eachLine((line, at) => `${String(at + 9).padStart(6)}→${line}`),
  'as cat -n': eachLine((line, at) => `${String(at + 9).padStart(6)}\t${line}`),
  'as grep -n of files': eachLine((line, at) => `tls/server.key:${at + 9}:${line}`),
  'as a log': eachLine((line, at) => `2026-01-02T03:04:05.${1_234_567 + at}Z ${line}`),
  'as an added file': eachLine((line) => `+${line}`),
  'as a removed file': eachLine((line) => `-${line}`),
  'as a colored diff': eachLine((line) => `\u001b[32m+\u001b[m\u001b[32m${line}\u001b[m`),
  indented: eachLine((line) => `      ${line}`),
  'in a string': (text) => text.replaceAll('\n', '\\n'),
  'in a string of a string': (text) => text.replaceAll('\n', '\\\\n'),
  'in strings of code': eachLine((line) => `  '${line}\\n' +`),
  'in an array': eachLine((line) => `  "${line}",`),
  'with carriage returns': (text) => text.replaceAll('\n', '\r\n'),
  'in a URL': encodeURIComponent,
};

const CUTS: Readonly<Record<string, (text: string) => string>> = {
  'without its first line': (text) => text.split('\n').slice(1).join('\n'),
  'of which the last five lines are left': (text) => text.split('\n').slice(-5).join('\n'),
  'of which the last characters are left': (text) => text.slice(-250),
  'of which the first four lines are left': (text) => text.split('\n').slice(0, 4).join('\n'),
  'of which the middle is left': (text) => text.split('\n').slice(2, -2).join('\n'),
};

/** Eight characters in a row of the body of a key that are left. */
function leftOf(key: string, text: string): string[] {
  const lines = key.split('\n').filter((line) => line.length >= 8 && !line.includes('-'));
  return lines.filter((line) => text.includes(line.slice(0, 8)) || text.includes(line.slice(-8)));
}

describe('a private key', () => {
  const ways = Object.entries(WAYS);
  for (const [cutName, cut] of Object.entries(CUTS)) {
    it.each(ways)(`${cutName} is found %s`, (_, write) => {
      for (const { privateKey } of Object.values(KEYS)) {
        const part = cut(privateKey.trim());
        const shown = `the key was:\n${write(part)}`;
        const once = redact(shown);
        expect(leftOf(part, decodeURIComponent(once))).toEqual([]);
        expect(once).toMatch(/^the key was:\n/);
        expect(once.split('\n').length).toBe(shown.split('\n').length);
        expect(redact(once)).toBe(once);
        expect(leftOf(part, json(JSON.stringify([{ type: 'text', text: shown }])))).toEqual([]);
      }
    });
  }

  it('in base64, cut or in lines, is found', () => {
    for (const { privateKey } of Object.values(KEYS)) {
      const base64 = Buffer.from(privateKey).toString('base64');
      for (const shown of [base64, base64.replace(/.{76}/g, '$&\n'), base64.slice(0, 400)])
        expect(redact(`  tls.key: ${shown}`)).toMatch(/^ {2}tls\.key: \[REDACTED:[a-z-]+:[0-9a-f]{8}\]\n*$/);
    }
  });
});

describe('what is public', () => {
  const certificates = rootCertificates.slice(0, 60);

  const ways = Object.entries(WAYS).filter(([way]) => !['as a colored diff', 'in a URL'].includes(way));

  it.each(ways)('a certificate stays %s, whole and cut', (_, write) => {
    for (const certificate of certificates) {
      const lines = certificate.trim().split('\n');
      for (const part of [lines, lines.slice(4), lines.slice(0, 9), lines.slice(1, 9)]) {
        const shown = write(part.join('\n'));
        expect(redact(shown)).toBe(shown);
      }
    }
  });

  it.each(['ghp_', 'github_pat_', 'sk-ant-api03-'])('but no token %s… next to a part of a certificate', (prefix) => {
    const token = `${prefix}a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2`;
    for (const certificate of certificates.slice(0, 9)) {
      const lines = certificate.trim().split('\n');
      const [head, tail] = [lines.slice(0, 3).join('\n'), lines.slice(-2).join('\n')];
      for (const shown of [`${head}\nTOKEN=${token}\n${tail}`, `${head}\n${token}`, `TOKEN=${token}\n${tail}`])
        expect(redact(shown)).not.toContain(token.slice(20, 40));
    }
  });

  it('public keys stay', () => {
    for (const { publicKey } of Object.values(KEYS)) expect(redact(publicKey)).toBe(publicKey);
  });

  it('base64 of a certificate stays', () => {
    for (const certificate of certificates) {
      const base64 = Buffer.from(certificate).toString('base64');
      expect(redact(`certificate-authority-data: ${base64}`)).toBe(`certificate-authority-data: ${base64}`);
    }
  });

  it.each([
    'key: Linux-node-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb',
    'Cache restored from key: node-cache-Linux-x64-npm-3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d',
    'Cache saved with key: v1-deps-3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea',
    '"key": "macOS-pods-9dd4e461268c8034f5c8564e155c67a6"',
  ])('a cache key of GitHub Actions stays: %s', (shown) => expect(redact(shown)).toBe(shown));

  it('base64 of text without secrets, and paths of one length, stay', () => {
    const base64 = Buffer.from('{"version":3,"sources":["index.ts"],"names":["password","token"]}').toString('base64');
    const paths = ['155-\t}', '156-', '157-\tif ok {'].map(
      (end) => `/home/dev/Work/shop/cli/cmd/e2e_test/agent_runner.go-${end}`,
    );
    for (const shown of [base64, paths.join('\n')]) expect(redact(shown)).toBe(shown);
  });
});

describe('encoded and escaped text', () => {
  const settings =
    'NODE_ENV=production\nDB_PASSWORD=Xk7pQ2zRm9v\nPORT=3000\nSTRIPE_KEY=sk_live_a1B2c3D4e5F6g7H8i9J0k1L2\n';
  const encode = (text: string): string => Buffer.from(text).toString('base64');

  it.each([
    ['a .env', encode(settings)],
    ['a .env in lines', encode(settings.repeat(4)).replace(/.{76}/g, '$&\n')],
    ['a .env in UTF-16', Buffer.from(settings, 'utf16le').toString('base64')],
    ['a connection string', encode('host=db user=app password=Xk7pQ2zRm9v')],
    ['a URL', encode('postgres://app:Xk7pQ2zRm9v@db/app')],
    [
      'a configuration of Docker, twice encoded',
      encode(`{"auths":{"ghcr.io":{"auth":"${encode('bot:Xk7pQ2zRm9v')}"}}}`),
    ],
  ])('base64 of %s is found', (_, base64) => {
    for (const shown of [`data:\n  config: ${base64}\nkind: Secret`, `+CONFIG=${base64}`]) {
      const once = redact(shown);
      expect(once).toMatch(MARK);
      for (const line of base64.split('\n').filter(({ length }) => length > 8)) expect(once).not.toContain(line);
      expect(redact(once)).toBe(once);
    }
  });

  it.each([
    '\u001b[32mDB_PASSWORD\u001b[0m=\u001b[33mXk7pQ2zRm9v\u001b[0m done',
    String.raw`\u001b[1mapi_key: \u001b[0mXk7pQ2zRm9vTb2Kp done`,
    'https://example.com/cb?state=postgres%3A%2F%2Fapp%3AXk7pQ2zRm9v%40db done',
    'q=%7B%22password%22%3A%22Xk7pQ2zRm9v%22%7D done',
    '{&quot;password&quot;:&quot;Xk7pQ2zRm9v&quot;} done',
    String.raw`"{\"a\":\"{\\\"password\\\":\\\"Xk7pQ2zRm9v\\\"}\"}" done`,
    String.raw`before\nPGPASSWORD=Xk7pQ2zRm9v psql\nafter done`,
    '-PGPASSWORD=Xk7pQ2zRm9v psql done',
    '+figd_Xk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Zn5Mv7 done',
  ])('%s', (shown) => {
    const once = redact(shown);
    expect(once).toMatch(MARK);
    expect(once).not.toMatch(/Xk7pQ2zRm9v/);
    expect(once).toMatch(/ done$/);
    expect(redact(once)).toBe(once);
  });
});

it('a block of very many lines is read', () => {
  const line = Buffer.alloc(57, 'the quick brown fox jumps ').toString('base64');
  expect(redact(`${line}\n`.repeat(200_000)).length).toBe(77 * 200_000);
});

it('a line with very many secrets is read', () => {
  expect(redact('curl -u bob:Xk7pQ2zRm9v '.repeat(150_000))).not.toContain('Xk7p');
});

describe('a password that is a word', () => {
  it.each([
    'machine github.com login bob password «correcthorse»',
    'username=bob,password=«correcthorse»,uid=1000',
    'Server=db;User Id=sa;Password=«correcthorse»;Encrypt=True',
    'host=db user=app password=«correcthorse» dbname=app',
    '{"username":"bob","password":"«correcthorse»"}',
    '{"username":"bob","password":"«correct horse battery»"}',
    'db:\n  user: app\n  password: «correcthorse»',
    '     8→  user: app\n     9→  password: «correcthorse»',
    '<username>bob</username><password>«correcthorse»</password>',
    'Username: bob\nPassword: «Correct-Horse»',
    'network={\n  ssid="home"\n  psk="«correct horse»"\n}',
    '[wifi-security]\nkey-mgmt=wpa-psk\npsk=«correcthorse»',
    'export BORG_PASSPHRASE="«correct horse battery»"',
    "RESTIC_PASSWORD='«marmalade»' restic backup /srv",
  ])('is found after the name of a user, or in quotes as a setting: %s', (marked) => {
    const [before, secret, after] = marked.split(/[«»]/) as [string, string, string];
    expect(redact(`${before}${secret}${after}`).replace(MARK, '#')).toBe(`${before}#${after}`);
  });

  it.each([
    'POSTGRES_PASSWORD: usyovrybiuwn',
    'spring.datasource.password=usyovrybiuwn',
    'const char* password = "usyovrybiuwn";',
    'curl -u admin:usyovrybiuwn https://example.com',
    'keytool -list -storepass usyovrybiuwn',
  ])('is found if no word has such letters: %s', (shown) => expect(redact(shown)).not.toContain('usyovrybiuwn'));

  it.each([
    "{ username: 'Username', password: 'Password' }",
    'type Login = { username: string; password: string };',
    'username: required\npassword: required',
    'connect(user=user, password=secretvalue, host=host)',
    'postgres: user=postgres password=postgres',
    'user: str\npassword: str',
    'pass --username and --password instead of the URL',
    "server.login = account = password = ''\nelse: it's empty",
    'the PSK identity hint was not known',
    'psk: DataView | NodeJS.TypedArray;',
    '"pass": "ARIA属性が許可されています"',
    'password: "aaaaaaaa"',
    'WRONG_PASSWORD="Wrong password, try again"',
    'PGPASSWORD="$PGPASSWORD" DB_PASSWORD="<the one of the database>"',
    'Messages.NO_PASSWORD="Nothing was entered"',
  ])('is none: %s', (shown) => expect(redact(shown)).toBe(shown));
});

describe('a key without a name', () => {
  const keys = Array.from({ length: 40 }, () => generateKeyPairSync('x25519'));
  const toBase64 = (key: string | undefined): string => Buffer.from(key ?? '', 'base64url').toString('base64');

  it.each([
    ['alone', (key: string) => key],
    ['below the command', (key: string) => `$ wg genkey | tee server.key\n${key}\n$ ls`],
    ['with line numbers', (key: string) => `     1→${key}\n     2→`],
    ['above its public key', (key: string) => `${key}\r\n${'A'.repeat(43)}=`],
  ])('is found if it is one of WireGuard: %s', (_, write) => {
    for (const { privateKey } of keys) {
      const key = toBase64(privateKey.export({ format: 'jwk' }).d);
      const [before, after] = write(key).split(key) as [string, string];
      expect(redact(write(key)).replace(MARK, '#')).toBe(`${before}#${after}`);
    }
  });

  it.each([
    ['public keys by their name', (key: string) => `PublicKey = ${key}\npeer: ${key}`],
    ['digests', (key: string) => `h1:${key}\nsha256-${key}\n${key}  app.tgz`],
    ['the end of a certificate', (key: string) => `${'MIIB'.repeat(16)}\n${key}`],
  ])('stays if it is none: %s', (_, write) => {
    for (let i = 0; i < 40; i += 1) {
      const digest = createHash('sha256').update(String(i)).digest();
      digest[0] = 8 * (i % 24);
      digest[31] = 64 + i;
      const shown = write(digest.toString('base64'));
      expect(redact(shown)).toBe(shown);
    }
  });

  it('is found as a private member of a JWK, in text and as a value of JSON, and its public members stay', () => {
    for (const { privateKey } of keys) {
      const jwk = { ...privateKey.export({ format: 'jwk' }), x: 'public'.repeat(7) };
      const input = [{ type: 'tool_use', input: { jwk, file: JSON.stringify(JSON.stringify(jwk)) } }];
      const text = json(JSON.stringify(input));
      for (const shown of [text, redact(JSON.stringify(jwk)), redact(`- kty: OKP\n  x: ${jwk.x}\n  d: ${jwk.d}\n`)]) {
        expect(shown).not.toContain(jwk.d?.slice(8, 24));
        expect(shown).toContain(jwk.x);
      }
    }
    const plain = JSON.stringify({
      d: 'M10 20v-6h4v6h5v-8h3L12 3 2 12h3v8z',
      k: 'user_profile_settings_v2',
      q: PAIRS[0],
    });
    expect(json(plain)).toBe(plain);
  });

  const HEX = createHash('sha512').update('codes').digest('hex');
  const PAIRS = Array.from({ length: 8 }, (_, i) => HEX.slice(i * 10, i * 10 + 10).replace(/.{5}/, '$&-'));

  it.each([
    ['lines', PAIRS.join('\n')],
    ['a list', `Keep them:\n${PAIRS.map((pair, i) => `     ${i}\t* ${pair}`).join('\n')}`],
    ['two columns', PAIRS.join('   ').replace(/(.{25}) {3}/g, '$1\n')],
    ['an array', JSON.stringify({ codes: PAIRS })],
    ['a string', JSON.stringify({ note: PAIRS.join('\n') })],
    ['four digits each', PAIRS.map((pair) => pair.replace(/.-./, '-')).join('\n')],
    ['below a heading', `Códigos de recuperación:\n\n${PAIRS.map((pair) => pair.replace('-', '')).join('\n')}`],
  ])('is found as recovery codes: %s', (_, shown) => {
    const once = redact(shown);
    for (const pair of PAIRS) expect(once).not.toContain(pair.slice(1, 4));
    expect(redact(once)).toBe(once);
  });

  it.each([
    'pool-a1b2\npool-a1b3\npool-c4d5',
    'host-0001\nhost-0002\nhost-0003',
    'read-only side-load blue-gray\nhead-less',
    'icon-16px\nicon-24px\nicon-32px',
    PAIRS.slice(0, 2).join('\n'),
    'web-7d9f8b6c5d-x2k4j\nweb-7d9f8b6c5d-zq8wn\nweb-7d9f8b6c5d-p5t7b',
  ])('is none: %s', (shown) => expect(redact(shown)).toBe(shown));
});

it('characters that are not seen hide no secret', () => {
  const token = `ghp_${createHash('sha256').update('token').digest('hex').slice(0, 36)}`;
  for (const hidden of ['\u200b', '\u00ad', '\u2060', '\u{e0041}', '\u202e']) {
    const shown = redact(`Use ${token.slice(0, 20)}${hidden}${token.slice(20)} and pass${hidden}word: k7Hqzz29Lm`);
    expect(shown.replace(MARK, '#')).toBe(`Use # and pass${hidden}word: #`);
  }
  const family = 'The 👩\u200d👧 page of the password, می\u200cخواهم.';
  expect(redact(family)).toBe(family);
});
