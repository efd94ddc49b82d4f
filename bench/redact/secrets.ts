import { type Seeded, seeded } from '../local/seeded.ts';

/** A text with a secret in it. */
export interface Planted {
  readonly format: string;
  /** What must not be in the text any more. */
  readonly secret: string;
  readonly text: string;
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ALNUM = `${LETTERS}0123456789`;
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const HEX = '0123456789abcdef';
const WORDY = `${ALNUM}_-`;

/** The secret, and what it stands in where it is not known by itself. */
type Format = (random: Seeded) => string | { readonly secret: string; readonly text: string };

const FORMATS: Readonly<Record<string, Format>> = {
  'anthropic key': (r) => `sk-ant-api03-${run(r, WORDY, 93)}AA`,
  'anthropic oauth': (r) => `sk-ant-oat01-${run(r, WORDY, 93)}AA`,
  'openai project key': (r) => `sk-proj-${run(r, WORDY, 48)}T3BlbkFJ${run(r, WORDY, 48)}`,
  'openai key': (r) => `sk-${run(r, ALNUM, 20)}T3BlbkFJ${run(r, ALNUM, 20)}`,
  'stripe key': (r) => `${r.oneOf(['sk', 'rk'])}_${r.oneOf(['live', 'test'])}_${run(r, ALNUM, 24)}`,
  'gcp key': (r) => `AIza${run(r, WORDY, 35)}`,
  'gcp token': (r) => `ya29.a0${run(r, WORDY, 120)}`,
  'aws key id': (r) => `${r.oneOf(['AKIA', 'ASIA'])}${run(r, UPPER, 16)}`,
  'aws secret': (r) => {
    const secret = `aK3${run(r, `${ALNUM}/+`, 37)}`;
    return { secret, text: `aws_access_key_id = AKIA${run(r, UPPER, 16)}\naws_secret_access_key = ${secret}` };
  },
  'github token': (r) => `${r.oneOf(['ghp_', 'gho_', 'ghs_'])}${run(r, ALNUM, 36)}`,
  'github fine-grained token': (r) => `github_pat_${run(r, ALNUM, 22)}_${run(r, ALNUM, 59)}`,
  'gitlab token': (r) => `glpat-${run(r, WORDY, 20)}`,
  'slack token': (r) => `xoxb-${run(r, '123456789', 12)}-${run(r, '123456789', 12)}-${run(r, ALNUM, 24)}`,
  'npm token': (r) => `npm_${run(r, ALNUM, 36)}`,
  jwt: (r) => {
    const part = (text: string): string => Buffer.from(text).toString('base64url');
    return `${part('{"alg":"HS256","typ":"JWT"}')}.${part(`{"sub":"${run(r, ALNUM, 10)}"}`)}.${run(r, WORDY, 43)}`;
  },
  bearer: (r) => {
    const secret = `b7${run(r, ALNUM, 38)}`;
    return { secret, text: `curl -H "Authorization: Bearer ${secret}" https://api.example/v1` };
  },
  'private key': (r) => {
    const secret = run(r, `${ALNUM}+/`, 64);
    const name = r.oneOf(['RSA PRIVATE KEY', 'PRIVATE KEY', 'OPENSSH PRIVATE KEY']);
    return { secret, text: `-----BEGIN ${name}-----\n${secret}\n${run(r, ALNUM, 40)}\n-----END ${name}-----` };
  },
  'connection string': (r) => {
    const secret = run(r, `${ALNUM}!$*_-`, 16);
    const scheme = r.oneOf(['postgres', 'mysql', 'mongodb+srv', 'redis', 'amqps', 'https']);
    return { secret, text: `${scheme}://service:${secret}@db.internal.example:5432/main` };
  },
  'named setting': (r) => {
    const secret = run(r, ALNUM, 28);
    const name = r.oneOf(['API_KEY', 'CLIENT_SECRET', 'DB_PASSWORD', 'SIGNING_KEY', 'ACCESS_TOKEN']);
    return { secret, text: r.oneOf([`${name}=${secret}`, `export ${name}="${secret}"`, `"${name}": "${secret}"`]) };
  },
  'random setting': (r) => {
    const secret = r.oneOf([run(r, ALNUM, 40), run(r, `${ALNUM}+/`, 43), run(r, HEX, 32)]);
    return { secret, text: `${r.oneOf(['APP_SALT', 'SESSION_HMAC', 'COOKIE_KEY', 'SENTRY_AUTH'])}=${secret}` };
  },
};

/** How a secret comes into a conversation: said, in code, in a tool's output, in JSON within JSON. */
const PLACES: readonly ((text: string) => string)[] = [
  (text) => `Here it is: ${text} . Keep it.`,
  (text) => `     1→# settings\n     2→${text}\n     3→# end`,
  (text) => `const settings = [\n  \`${text}\`,\n];`,
  (text) => `$ cat .env\n${text}\n$ `,
  (text) => JSON.stringify({ stdout: `before\n${text}\nafter`, code: 0 }),
];

/** `count` secrets, as many of each format; the same seed gives the same ones. */
export function plantedSecrets(count: number, seed: number): Planted[] {
  const random = seeded(seed);
  const formats = Object.entries(FORMATS);
  return Array.from({ length: count }, (_, at) => {
    const [format, make] = formats[at % formats.length] as (typeof formats)[number];
    const made = make(random);
    const { secret, text } = typeof made === 'string' ? { secret: made, text: made } : made;
    return { format, secret, text: random.oneOf(PLACES)(text) };
  });
}

function run(random: Seeded, alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet.charAt(random.below(alphabet.length))).join('');
}
