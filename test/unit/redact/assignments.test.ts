import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AUDITED_PLAIN } from '../../../bench/redact/forms.ts';
import { isLeft, plantedSecrets } from '../../../bench/redact/secrets.ts';
import { createRedactor } from '../../../redact/index.ts';
import { CODE_POINT } from '../../helpers/code-point.ts';

const { text: redact, json } = createRedactor({ markKey: Buffer.alloc(32, 7) });
const planted = plantedSecrets(1, 11);
const texts = planted.map(({ text }) => text);
const lines = (text: string): number => text.split('\n').length;

describe('redaction of texts with secrets in forms of other rules', () => {
  it('is idempotent and keeps the number of lines, as text and in JSON', () => {
    for (const text of texts) {
      const once = redact(text);
      expect(redact(once)).toBe(once);
      expect(lines(once), text).toBe(lines(text));
      const body = json(JSON.stringify([{ type: 'text', text }]));
      expect(lines((JSON.parse(body) as { text: string }[])[0]?.text ?? ''), text).toBe(lines(text));
    }
  });

  it('never throws and stays idempotent where texts are cut and mixed', () => {
    const piece = fc
      .tuple(fc.constantFrom(...texts), fc.nat(200), fc.nat(200))
      .map(([text, from, length]) => text.slice(from, from + length));
    fc.assert(
      fc.property(
        fc.array(fc.oneof(piece, fc.string({ unit: CODE_POINT, maxLength: 20 })), { maxLength: 6 }),
        (parts) => {
          const once = redact(parts.join(''));
          expect(redact(once)).toBe(once);
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each([
    'Log in as bob. **Password:** Xk7pQ2zRm9v',
    '- **Password**: `Xk7pQ2zRm9v`',
    '密码：Xk7pQ2zRm9v',
    'パスワード：Xk7pQ2zRm9v',
    'la password è Xk7pQ2zRm9v',
    'a senha é Xk7pQ2zRm9v',
    '[{"Key":"DB_PASSWORD","Value":"Xk7pQ2zRm9v"}]',
    'https://example.com/?next=%2Fcb%3Fpassword%3DXk7pQ2zRm9v',
    "CREATE USER bob IDENTIFIED BY 'Xk7pQ2zRm9v';",
    "ALTER USER 'bob'@'%' IDENTIFIED WITH mysql_native_password BY 'Xk7pQ2zRm9v';",
    `_auth=${Buffer.from('bob:Xk7pQ2zRm9v').toString('base64')}`,
    `curl -b 'sid=Xk7pQ2zRm9vTb2Kp' https://example.com`,
    `curl -b 'theme=dark; sid=Xk7pQ2zRm9v' https://example.com`,
    `curl --cookie "sid=Xk7pQ2zRm9vTb2Kp" https://example.com`,
    'curl -sS -ubob:Xk7pQ2zRm9v https://example.com',
    "echo 'Xk7pQ2zRm9v' | sudo -S apt update",
    'printf Xk7pQ2zRm9v | docker login -u bob --password-stdin',
    'echo "root:Xk7pQ2zRm9v" | sudo chpasswd',
    'bob:Xk7pQ2zRm9v@tcp(127.0.0.1:3306)/app?parseTime=true',
    'db.example.com:5432:app:bob:Xk7pQ2zRm9v',
    'Unseal Key 1: Xk7pQ2zRm9v/b2KpWc4Hs6Jd8Fg1+q3Zn5Mv7Bx9Ct0Y=',
    'it answered 1//0gXk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Zn5Mv7Bx9Ct0Y once',
    "curl -H 'Authorization: GenieKey Xk7pQ2zRm9vTb2Kp' https://example.com",
    'headers: { Authorization: `SSWS Xk7pQ2zRm9vTb2Kp` }',
    'https://example.com/c/f?sv=2022-11-02&sp=r&sig=%2FXk7pQ2zRm9vTb2KpWc4Hs%3D',
    'GET /auth/callback?code=4/0Xk7pQ2zRm9vTb2KpWc4Hs&state=1 HTTP/1.1',
    'SAMLResponse=Xk7pQ2zRm9vTb2KpWc4Hs&RelayState=x',
    'grant_type=authorization_code&code_verifier=Xk7pQ2zRm9vTb2Kp',
    'A senha do banco é Xk7pQ2zRm9v',
    'la password di root è Xk7pQ2zRm9v',
    'пароль от базы: Xk7pQ2zRm9v',
    'Пароль для сервера — Xk7pQ2zRm9v',
    'hasło: Xk7pQ2zRm9v',
    'şifre: Xk7pQ2zRm9v',
    'parola: Xk7pQ2zRm9v',
    'salasana: Xk7pQ2zRm9v',
    'adgangskoden er Xk7pQ2zRm9v',
    'passordet er Xk7pQ2zRm9v',
    'lösenordet är Xk7pQ2zRm9v',
    'heslo k databázi je Xk7pQ2zRm9v',
    'I set the password to Xk7pQ2zRm9v',
    'smtp-credentials: mailer:Word-fig-9',
    'echo -n "Xk7pQ2zRm9v" | gcloud secrets create db --data-file=-',
    'echo Xk7pQ2zRm9v | wg pubkey',
    'aws ssm put-parameter --name /db --type SecureString --value Xk7pQ2zRm9v',
    'DBI->connect("dbi:mysql:shop", "app", "Xk7pQ2zRm9v")',
    'DriverManager.getConnection("jdbc:db2:shop", "app", "Xk7pQ2zRm9v")',
    'the old password was Xk7pQ2zRm9v',
    String.raw`net use Z: \\nas\share Xk7pQ2zRm9v /user:bob`,
    'net user bob Xk7pQ2zRm9v /add',
    '<bash-input>openssl rand -base64 24</bash-input>\n<bash-stdout>Xk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Z</bash-stdout>',
    ">>> secrets.token_urlsafe(18)\n'Xk7pQ2zRm9vTb2KpWc4Hs6Jd'",
    '"args": [\n            "--password",\n            "Xk7pQ2zRm9v"\n          ]',
  ])('finds the secret of %s', (text) => {
    const once = redact(text);
    expect(once).toContain('[REDACTED:');
    expect(once).not.toMatch(/Xk7pQ2zRm9v|Ym9iOlhrN3BR/);
    expect(redact(once)).toBe(once);
  });

  it.each([
    'PBES2-params IDENTIFIED BY id-PBES2',
    'git checkout -b fix=retries-of-the-carrier-client-2',
    '**Token:** the key of the cache is node-20',
    'la password è obbligatoria',
    'const token = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";',
    "echo 'step 2 is done' | tee log2",
    'src/app.ts:5432:12:bob: 3 errors in file2',
    'Authorization: Bearer tokens are required; authorization: required-for-all-v2-endpoints',
    'GET /products?code=SUMMER2026&sig=none',
    'https://example.com/errors?code=ERR_MODULE_NOT_FOUND_IN_PACKAGE2',
    'reset your password to continue; the password was changed on 2026-01-03 by admin2',
    'credentials: include, credentials: same-origin2, credentials: arn:aws:iam1',
    '$password-strength-weak1: #ff0000;',
    `STRIPE_PUBLISHABLE_KEY=${'pk_test_'}a1B2c3D4e5F6g7H8i9J0k1L2`,
    `v=DKIM1; k=rsa; p=${'MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ'}Xk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Zn5Mv7Bx9Ct0Y`,
    'net user growth was 12 % in q1-2026 / net use of energy2',
    'const id = randomBytes(16)\n  .toString("hex");\nconst implementationOfTheGenerator = 2;',
    "forms = [\n        'docker login --password-stdin',\n          'example2 of another list'\n]",
  ])('leaves %s', (text) => {
    expect(redact(text)).toBe(text);
  });

  it.each([
    'MAIL_PASSWORD=butterflies\nMAIL_HOST=mail.example.com',
    '+SESSION_SECRET=butterflies-forever',
    '      MYSQL_ROOT_PASSWORD: butterflies\n      MYSQL_DATABASE: shop',
    '      - MYSQL_ROOT_PASSWORD=butterflies',
    'docker run -e POSTGRES_PASSWORD=butterflies -p 5432:5432 postgres',
    'fly secrets set JWT_SECRET=butterflies',
    'ADMIN_TOKEN="let the butterflies in" npm start',
    'Environment="DB_PASS=butterflies"',
    '{"env":{"DB_PASSWORD":"butterflies"}}',
    '$env:API_TOKEN = "butterflies"',
    'RAILS_MASTER_KEY=butterflies-are-free',
    'spring.datasource.password=butterflies',
    'vault kv put secret/app password=butterflies',
    '<password>butterflies</password>',
    'my password is "butterflies over rome"',
    'la contraseña es butterflies88',
    'SMTP_PASS=butt erfl yies abcd',
    'sshpass -p butterflies ssh host',
    'mysql -u root -pbutterflies shop',
    '7z a -pbutterflies x.7z',
    'unzip -P butterflies x.zip',
    'docker login -u bob -p butterflies registry.example.com',
    'echo "butterflies" | docker login --password-stdin',
    'redis-cli -a butterflies ping',
    '    requirepass butterflies',
    'htpasswd -b .htpasswd admin butterflies',
    'gpg --batch --passphrase butterflies -c x',
    'openssl enc -aes-256-cbc -pass pass:butterflies -in x',
    'keytool -list -storepass butterflies -keystore x',
    'java -Djavax.net.ssl.keyStorePassword=butterflies -jar x.jar',
    'sqlplus scott/butterflies@db',
    'db.example.com:5432:app:bob:butterflies',
    "ALTER USER app WITH PASSWORD 'butterflies';",
    "SET PASSWORD FOR root = 'butterflies'",
    "CREATE USER 'app'@'%' IDENTIFIED BY 'butterflies';",
    '"clientSecret": "butterflies-tree",',
    'quarkus.datasource.password = butterflies',
    'password: butterflies\nhost: db',
    'password: butterflies # of the test server\nhost: db',
    "const password = 'butterflies';",
    'os.getenv("DB_PASSWORD", "butterflies")',
    'process.env.DB_PASSWORD || "butterflies"',
    'store.setPassword("butterflies")',
    'storePassword "butterflies"',
    '<property name="password" value="butterflies"/>',
    'jwt({ secret: "butterflies-over-rome" })',
    'JWT_SECRET: "let the butterflies in"',
    'ENV DB_PASSWORD butterflies',
    'setenv DB_PASSWORD butterflies',
    "curl -H 'X-Api-Key: butterflies' https://example.com",
    '{"headers":{"X-Auth-Token":"butterflies"}}',
    'my wifi password is butterflies',
    'The password is now butterflies. Please log in.',
    'the passphrase is butterflies-over-rome',
    '**Password:** butterflies',
    'Password: **butterflies**',
    'the password is `butterflies`',
    'my password is “butterflies”',
    'Das Passwort ist „butterflies“',
    'Das Passwort heißt butterflies',
    'mot de passe : « butterflies »',
    '用户名：admin 密码：butterflies',
    '密码是“butterflies”',
    '비밀번호는 "butterflies"입니다',
    'パスワードは「butterflies」です',
    'useradd -m -p butterflies bob',
    'curl -u bob:butterflies https://example.com',
    'smbclient //host/share -U bob%butterflies',
    'mongo -u admin -p butterflies host',
    'az login -u bob -p butterflies',
    'wget --http-password butterflies https://example.com',
    'helm install x --set auth.password=butterflies,auth.database=app',
    'kubectl create secret generic db --from-literal=dsn=butterflies',
    'sudo -S <<< "butterflies" apt update',
    "ansible-vault encrypt_string 'butterflies' --name db",
    'rabbitmqctl add_user bob butterflies',
    'xfreerdp /u:bob /p:butterflies /v:host',
    'expect "*?assword:*"\nsend "butterflies\\r"',
    'requests.get(url, auth=("bob", "butterflies"))',
    'machine example.com\n\tpassword butterflies',
    'name,url,username,password\nx,https://example.com,bob,butterflies',
    'user | password\n--- | ---\nbob | butterflies',
    '     1→name,password\n     2→bob,butterflies',
    'config/db.yml:12:  password: butterflies\nconfig/db.yml-13-  host: db',
    '    12\tpassword: butterflies\n    13\thost: db',
  ])('finds the word that is the secret of %s', (text) => {
    const once = redact(text);
    expect(once).toContain('[REDACTED:');
    expect(once).not.toMatch(/butterflies|erfl/);
    expect(redact(once)).toBe(once);
    expect(json(JSON.stringify({ text }))).not.toMatch(/butterflies|erfl/);
  });

  it.each([
    'const TOKEN_KEY = "auth_token"',
    'TOKEN_STRATEGY=rotating-window',
    'export PASSWORD=$DB_PASSWORD',
    'SECRET_NAME=my-app-secret SECRET_MANAGER=gcloud-secrets',
    'API_KEY: process.env.API_KEY',
    'ACCESS_TOKEN: AccessToken',
    'INVALID_TOKEN=401-unauthorized {"FORGOT_PASSWORD":"butterflies"}',
    'login(user, password=default_value)',
    'mysql -u root -p production',
    "the user said that the password is 'optional'",
    "passphrase: 'top secret',",
    'password is stored in a vault, the token is refreshed hourly',
    'so that all tests pass\n83d369e9 Merge branch main',
    'git config core.excludesfile x && echo "ignored" > secret.globally-ignored',
    'they must pass: also have been read',
    'PASSWORD_HASHER=argon2id-v1',
    'if the password is wrong, the key of the passphrase is derived once',
    'its password is optional. The passphrase is really only needed here',
    '{"listitem":{"pass":"element","fail":"elements"}}',
    'password: required # by the API\nCookie: theme=darkblue; Max-Age=3600000',
    'password: Secret,\n    secret: this.#secret,\n    passphrase: another one',
    'self.password = default_value',
    'arguments to pass to `scriptPath`, Pass `shape=None` instead',
    'the password to encrypt with, --username and --password options',
    'perldoc -u Some::Modulename',
    '"minipass": "^7.1.2"',
    "'CURLOPT_PASSWORD', 'CURLOPT_READDATA'",
    'function login(name, password,\n  options, callback) {',
    'deps: pin negotiator@0.4.5, GPIO pin 12, a pin: 13',
    'sk-folding-cube-animation-of-the-page',
    'la contraseña es incorrecta, la password è scaduta. a senha é inválida',
    'X-Api-Key: your-api-key',
    'volumes:\n  - secret: kubernetes-credentials',
    "await page.login('admin', 'settings')",
    'i18n: { required: "Password: at least 12 characters", password: "Passwort" }',
    '65A5 65E6 672E 672C 672A 672B 672D 6B63 that this with from have been more time',
  ])('leaves %s', (text) => expect(redact(text)).toBe(text));

  it.each([
    ...[
      'Xk7p;Q2zRm9v',
      'Xk7p,Q2z(Rm9v',
      '#k7pQ2z<Rm9v|x',
      'k(7pQ{2zRm)9v',
      '%k7pQ2zRm9v!',
      '{k7pQ2zRm9v!',
      '/k7pQ2zRm9vT',
    ].flatMap((value) => [
      `HOST=db\nDB_PASSWORD=${value}\nPORT=1\n`,
      `export DB_PASSWORD='${value}'`,
      `db:\n  password: ${value}\n`,
      JSON.stringify({ password: value }),
      `curl -u 'bob:${value}' https://example.com`,
      `mysql -u root -p'${value}' app`,
      `sshpass -p "${value}" ssh bob@example.com`,
    ]),
    'the password is Xk7p;Q2z(Rm9v',
    'use password `Xk7p;Q2z!Rm9v` there',
    `password = "Xk7p\\"Q2zRm9v"`,
    `password: 'Xk7p''Q2zRm9v'`,
    'AWS_SECRET_ACCESS_KEY=/Xk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Zn5Mv7Bx',
    'client_secret: /Xk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Zn5Mv7Bx',
    'كلمة المرور: Xk7pQ2zRm9v',
    'הסיסמה היא Xk7pQ2zRm9v',
    'पासवर्ड: Xk7pQ2zRm9v',
    'ο κωδικός είναι Xk7pQ2zRm9v',
    'mật khẩu: Xk7pQ2zRm9v',
    'รหัสผ่าน: Xk7pQ2zRm9v',
    'jelszó: Xk7pQ2zRm9v',
    'kata sandi: Xk7pQ2zRm9v',
    'parola este Xk7pQ2zRm9v',
  ])('finds the whole of a generated password in %j', (text) => {
    expect(isLeft('Q2zRm9v', redact(text)) || /[XT#%{/(]k7p|Rm.?9v|T?b2Kp/.test(redact(text)), redact(text)).toBe(
      false,
    );
  });

  it.each([
    'DB_PASSWORD=$(cat /run/secrets/db1)',
    'DB_PASSWORD=${DB_PASSWORD1:-}',
    'password: z.string().min(8).max(64),',
    'password=getPassword1(user)',
    'password=request.form["pw1"]',
    'PASSWORD_FILE=/run/secrets/db_password1',
    'secret: /run/secrets/jwt_key_2',
    'password: <your-password-1>',
    'password: {{ vault_password_1 }}',
    '"password": "%{db_password_1}"',
    'pwd: C:\\Users\\bob1\\src',
    'password: string|Array<Password2>',
    'pass `sha256` to it',
    '"pass": "1つのロール値のみ使用されています"',
  ])('keeps code and placeholders in %j', (text) => {
    expect(redact(text)).toBe(text);
  });

  it.each(['\n', '  '])('finds a numbered seed phrase, and no other list: %j', (between) => {
    const words = 'witch collapse practice feed shame open despair creek road again ice least'.split(' ');
    const list = (some: readonly string[]) => some.map((word, at) => `${at + 1}. ${word}`).join(between);
    expect(redact(`My wallet:\n${list(words)}\nKeep it.`)).toMatch(
      /^My wallet:\n\[REDACTED:seed-phrase:\w{8}\]\n+Keep it\.$/,
    );
    for (const plain of [list(words.slice(1)), list(words.map((word) => `${word} it`)), list([...words, 'done'])])
      expect(redact(plain)).toBe(plain);
  });

  it.each(['sk-ant-api03-', 'sk-proj-', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2Ii'])(
    'finds the lines of %s… that a terminal has wrapped, and keeps the next line',
    (prefix) => {
      const [first, second] = ['Xk7pQ2zRm9vTb2KpWc4Hs6Jd8Fg1Lq3Zn5Mv7Bx', 'Yk4pQ8zRm2vTb6KpWc1Hs9'];
      const left = redact(`The key:\n  ${prefix}${first}\n  ${second}\nTry it with MyTest2.ts\n`);
      expect(left).toMatch(/^The key:\n {2}\[REDACTED:[\w-]+:\w{8}\]\n\nTry it with MyTest2.ts\n$/);
    },
  );

  it.each(['my PIN is 4821', 'PIN: 4821', 'the pin for the door is 482193', 'password: 48219384'])(
    'finds the digits of %s',
    (text) => expect(redact(text)).not.toMatch(/\d{4}(?!\])/),
  );

  it('finds words in JSON whose member says that they are a password', () => {
    for (const name of ['password', 'adminPassword', 'client_secret', 'X-Api-Key', 'PRIVATE-TOKEN'])
      expect(json(JSON.stringify({ [name]: 'let the butterflies in' }))).not.toContain('butterflies');
    const plain = JSON.stringify({ password: 'string', passwordHint: 'butterflies', secretName: 'butterflies' });
    expect(json(plain)).toBe(plain);
  });

  it('keeps what follows a secret between signs that ASCII does not have', () => {
    expect(redact('密码：butterflies，谢谢。 „x“')).toMatch(/^密码：\[REDACTED:password:\w{8}\]，谢谢。 „x“$/);
    expect(redact('Passwort „butterflies7“ bitte')).toMatch(/^Passwort „\[REDACTED:password:\w{8}\]“ bitte$/);
  });

  it('finds keys of one-time passwords in groups and keys with any prefix of OpenAI', () => {
    expect(redact('2FA: JBSW Y3DP EHPK 3PXP JBSW Y3DP EHPK 3PXP')).not.toContain('EHPK');
    expect(redact('sk-or-v1-8f14e45fceea467f9a7b1c2d3e4f5a6b8f14e45fceea467f')).not.toContain('ceea467f');
  });

  it('finds a secret whose name is the member before it, and no other value', () => {
    const body = (name: string): string => JSON.stringify({ env: [{ name, value: 'Xk7pQ2zRm9v' }] });
    expect(json(body('DB_PASSWORD'))).not.toContain('Xk7pQ2zRm9v');
    expect(json(body('BUILD_LABEL'))).toBe(body('BUILD_LABEL'));
  });

  it('finds the secret after its flag in an array, and no name of a member', () => {
    const body = (flag: string): string => JSON.stringify({ args: ['-y', flag, 'Xk7pQ2zRm9v'], oauth2Config: 'x' });
    expect(json(body('--password'))).toMatch(/"--password","\[REDACTED:[^"]*"\],"oauth2Config":"x"/);
    expect(json(body('--label'))).toBe(body('--label'));
    const last = JSON.stringify({ args: ['--password'], oauth2Config: 'x' });
    expect(json(last)).toBe(last);
  });

  it('finds cells between tabs below the heading of a secret, and the element after the name of one', () => {
    const rows = 'id\tuser\tpassword\n1\tann\tk7Hqzz29Lm\n2\tbob\tZ88aqq23x';
    const numbered = rows.replace(/^/gm, '     7\t');
    for (const text of [rows, numbered]) {
      const shown = redact(text);
      expect(shown).not.toMatch(/k7Hq|Z88a/);
      expect(shown).toMatch(/\tann\t\[REDACTED/);
    }
    for (const name of ['string', 'value']) {
      const text = `<key>DB_PASSWORD</key>\n  <${name}>k7Hqzz29Lm</${name}>`;
      expect(redact(text)).toMatch(new RegExp(`<${name}>\\[REDACTED:password:\\w{8}\\]</${name}>$`));
    }
    for (const text of [
      'name\ttoken count\na\tk7Hqzz29Lm',
      '<key>Version</key><string>k7Hqzz29Lm</string>',
      '<key>PasswordHint</key>\n<string>Your password</string>',
    ])
      expect(redact(text)).toBe(text);
  });

  it('finds strings in the secret columns of rows that are inserted', () => {
    const rows = (secret: string): string =>
      `INSERT INTO "app"."users" (id, name, password, note)\nVALUES (1, 'ann', '${secret}', 'likes (tea), a lot'),\n  (DEFAULT, lower('BOB'), 'it''s-${secret}', NULL);`;
    const text = redact(rows('tulip-harbor'));
    expect(text).not.toContain('tulip');
    expect(text).toMatch(
      /\(1, 'ann', '\[REDACTED:[^']+', 'likes \(tea\), a lot'\),\n {2}\(DEFAULT, lower\('BOB'\), '\[REDACTED:[^']+', NULL\);$/,
    );
    expect(redact(text)).toBe(text);
    expect(json(JSON.stringify({ sql: rows('tulip-harbor') }))).not.toContain('tulip');
    const plain =
      "INSERT INTO users (name, password_hash_type, token_count) VALUES ('tulip-harbor', 'bcrypt-v2', '12345678')";
    expect(redact(plain)).toBe(plain);
    const hostile = `INSERT INTO t (password) VALUES ${"(' ".repeat(60_000)}`;
    expect(redact(hostile)).toBe(hostile);
  });

  it('finds the audited forms', () => {
    const audited = planted.filter(({ half }) => half === 'audited');
    const missed = audited.filter(({ secret, text }) => isLeft(secret, redact(text)));
    expect(missed.map(({ rule }) => rule).length).toBeLessThanOrEqual(2);
  });
});

describe('text without secrets', () => {
  it.each([
    ...AUDITED_PLAIN,
    '--- PASS: TestParse/IPv4_and_IPv6 (0.00s)',
    'PASS test/unit/IPv4.test.ts',
    'function createCipher(algorithm: string, password: BinaryLike, options?: Options): Cipher;',
    "passphrase = passphrase || '';",
    'pass_through: this.#unused ? { sessions: 3 } : null',
    'New session: `2026-01-23-a6c3cac2`, checkpoint_type=session checkpoint_id=bf8b8f950c8a',
    'integrity sha512-q8Wz3LkV0pXn5RtY7bMc2Hs9q8Wz3LkV0pXn5RtY7bMc2Hs9q8Wz3LkV0pXn5RtY7bMc2Hs9q8Wz3LkV0pX== token',
    'password: string; token: string | null; keyword: "passenger", keyboard = layout2026',
    '| name | password |\n|---|---|\n| password | required, at least 12 characters |',
  ])('%s', (text) => expect(redact(text)).toBe(text));
});
