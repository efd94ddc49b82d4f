import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { parseAst } from 'vitest/node';
import { endsStatement, getEnding } from '../../memory/compaction/supersede-rules.ts';
import { growingParts } from '../helpers/regex-parts.ts';
import { readTree, type SourceFile } from '../helpers/source-tree.ts';
import { UNITS } from '../helpers/text-readers.ts';

// The checker itself, without the processes that its other entry starts.
const require = createRequire(import.meta.url);
const { checkSync } = require('recheck/lib/browser.js') as {
  checkSync(source: string, flags: string, options: object): { readonly status: 'safe' | 'vulnerable' | 'unknown' };
};

const CHECK = { timeout: 60_000, maxPatternSize: 10_000, maxIteration: 3 };
/** Checking all takes half a minute, and its result depends on nothing but these. */
const CHECKER = `recheck ${(require('recheck/package.json') as { version: string }).version} ${JSON.stringify(CHECK)}`;

const ROOT = path.join(import.meta.dirname, '..', '..');
/** The checker, then what it proved to be safe, a pattern a line; `npm run docs:regexes` checks all and writes it. */
const PROVEN = path.join(ROOT, 'test', 'fixtures', 'linear-regexes.txt');
const PRODUCT = ['proxy', 'memory', 'certs', 'hooks', 'bin', 'engine', 'install', 'redact', 'common'];

/** Files whose expressions may be slow on a long text, and never read one: chars at most, and how they are called. */
const SHORT_TEXTS = new Map([
  [
    'memory/compaction/supersede-rules.ts',
    {
      most: 400,
      read(text: string) {
        getEnding(text);
        if (ENDING !== null) endsStatement(ENDING, text);
      },
    },
  ],
]);
const ENDING = getEnding('We use 5433 as port instead of 5432.');

interface Found {
  readonly file: string;
  readonly regex: RegExp;
}

/** Literals of a file, and whether it builds others. */
function readLiterals({ path: file, text }: SourceFile): { readonly found: Found[]; readonly builds: boolean } {
  const found: Found[] = [];
  let builds = false;
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, regex, callee } = node as {
      type?: string;
      regex?: { pattern: string; flags: string };
      callee?: { name?: string };
    };
    if (type === 'Literal' && regex) found.push({ file, regex: new RegExp(regex.pattern, regex.flags) });
    builds ||= callee?.name === 'RegExp';
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseAst(text, { lang: 'ts' }));
  return { found, builds };
}

/** Files that build an expression when they are used, and how they are made to. */
const ON_USE = new Map<string, (module: typeof import('../../memory/recall/phrase-search.ts')) => unknown>([
  ['memory/recall/phrase-search.ts', ({ phraseInNodes }) => phraseInNodes({ text: 'of (a+)+$', isQuoted: true }, [])],
]);

/** What the modules of these files build while they load, or in that use. */
async function readBuilt(files: readonly string[]): Promise<Found[]> {
  const found: Found[] = [];
  const Original = RegExp;
  const record = (args: ConstructorParameters<RegExpConstructor>): RegExp => {
    const regex = new Original(...args);
    const caller = new Error().stack?.split('\n').slice(2).join('\n') ?? '';
    // The frames of a module's importers follow its own.
    const getPlace = (each: string): number => caller.indexOf(`/${each}:`);
    const [file] = files.filter((each) => getPlace(each) >= 0).sort((one, other) => getPlace(one) - getPlace(other));
    if (file !== undefined) found.push({ file, regex });
    return regex;
  };
  vi.resetModules();
  vi.stubGlobal(
    'RegExp',
    new Proxy(Original, {
      construct: (_, args) => record(args as ConstructorParameters<RegExpConstructor>),
      apply: (_, __, args) => record(args as ConstructorParameters<RegExpConstructor>),
    }),
  );
  for (const file of files) {
    const module = await import(path.join(ROOT, file));
    ON_USE.get(file)?.(module);
  }
  vi.unstubAllGlobals();
  return found;
}

/** Nothing where all are to be checked. */
function readProven(): readonly string[] {
  if (process.env['COMET_TEST_REGEXES'] === 'all') return [];
  return readFileSync(PROVEN, 'utf8').trimEnd().split('\n');
}

it('each regular expression of the product takes linear time', { timeout: 300_000 }, async () => {
  const sources = readTree(PRODUCT, ['.ts', '.mjs'])
    .filter(({ path: file }) => !SHORT_TEXTS.has(file))
    .map((source) => ({ file: source.path, ...readLiterals(source) }));
  const builders = sources.filter(({ builds }) => builds).map(({ file }) => file);
  const built = await readBuilt(builders);
  // What is built later cannot be checked here.
  expect([...new Set(built.map(({ file }) => file))].toSorted()).toEqual(builders.toSorted());
  const files = new Map<string, Set<string>>();
  const parts = new Map<string, RegExp>();
  for (const { file, regex } of [...sources.flatMap(({ found }) => found), ...built]) {
    for (const part of growingParts(regex)) {
      parts.set(String(part), part);
      files.set(String(part), (files.get(String(part)) ?? new Set()).add(file));
    }
  }
  const [checker, ...proven] = readProven();
  const safe = new Set(checker === CHECKER ? proven : []);
  const slow = [...parts].flatMap(([text, { source, flags }]) => {
    if (safe.has(text)) return [];
    const { status } = checkSync(source, flags, CHECK);
    return status === 'safe' ? [] : [`${[...(files.get(text) ?? [])].join()}: ${status} ${text}`];
  });
  expect(slow).toEqual([]);
  // No line but of a pattern that was proven, here or when the line was written.
  await expect(`${[CHECKER, ...[...parts.keys()].toSorted()].join('\n')}\n`).toMatchFileSnapshot(PROVEN);
});

it.each([...SHORT_TEXTS])('the regular expressions of %s read short texts only', (_, { most, read }) => {
  const exec = vi.spyOn(RegExp.prototype, 'exec');
  for (const unit of Object.values(UNITS)) {
    for (const size of [most, 100_000]) read(`We use ${unit.repeat(size / unit.length)}`.slice(0, size));
  }
  const longest = Math.max(...exec.mock.calls.map(([text]) => text.length));
  exec.mockRestore();
  expect(longest).toBeGreaterThanOrEqual(most / 2);
  expect(longest).toBeLessThanOrEqual(3 * most);
});

it('the check finds a quadratic expression in each form', () => {
  const isSlow = (regex: RegExp): boolean =>
    growingParts(regex).some(({ source, flags }) => checkSync(source, flags, { timeout: 60_000 }).status !== 'safe');
  const slow = [
    /\s+$/,
    /\bset\b.* to /i,
    /a|(?:b|x+y)z/,
    /(?:one|two)*(?:o|t)ne(?:two|one)*!/,
    /\p{L}+:/u,
    /".*?"[^"]*!/,
  ];
  expect(slow.filter((regex) => !isSlow(regex))).toEqual([]);
});
