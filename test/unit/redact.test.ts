import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plantedSecrets } from '../../bench/redact/secrets.ts';
import { runAtOnce } from '../../common/async.ts';
import { createRedactor, redactLiterals, redactText } from '../../redact/index.ts';
import { RULES } from '../../redact/patterns.ts';
import { CODE_POINT } from '../helpers/code-point.ts';
import { UNITS } from '../helpers/text-readers.ts';

const redactor = createRedactor({ markKey: Buffer.alloc(32, 7) });
const MARK = /\[REDACTED:[a-z-]+:[0-9a-f]{8}\]/;
const PEM = '-----';

const letters = (alphabet: string, length: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length });
const ALNUM = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const prefixed = (prefix: string, length: number, alphabet = ALNUM): fc.Arbitrary<string> =>
  letters(alphabet, length).map((body) => prefix + body);
const base64url = (text: string): string => Buffer.from(text).toString('base64url');

/** What must not survive, and the text that carries it. */
const FORMATS: Readonly<Record<string, fc.Arbitrary<readonly [secret: string, text: string]>>> = {
  anthropic: prefixed('sk-ant-api03-', 95).map((s) => [s, s]),
  anthropicOauth: prefixed('sk-ant-oat01-', 95, `${ALNUM}-_`).map((s) => [s, s]),
  openai: prefixed('sk-proj-', 60).map((s) => [s, s]),
  openaiOld: prefixed('sk-', 48).map((s) => [s, s]),
  github: fc
    .constantFrom('ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_')
    .chain((p) => prefixed(p, 36))
    .map((s) => [s, s]),
  githubPat: fc.tuple(letters(ALNUM, 22), letters(ALNUM, 59)).map(([a, b]) => {
    const s = `github_pat_${a}_${b}`;
    return [s, s] as const;
  }),
  awsId: prefixed('AKIA', 16, UPPER).map((s) => [s, s]),
  awsSecret: fc.tuple(prefixed('AKIA', 16, UPPER), letters(`${ALNUM}/+`, 38)).map(([id, body]) => {
    const secret = `aZ${body}`;
    return [secret, `${id} ${secret}`] as const;
  }),
  gcp: prefixed('AIza', 35, `${ALNUM}-_`).map((s) => [s, s]),
  stripe: fc
    .constantFrom('sk_live_', 'rk_live_', 'sk_test_', 'whsec_')
    .chain((p) => prefixed(p, 32))
    .map((s) => [s, s]),
  slack: fc
    .constantFrom('xoxb-', 'xoxp-', 'xapp-1-')
    .chain((p) => prefixed(p, 40))
    .map((s) => [s, s]),
  slackWebhook: prefixed('T0123ABCD/B0123ABCD/', 24).map((s) => [s, `https://hooks.slack.com/services/${s}`]),
  npm: prefixed('npm_', 36).map((s) => [s, s]),
  jwt: fc.tuple(letters(ALNUM, 12), letters(ALNUM, 43)).map(([sub, sig]) => {
    const s = `${base64url('{"alg":"HS256"}')}.${base64url(`{"sub":"${sub}"}`)}.${sig}`;
    return [s, s] as const;
  }),
  bearer: letters(ALNUM, 40).map((s) => [`1${s}`, `Bearer 1${s}`]),
  gitlab: prefixed('glpat-', 20, `${ALNUM}_-`).map((s) => [s, s]),
  basic: letters(ALNUM, 12).map((p) => {
    const s = Buffer.from(`user:${p}`).toString('base64');
    return [s, `Authorization: Basic ${s}`] as const;
  }),
  others: fc
    .constantFrom('gsk_', 'ntn_', 'xai-', 'hvs.')
    .chain((p) => prefixed(p, 32))
    .map((s) => [s, s]),
  command: fc
    .tuple(
      fc.constantFrom(
        'deploy --api-key ',
        'docker login -u me -p ',
        'docker login --password ',
        'curl -sS -u admin:',
        'curl --user admin:',
        'mysql -u root -p',
        'machine db.example login me password ',
        'the password is ',
        'My API key is: ',
        'The password for the staging database is ',
        'The passphrase of deploy@host-2.example is: ',
        'Das Passwort für die Prüfdatenbank ist ',
        'Das Kennwort lautet ',
        'Le mot de passe est ',
        'La contraseña para el servidor es ',
        'Het wachtwoord van de server is ',
        '数据库密码是',
        'パスワードは',
        '비밀번호는 ',
      ),
      letters(ALNUM, 14),
    )
    .map(([command, body]) => [`q7${body}`, `${command}q7${body}`]),
  npmAuth: letters(ALNUM, 22).map((body) => [`a1${body}`, `_auth=a1${body}`]),
  pem: letters(ALNUM, 64).map((s) => [s, `${PEM}BEGIN RSA PRIVATE KEY${PEM}\n${s}\n${PEM}END RSA PRIVATE KEY${PEM}`]),
  connection: fc
    .tuple(
      fc.constantFrom('postgres', 'mysql', 'mongodb+srv', 'redis', 'amqp', 'https'),
      letters(`${ALNUM}!$&*()_+-=`, 14),
    )
    .map(([scheme, body]) => [`Q7${body}`, `${scheme}://user:Q7${body}@db.example:5432/main`]),
};

const CONTEXTS: Readonly<Record<string, (text: string) => string>> = {
  alone: (t) => t,
  sentence: (t) => `the key is ${t}, keep it`,
  quoted: (t) => `const k = '${t}';`,
  shell: (t) => `export K="${t}" && run`,
  json: (t) => JSON.stringify({ a: [{ text: t }] }),
  jsonInText: (t) => JSON.stringify(JSON.stringify({ log: `line\n${t}\tend` })),
  lineOfTool: (t) => `     1→a\n     2→${t}\n     3→b`,
  escapedBreaks: (t) => `before\\n${t}\\nafter`,
  brackets: (t) => `<a>(${t})</a>`,
  unicode: (t) => `é𝄞${t}𝄞é`,
};

describe('every generated secret', () => {
  for (const [format, secrets] of Object.entries(FORMATS)) {
    it(`of the format ${format} is gone from every context, and a second pass changes nothing`, () => {
      fc.assert(
        fc.property(secrets, fc.constantFrom(...Object.keys(CONTEXTS)), ([secret, text], context) => {
          const embedded = CONTEXTS[context]?.(text) ?? '';
          for (const redact of [redactor.text, (t: string) => redactor.json(t)]) {
            const once = redact(embedded);
            expect(once).not.toContain(secret);
            expect(once).toMatch(MARK);
            expect(redact(once)).toBe(once);
          }
        }),
        { numRuns: 60 },
      );
    });
  }
});

const fragment = fc.oneof(
  ...Object.values(FORMATS).map((format) => format.map(([, text]) => text)),
  fc.constantFrom(
    ...[
      '\n',
      ' ',
      '"',
      '\\',
      '\\n',
      '=',
      ':',
      'token=',
      'password: "',
      '[REDACTED:jwt:0011aabb]',
      '://',
      '@',
      'eyJ',
      '.',
    ],
    ...[
      '<private>',
      '</PRIVATE>',
      `${PEM}BEGIN PRIVATE KEY${PEM}`,
      '-',
      '_',
      'a',
      '7',
      'Bearer ',
      'sk-',
      '𝄞',
      '\ud800',
    ],
  ),
  fc.string({ maxLength: 12 }),
);

it('is idempotent on any mixture', () => {
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 12 }), (parts) => {
      const once = redactor.text(parts.join(''));
      expect(redactor.text(once)).toBe(once);
    }),
    { numRuns: 2_000 },
  );
});

it('leaves JSON valid, and what it says elsewhere as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fragment, { maxLength: 4 }), (value, parts) => {
      const text = redactor.json(JSON.stringify({ value, parts: parts.join('') }));
      const again = redactor.json(text);
      expect(again).toBe(text);
      const parsed = JSON.parse(text) as { parts: string };
      if (redactor.json(JSON.stringify(value)) === JSON.stringify(value))
        expect(parsed).toEqual({ value: JSON.parse(JSON.stringify(value)), parts: parsed.parts });
      expect(parsed.parts).toBe(redactor.text(parts.join('')));
    }),
    { numRuns: 500 },
  );
});

describe('json', () => {
  it('keeps the very characters outside the secret: big numbers, escapes, lone surrogates, white space', () => {
    const body = String.raw`{ "n": 12345678901234567890.10e+2, "t" : "\u00e9\/ KEY sk\u002dant-api03-AAAAAAAAAAAAAAAA \ud800x" }`;
    const text = redactor.json(body);
    expect(text).not.toBe(body);
    expect(text.replace(MARK, 'GONE')).toBe(
      String.raw`{ "n": 12345678901234567890.10e+2, "t" : "\u00e9\/ KEY GONE \ud800x" }`,
    );
  });

  it('gives back the same string when nothing is secret', () => {
    const body = String.raw`[{"type":"text","text":"\u0041 token: next page","n":1.0}]`;
    expect(redactor.json(body)).toBe(body);
  });

  it('redacts what only its name makes a secret', () => {
    const parsed = JSON.parse(
      redactor.json(
        '{"password":"hunter2","dbPassword":"abc123","X-Api-Key":"plain","authorization":"t0k3n","token":"next"}',
      ),
    ) as Record<string, string>;
    for (const key of ['password', 'dbPassword', 'X-Api-Key', 'authorization']) expect(parsed[key]).toMatch(MARK);
    expect(parsed['token']).toBe('next');
  });

  it('treats what is not JSON as text', () => {
    expect(redactor.json('{broken AKIAIOSFODNN7EXAMPLE')).toMatch(/^\{broken \[REDACTED:aws-key-id:/);
  });

  const random = createHash('shake256', { outputLength: 600 }).update('an image').digest('base64');
  const image = `iVBORw0KGgo${random}/cio${random}`;

  it.each([
    ['an image', { type: 'image', source: { type: 'base64', data: image, media_type: 'image/png' } }],
    ['a signature', { type: 'thinking', thinking: 'Hm.', signature: `cio${random}` }],
    ['thinking that is not shown', { type: 'redacted_thinking', data: `cio${random}` }],
    ['base64 in a text', { type: 'text', text: `<img src="data:image/png;base64,${image}">` }],
  ])('takes nothing in %s for a secret', (_, block) => {
    expect(redactor.json(JSON.stringify([block]))).toBe(JSON.stringify([block]));
  });

  const key = 'cioAbC3dEf6GhI9jKl2MnO5pQr8StU1vWx4Yz7';

  it.each([
    [
      'after a path',
      { type: 'text', text: `cat /home/ada/projects/words/are/not/random/however/many/there/are/of/them/${key}` },
    ],
    ['in the signature of another block', { type: 'webhook', signature: key }],
    ['beside thinking', { type: 'thinking', thinking: `it is ${key}`, signature: `Eo${random}` }],
    ['in other data', { type: 'base64', data: key }],
    ['below the header of an image', { type: 'base64', data: `iVBORw0KGgo ${key}` }],
  ])('finds a key %s', (_, block) => {
    expect(redactor.json(JSON.stringify([block]))).not.toContain(key);
  });

  it('carries an open private tag through the later blocks of a message', () => {
    const text = redactor.json(
      '[{"type":"text","text":"a <Private>b"},{"type":"text","text":"c"},{"type":"text","text":"d</private> e"}]',
    );
    expect(
      (JSON.parse(text) as { type: string; text: string }[]).map((block) =>
        block.text.replaceAll(new RegExp(MARK, 'g'), '#'),
      ),
    ).toEqual(['a #', '#', '# e']);
  });
});

describe('private spans', () => {
  const shown = (text: string): string => redactor.text(text).replaceAll(new RegExp(MARK, 'g'), '#');

  it.each([
    ['a <private>b</private> c', 'a # c'],
    ['a <PRIVATE>b</Private > c', 'a # c'],
    ['a <private reason="x">b</private> c', 'a # c'],
    ['a <private>b <private>c</private> d</private> e', 'a # e'],
    ['a <private>b', 'a #'],
    ['a <private>b <private>c</private> d', 'a #'],
    ['a </private> b', 'a </private> b'],
    ['a <privateer> b', 'a <privateer> b'],
    ['a < private >b</ private> c', 'a # c'],
    ['a <private>b</private', 'a #'],
    ['a <private>b</priv\u200bate> c', 'a #'],
    ['<private><private>b</private>c</PRIVATE>d<private>e', '#d#'],
  ])('%s becomes %s', (text, expected) => expect(shown(text)).toBe(expected));
});

describe('settings', () => {
  it.each([
    'DB_PASSWORD=correct-horse-battery',
    'export SESSION_SALT="9f8a7b6c5d4e3f2a1b0c9d8e"',
    String.raw`before\nAPP_COOKIE=q8Wz3LkV0pXn5RtY7bMc`,
    'UPLOADER=q8Wz3LkV0pXn5RtY7bMc2Hs9',
    'token: "qPulZRJzBVVPwToKkbGWDGxchjtm"',
  ])('%s holds a secret by its name or by its randomness', (text) => expect(redactor.text(text)).toMatch(MARK));
});

describe('private keys', () => {
  it('redacts to the end of the text where the end line is missing', () => {
    const text = `x ${PEM}BEGIN OPENSSH PRIVATE KEY${PEM}\n${'b3BlbnNzaC1rZXk'.repeat(9)}\nmore`;
    expect(redactor.text(text)).toMatch(/^x \[REDACTED:private-key:[0-9a-f]{8}\]\n\n$/);
  });

  it('sees one with its line breaks written out, and one behind line numbers', () => {
    const body = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ';
    for (const between of ['\\n', '\n     2→', '\r\n', '\n> ']) {
      const text = [`${PEM}BEGIN PRIVATE KEY${PEM}`, body, `${PEM}END PRIVATE KEY${PEM}`].join(between);
      expect(redactor.text(text)).toMatch(/^\[REDACTED:private-key:[0-9a-f]{8}\]\n*$/);
      expect(redactor.text(text).split('\n').length).toBe(text.split('\n').length);
    }
  });

  it('leaves certificates, public keys and code that merely names the header', () => {
    for (const text of [
      `${PEM}BEGIN CERTIFICATE${PEM}\nMIIB\n${PEM}END CERTIFICATE${PEM}`,
      `${PEM}BEGIN PUBLIC KEY${PEM}\nMIIB\n${PEM}END PUBLIC KEY${PEM}`,
      `if (text.startsWith('${PEM}BEGIN PRIVATE KEY${PEM}')) return parse(text);\n${'// and so on\n'.repeat(40)}`,
    ]) {
      expect(redactor.text(text)).toBe(text);
    }
  });
});

describe('what is no secret', () => {
  it.each([
    'http://localhost:3000/@vite/client',
    'https://registry.npmjs.org/@scope/name/-/name-1.2.3.tgz#sha512-abc',
    'postgres://user:$PASSWORD@host/db',
    'Authorization: Bearer $TOKEN',
    'const token = nextToken(abc123def456ghi789);',
    'a commit 0123456789abcdef0123456789abcdef01234567 of task-0123456789abcdef0123456789abcdef',
    'npm_config_registry npm_package_json sk-learn risk-management-0123456789',
    'Basic understanding and basic internationalization; the bearer authentication-mechanism',
    'GIT_COMMIT=0123456789abcdef0123456789abcdef01234567 SRI_HASH=sha512-x KEY=value API_KEY=$API_KEY',
    'PATH_KEY=/usr/local/share/keys1 SESSION_DIR=.config/session1234567 export const MAX_KEYS=1024',
    'DB_PASSWORD=process.env.DB_PASSWORD PASSWORD=$(pass show db)',
    'docker run -u 1000:1000 -p 127.0.0.1:8080:80 base-url:https://host1.example data-uid:abcdef123456',
    'login --password "$PASS1234" --token <token-1234> -u me:$PASSWORD1 mysql client-protocol41 is used',
    'The password for the user1 account is in config-1.yaml and the token for requests is base64-encoded',
    'Das Passwort ist seit 2026-11-22 abgelaufen, das Kennwort für den Server ist /run/secrets/db1.txt',
    'The token is expired since 2026-11-22, the API key is required, the password is /run/secrets/db1.txt',
    'git push -u origin HEAD:refs/heads/feature-12 then the login form has -page-12345678 and password fields 12345678',
    'tokens: 1234, max_tokens: 4096, secretName: "db-creds"',
  ])('%s', (text) => expect(redactor.text(text)).toBe(text));

  it('is source code: ours, and at most one span in a megabyte of that of others', () => {
    const own = [...sources('common'), ...sources('proxy'), ...sources('certs')];
    expect(own.length).toBeGreaterThan(10);
    for (const file of own) expect(redactor.text(readFileSync(file, 'utf8')), file).toBe(readFileSync(file, 'utf8'));
    const foreign = ['undici/lib', 'commander/lib', 'zod/v4', 'execa/lib', 'node-forge/lib'];
    const texts = foreign
      .flatMap((folder) => sources(`node_modules/${folder}`))
      .map((file) => readFileSync(file, 'utf8'));
    const found = texts.flatMap((text) => redactor.text(text).match(new RegExp(MARK, 'g')) ?? []);
    expect(found.length).toBeLessThanOrEqual(texts.join('').length / 1_000_000);
  });
});

function sources(folder: string): string[] {
  return readdirSync(path.resolve(folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|js)$/.test(name))
    .map((name) => path.resolve(folder, name));
}

it('marks a secret alike everywhere, and differently under another key', () => {
  const secret = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789';
  const mark = redactor.text(secret);
  expect(redactor.text(`a ${secret} b "${secret}"`)).toBe(`a ${mark} b "${mark}"`);
  expect(createRedactor({ markKey: Buffer.alloc(32, 8) }).text(secret)).not.toBe(mark);
});

describe('hostile text', () => {
  const unit = [
    ...[
      'eyJ',
      '.eyJ',
      'eyJhbGciOi.eyJ.',
      'a',
      '-',
      `${PEM}BEGIN `,
      `${PEM}BEGIN PRIVATE KEY${PEM}`,
      '://',
      'a://b:',
      'a://b:@',
    ],
    ...[
      '<private>',
      '</private>',
      '< private',
      '\\',
      '"',
      'token=',
      'token="',
      'password:password',
      'Bearer ',
      'AKIA',
      'x:y@',
    ],
    ...[
      'sk-',
      'sk-ant-',
      'sk-proj-',
      'AKIAIOSFODNN7EXAMPLE ',
      'xoxb-',
      'authorization:',
      '     ',
      '\n',
      'hooks.slack.com/services/',
      '%0',
      'A_KEY=',
      'KEY=a1B2c3D4',
      'glpat-',
      'pypi-AgE',
      '"--a",    ',
      'net use a ',
      'urandom',
      'a1b2-c3d4 ',
      '-----END PRIVATE KEY-----',
    ],
  ];
  const sized = (piece: string, length: number): string => piece.repeat(Math.ceil(length / piece.length));
  /** Processor time, not that of the clock: others may have the machine meanwhile. */
  const costUs = (text: string): number => {
    const before = process.cpuUsage();
    redactor.text(text);
    redactor.json(JSON.stringify(text));
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };

  it('full of different secrets keeps the time bounded: some are looked for elsewhere, between steps', () => {
    const lines = Array.from({ length: 2_000 }, (_, at) => `worker ${at} failed with password=k7Rw2p${at}Xq9 — again`);
    const json = JSON.stringify(lines.join('\n'));
    const known = new Map<string, string>();
    const mark = (type: string): string => `[REDACTED:${type}:00000000]`;
    expect(runAtOnce(redactLiterals(json, mark, known))).not.toContain('k7Rw2p');
    expect(known.size).toBeLessThan(1_000);
    expect([...redactLiterals('"Nothing to hide."', mark, known)].length).toBeGreaterThan(known.size);
  });

  it.each(unit)('made of %j costs eight times as much as an eighth of it, not sixty-four times', (piece) => {
    const [small, large] = [sized(piece, 25_000), sized(piece, 200_000)];
    costUs(small);
    let ratio = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 3 && ratio >= 24; tries += 1) {
      ratio = costUs(large) / Math.max(1_000, costUs(small), costUs(small));
    }
    expect(ratio).toBeLessThan(24);
  });
});

describe('redaction in steps', () => {
  const mark = (type: string, secret: string): string => `[REDACTED:${type}:${secret.length}]`;
  const planted = plantedSecrets(1, 11).map(({ text }) => text);
  const piece = fc.oneof(
    fc.constantFrom(...planted),
    fc.constantFrom(...Object.values(UNITS)).map((unit) => unit.repeat(40)),
    fc.string({ unit: CODE_POINT, maxLength: 20 }),
  );
  const text = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join('\n'));

  it('finds the same when other redactions run between its steps', () => {
    fc.assert(
      fc.property(text, text, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (one, other, turns) => {
        const jobs = [
          () => redactText(one, mark),
          () => redactText(other, mark),
          () => redactLiterals(JSON.stringify([{ token: other, text: one }]), mark),
        ];
        const running = jobs.map((start) => start());
        const results = running.map((): string | undefined => undefined);
        for (let at = 0; results.includes(undefined); at += 1) {
          const job = at % jobs.length;
          for (let steps = turns[at % turns.length] ?? 1; steps > 0 && results[job] === undefined; steps -= 1) {
            const step = running[job]?.next();
            if (step?.done === true) results[job] = step.value;
          }
        }
        expect(results).toEqual(jobs.map((start) => runAtOnce(start())));
      }),
      { numRuns: 60 },
    );
  });

  it('equals redaction at once, whatever its length', async () => {
    await fc.assert(
      fc.asyncProperty(text, async (some) => {
        expect(await redactor.inSlices.text(some)).toBe(redactor.text(some));
        const body = JSON.stringify([{ type: 'text', text: some }]);
        expect(await redactor.inSlices.json(body)).toEqual(redactor.json(body));
      }),
      { numRuns: 60 },
    );
  });

  // A step ends with each pattern, each match, and in scanners by hand after 4,096 characters.
  it.each(['settings', 'passwords', 'words', 'hex'])(
    'takes a step for each rule and find in %s, and more in longer texts',
    (name) => {
      const getSteps = (chars: number): number => {
        const work = redactText((UNITS[name] ?? '').repeat(chars).slice(0, chars), mark);
        let steps = 0;
        while (work.next().done !== true) steps += 1;
        return steps;
      };
      const [short, long] = [getSteps(8_192), getSteps(131_072)];
      expect(short).toBeGreaterThan(RULES.length);
      expect(long - short).toBeGreaterThanOrEqual((131_072 - 8_192) / 4_096);
      if (name === 'settings') expect(long).toBeGreaterThan(131_072 / 'KEY=a'.length);
      if (name === 'passwords') expect(long).toBeGreaterThan(131_072 / 'password is a1.'.length);
    },
  );
});
