import { type Seeded, seeded } from '../local/seeded.ts';
import { AUDITED, FORMS } from './forms.ts';

/** A text with a secret in it. */
export interface Planted {
  /** Project and rule. */
  readonly rule: string;
  readonly half: 'tuned' | 'held-out' | 'audited';
  readonly secret: string;
  readonly text: string;
}

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const UPPER = LOWER.toUpperCase();
const DIGITS = '0123456789';
const ALPHABETS: Readonly<Record<string, string>> = {
  a: LOWER + UPPER + DIGITS,
  A: `${UPPER}234567`,
  b: `${LOWER}${UPPER}${DIGITS}+/`,
  B: 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L',
  h: `${DIGITS}abcdef`,
  H: `${DIGITS}ABCDEF`,
  l: LOWER + DIGITS,
  L: LOWER + UPPER,
  n: '123456789',
  p: `${LOWER}${UPPER}${DIGITS}${DIGITS}!*_-`,
  s: `${LOWER}${UPPER}${DIGITS}!#%^*-_=+`,
  U: UPPER + DIGITS,
  w: `${LOWER}${UPPER}${DIGITS}_-`,
};
const SEED_WORDS =
  'abandon absorb acoustic ahead anchor april arrow autumn badge balcony bamboo basket beyond blossom brave bronze ' +
  'cactus canvas carbon cereal chimney clarify coconut copper cradle crystal dawn debris deposit dinosaur dolphin ' +
  'dragon dwarf eagle elbow ember energy excuse fabric falcon fiscal flavor fossil frozen galaxy garlic ghost giraffe ' +
  'glove gravity hamster harvest hazard hybrid insect ivory jacket jungle kidney kitten lantern lemon lizard magnet ' +
  'maple meadow mimic mosquito nasty noodle oasis orbit ostrich oxygen panther peanut pelican pigeon planet pumpkin ' +
  'quantum rabbit ribbon rookie saddle salmon scatter shrimp silver slogan spider sunset tackle thunder tiger tomato ' +
  'tunnel umbrella unveil velvet venture vivid walnut weasel wisdom wolf yellow zebra zoo';

/** Names and values as the rule tests of gitleaks write them. */
const SYNTAXES: readonly string[] = [
  '{i}Token="{s}"',
  '{i}Token = "{s}"',
  '{i}Token={s}',
  '{i}Token = {s}',
  '{\n    "{i}_token": "{s}"\n}',
  '\\{\n    \\"{i}_token\\": \\"{s}\\"\n\\}',
  '<{i}Token>{s}</{i}Token>',
  '<{i}Token>\n    {s}\n</{i}Token>',
  '{i}_token: {s}',
  "{i}_token: '{s}'",
  '{i}_token: "{s}"',
  '{i}_token: |\n  {s}',
  '{i}_token: >\n  {s}',
  'string {i}Token = "{s}";',
  'var {i}Token string = "{s}"',
  '{i}Token := "{s}"',
  '{i}Token := `{s}`',
  'String {i}Token = "{s}";',
  'var {i}Token = "{s}"',
  '{D}{i}Token .= "{s}"',
  "{i}Token = '{s}'",
  '{i}Token,{s},',
  '  "{i}Token" => "{s}"',
  '{i}_TOKEN = "{s}"',
  '{i}_TOKEN := "{s}"',
  '{i}_TOKEN ::= "{s}"',
  '{i}_TOKEN :::= "{s}"',
  '{i}_TOKEN ?= "{s}"',
  '{i}_TOKEN += "{s}"',
  '{i}_api_token = "{s}"',
];

/** Places that do not name the value: a sentence, a log, a list, a cell, an argument, a query. */
const PLACES: readonly string[] = [
  'You can find it {s} within',
  '{s}',
  'const values = ["{s}"];',
  '2026-01-02T03:04:05Z INFO using {s} for eu-west-1',
  '| staging | {s} |',
  'client = Client("{s}", timeout=30)',
  'https://example.com/v1/items?id={s}&limit=10',
];

/** Where a text comes from: typed, or the output of a tool. */
const SOURCES: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `Here it is:\n\n${text}\n\nKeep it.`,
  (text) => ['# file', ...text.split('\n')].map((line, at) => `${String(at + 1).padStart(6)}→${line}`).join('\n'),
];

/** `each` secrets of every rule, in an order of their own; the same seed gives the same ones. */
export function plantedSecrets(each: number, seed: number): Planted[] {
  const random = seeded(seed);
  const planted: Planted[] = [];
  for (const [project, rules] of Object.entries({ ...FORMS, audit: AUDITED })) {
    for (const [at, line] of rules.trim().split('\n').entries()) {
      const half = project === 'audit' ? 'audited' : at % 2 === 0 ? 'tuned' : 'held-out';
      for (let i = 0; i < each; i += 1) planted.push({ ...plant(project, line, random), half });
    }
  }
  return planted;
}

/** Whether any eight characters in a row of a secret are left in a text. */
export function isLeft(secret: string, text: string): boolean {
  if (secret.length <= 8) return text.includes(secret);
  for (let at = 0; at + 8 <= secret.length; at += 1) if (text.includes(secret.slice(at, at + 8))) return true;
  return false;
}

const WELL_KNOWN =
  /^gitleaks (?:anthropic-api-key|github-pat|openai-api-key|slack-bot-token|vault-service-token|perplexity-api-key|shopify-custom-access-token|digitalocean-access-token|huggingface-access-token|gitlab-runner-authentication-token)$/;

/** `count` secrets of forms that no redactor may miss, for tests of what passes through it. */
export function wellKnownSecrets(count: number, seed: number): Planted[] {
  return Array.from({ length: Math.ceil(count / 8) }, (_, at) =>
    plantedSecrets(1, seed * 1_000 + at).filter(isWellKnown),
  )
    .flat()
    .slice(0, count);
}

function isWellKnown({ rule }: Planted): boolean {
  return WELL_KNOWN.test(rule);
}

function plant(project: string, line: string, random: Seeded): Omit<Planted, 'half'> {
  const [, name = '', sign, rest = ''] = /^(\S+?)(?: ([|=])|:) (.*)$/.exec(line) ?? [];
  const marked =
    sign === '|'
      ? rest.replaceAll('\\n', '\n').replaceAll('\\t', '\t')
      : sign === '='
        ? named(rest, random)
        : random.pickOne(PLACES).replace('{s}', () => `«${rest}»`);
  const filled = marked.replace(/\{([A-Za-z]+?)(\d*)\}/g, (_, alphabet: string, length: string) =>
    run(alphabet, Number(length), random),
  );
  const text = random.pickOne(SOURCES)(filled.replace(/[«»]/g, ''));
  return { rule: `${project} ${name}`, secret: /«([^»]*)»/.exec(filled)?.[1] ?? '', text };
}

function named(rest: string, random: Seeded): string {
  const [identifier = '', shape = ''] = rest.split(': ');
  return random
    .pickOne(SYNTAXES)
    .replaceAll('{i}', () => identifier)
    .replaceAll('{s}', () => `«${shape}»`);
}

function run(alphabet: string, length: number, random: Seeded): string {
  const of = (letters: string, count: number): string =>
    Array.from({ length: count }, () => letters.charAt(random.below(letters.length))).join('');
  const hex = (count: number): string => of(ALPHABETS['h'] ?? '', count);
  const word = (count: number): string =>
    Array.from({ length: count }, (_, at) => of(at % 2 === 0 ? 'bcdfglmnprstv' : 'aeiou', 1)).join('');
  const uuid = (): string => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
  const json = (text: string): string => Buffer.from(text).toString('base64url');
  switch (alphabet) {
    case 'u':
      return uuid();
    case 'V':
      return uuid().toUpperCase();
    case 'z':
      return word(length);
    case 'P':
      return word(length).replace(/^./, (first) => first.toUpperCase());
    case 'x':
      return random.shuffled(SEED_WORDS.split(' ')).join('').slice(0, length);
    case 'c':
      return `${of(UPPER, 1)}${of(LOWER, length - 7)}${of(DIGITS, 2)}${of(UPPER, 1)}${of(LOWER, 1)}${length > 8 ? of('#@!*', 2) : of(DIGITS, 2)}`;
    case 'q':
      return Buffer.from(`deploy:${of(ALPHABETS['a'] ?? '', length - 7)}`).toString('base64');
    case 'jwt':
      return `${json('{"alg":"HS256","typ":"JWT"}')}.${json(`{"sub":"${hex(12)}"}`)}.${of(ALPHABETS['w'] ?? '', 43)}`;
    case 'env':
      return Buffer.from(`NODE_ENV=production\nDB_PASSWORD=${of(ALPHABETS['a'] ?? '', 16)}\nPORT=3000\n`).toString(
        'base64',
      );
    case 'bip':
      return random.shuffled(SEED_WORDS.split(' ')).slice(0, length).join(' ');
    case 'D':
      return '$';
    case 'PK':
      return ['PRIVATE', 'KEY'].join(' ');
    default: {
      const letters = ALPHABETS[alphabet];
      if (letters === undefined) throw new Error(`no alphabet ${alphabet}`);
      // A random value has a digit where its alphabet has digits; a run of letters alone would be another form.
      const text = of(letters, length);
      return /\d/.test(letters) && /[a-z]/i.test(letters) && length > 5 ? `${text.slice(0, 2)}7${text.slice(3)}` : text;
    }
  }
}
