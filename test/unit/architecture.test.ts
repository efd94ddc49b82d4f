import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { configMarkdown } from '../helpers/config-docs.ts';
import {
  findCycles,
  isInTree,
  measureFunctions,
  quotedWords,
  readSource,
  readTree,
  type SourceFile,
} from '../helpers/source-tree.ts';

/** A room imports the rooms of lower tiers only, and of its own tier only what `SAME_TIER` names. */
const TIERS = [['common'], ['redact', 'certs', 'hooks', 'install'], ['memory', 'proxy'], ['engine'], ['bin']];
const SAME_TIER = new Set(['install -> certs']);
/** The demo talks to the same mock upstream as the tests. */
const DEMO_UPSTREAM = 'test/mock-anthropic/index.ts';

/** Doors beside a room's index: the statusline and `status` may not load all that it does (`test/unit/light-start.test.ts`). */
const LIGHT_DOORS = new Set(['engine/api/client.ts', 'engine/api/status-report.ts']);

/** In `memory/` a room imports only rooms before it; what lies at its root, and its types, come last. */
const MEMORY_ORDER = [
  ['model'],
  ['text'],
  ['facts'],
  ['models'],
  ['embeddings'],
  ['search'],
  ['storage'],
  ['tasks'],
  ['ingest'],
  ['compaction'],
  ['recall'],
  ['pages'],
  ['consolidation'],
  ['share'],
  ['bench'],
];

const MAX = { commonFiles: 12, functionLines: 80, pathWords: 250, productLines: 37_000 };

const ROOMS = TIERS.flat();
const PRODUCT = readTree(ROOMS, ['.ts']);
/** The page in the browser: a program of its own, which knows the engine by the types of its API. */
const PAGE = readTree(['ui'], ['.ts', '.tsx']);
const TESTS = readTree(['test', 'bench'], ['.ts', '.mjs']);
const DOCUMENTS = [readSource('README.md'), ...readTree(['docs'], ['.md'])];

/**
 * Violations that still stand, as counts by place. A rule fails on a violation that is not listed, and on an exception
 * that is no longer needed; SHRINK=1 takes those out of the file. Nothing is ever added.
 */
const EXCEPTIONS = path.join(import.meta.dirname, 'architecture-exceptions.json');
const SHRINK = process.env['SHRINK'] === '1';
type Exceptions = Record<string, Record<string, number>>;

interface Violation {
  /** What the exception is named by: a pair of rooms, a document, a path. */
  readonly place: string;
  readonly detail: string;
}

function readExceptions(): Exceptions {
  return JSON.parse(readFileSync(EXCEPTIONS, 'utf8')) as Exceptions;
}

function expectOnlyExceptions(rule: string, violations: readonly Violation[]): void {
  const details = new Map<string, Violation[]>();
  for (const violation of violations) {
    details.set(violation.place, [...(details.get(violation.place) ?? []), violation]);
  }
  const allowed = readExceptions()[rule] ?? {};
  if (SHRINK) {
    shrink(rule, details);
    return;
  }
  const places = [...new Set([...details.keys(), ...Object.keys(allowed)])].sort();
  const problems = places.flatMap((place) => {
    const found = details.get(place) ?? [];
    const limit = allowed[place] ?? 0;
    if (found.length === limit) return [];
    if (found.length < limit) return [`${place}: ${found.length}, excepted ${limit}; run this test with SHRINK=1`];
    return [`${place}: ${found.length}, excepted ${limit}`, ...found.map(({ detail }) => `    ${detail}`)];
  });
  expect(problems, rule).toEqual([]);
}

/** One violation for each file that may not be imported, however many import it: splitting a file adds none. */
function expectOnlyExceptedImports(rule: string, imports: readonly Import[], getPlace: (i: Import) => string): void {
  const importers = new Map<string, string[]>();
  for (const found of imports) {
    const key = `${getPlace(found)}|${found.to}`;
    importers.set(key, [...(importers.get(key) ?? []), found.from]);
  }
  const violations = [...importers].map(([key, from]) => {
    const [place, to] = key.split('|') as [string, string];
    return { place, detail: `${to}, imported by ${from.join(', ')}` };
  });
  expectOnlyExceptions(rule, violations);
}

function shrink(rule: string, details: ReadonlyMap<string, readonly Violation[]>): void {
  const all = readExceptions();
  const kept = Object.entries(all[rule] ?? {})
    .map(([place, limit]) => [place, Math.min(limit, details.get(place)?.length ?? 0)] as const)
    .filter(([, limit]) => limit > 0);
  if (kept.length > 0) all[rule] = Object.fromEntries(kept);
  else delete all[rule];
  writeFileSync(EXCEPTIONS, `${JSON.stringify(all, null, 2)}\n`);
}

function getRoom(file: string): string {
  return file.split('/')[0] as string;
}

function getMemoryRoom(file: string): string {
  const parts = file.split('/');
  return parts.length > 2 && parts[1] !== 'types' ? (parts[1] as string) : 'root';
}

function getTier(room: string, tiers: readonly (readonly string[])[]): number {
  const tier = tiers.findIndex((rooms) => rooms.includes(room));
  return tier < 0 ? tiers.length : tier;
}

interface Import {
  readonly from: string;
  readonly to: string;
}

function getImports(files: readonly SourceFile[]): Import[] {
  return files.flatMap((file) => file.imports.map((to) => ({ from: file.path, to })));
}

describe('imports', () => {
  it('follow the order of the rooms', () => {
    const violations = getImports(PRODUCT).filter(({ from, to }) => {
      const [room, other] = [getRoom(from), getRoom(to)];
      const isBelow = getTier(other, TIERS) < getTier(room, TIERS) || SAME_TIER.has(`${room} -> ${other}`);
      return room !== other && !isBelow && !(from.startsWith('bin/demo/') && to === DEMO_UPSTREAM);
    });
    expectOnlyExceptedImports('room order', violations, ({ from, to }) => `${getRoom(from)} -> ${getRoom(to)}`);
  });

  it('follow the order of the rooms in memory', () => {
    const violations = getImports(PRODUCT).filter(({ from, to }) => {
      if (getRoom(from) !== 'memory' || getRoom(to) !== 'memory') return false;
      const [room, other] = [getMemoryRoom(from), getMemoryRoom(to)];
      return room !== other && getTier(other, MEMORY_ORDER) >= getTier(room, MEMORY_ORDER);
    });
    const getPlace = ({ from, to }: Import): string => `memory/${getMemoryRoom(from)} -> memory/${getMemoryRoom(to)}`;
    expectOnlyExceptedImports('room order in memory', violations, getPlace);
  });

  it('enter another room by an index.ts', () => {
    const violations = getImports(PRODUCT).filter(({ from, to }) => {
      const isInside = getRoom(from) === getRoom(to) || getRoom(to) === 'common';
      return !isInside && !LIGHT_DOORS.has(to) && !/^\w+\/([\w-]+\/)?index\.ts$/.test(to);
    });
    expectOnlyExceptedImports('index only', violations, ({ from, to }) => `${getRoom(from)} -> ${getRoom(to)}`);
  });

  it('take only types of the API into the page', () => {
    const others = getImports(PAGE).filter(({ from, to }) => {
      return getRoom(to) !== 'ui' && !(from === 'ui/types.ts' && to === 'engine/api/index.ts');
    });
    const values = PAGE.filter(({ text }) => /^(?:import|export) (?!type )[^;]*engine\//m.test(text));
    expect([...others, ...values.map(({ path: file }) => file)]).toEqual([]);
  });

  it('form no cycle', () => {
    const violations = findCycles([...PRODUCT, ...PAGE]).flatMap((members) =>
      members.map((file) => ({
        place: getRoom(file) === 'memory' ? `memory/${getMemoryRoom(file)}` : getRoom(file),
        detail: `${file}, with ${members.filter((member) => member !== file).join(', ')}`,
      })),
    );
    expectOnlyExceptions('import cycles', violations);
  });
});

describe('the source tree', () => {
  it('has no test double in the product', () => {
    const violations = PRODUCT.filter(({ path: file }) => /(^|[/-])(fake|mock|stub|double|fixture)s?[-/.]/.test(file));
    expectOnlyExceptions(
      'test doubles',
      violations.map(({ path: file }) => ({ place: getRoom(file), detail: file })),
    );
  });

  it('keeps common small', () => {
    const files = PRODUCT.filter(({ path: file }) => getRoom(file) === 'common');
    expectOnlyExceptions(
      'files in common',
      files.slice(MAX.commonFiles).map(({ path: file }) => ({ place: 'common', detail: file })),
    );
  });

  it('has no function over 80 lines', () => {
    const violations = [...PRODUCT, ...PAGE].flatMap((file) =>
      measureFunctions(file)
        .filter(({ length }) => length > MAX.functionLines)
        .map(({ line, length }) => ({ place: getRoom(file.path), detail: `${file.path}:${line} has ${length} lines` })),
    );
    expectOnlyExceptions('long functions', violations);
  });

  it('is mirrored by the unit tests', () => {
    const violations = TESTS.filter(({ path: file }) => /^test\/unit\/.*\/.*\.test\.ts$/.test(file))
      .map(({ path: file }) => file)
      .filter((file) => {
        const source = file.replace(/^test\/unit\//, '').replace(/\.test\.ts$/, '');
        return ![source, `test/${source}`].some((place) => isInTree(`${place}.ts`) || isInTree(place));
      });
    expectOnlyExceptions(
      'unit tests without a source',
      violations.map((file) => ({ place: path.posix.dirname(file), detail: file })),
    );
  });

  // The same figure by hand: git ls-files ROOM… | grep '\.ts$' | sed 's/\.ts$//' | tr '/.-' '\n\n\n' | sort -u | wc -l
  it('uses few words in its paths', () => {
    const words = new Set(PRODUCT.flatMap(({ path: file }) => file.replace(/\.ts$/, '').split(/[/.-]/)));
    expectAtMost('distinct words in source paths', words.size, MAX.pathWords);
  });

  // The same figure by hand: git ls-files ROOM… | grep '\.ts$' | xargs cat | wc -l
  it('is small', () => {
    const lines = PRODUCT.reduce((sum, file) => sum + file.lines.length, 0);
    expectAtMost('lines of product source', lines, MAX.productLines);
  });
});

/** A figure above its target may not exceed the one in the exceptions, which is lowered by hand now and then. */
function expectAtMost(figure: string, found: number, target: number): void {
  const today = readExceptions()['figures']?.[figure];
  console.info(`${figure}: ${found} (target ${target})`);
  expect(found, figure).toBeLessThanOrEqual(today ?? target);
  if (today !== undefined) expect(found, `${figure}: take it out of the exceptions`).toBeGreaterThan(target);
}

describe('prose', () => {
  const everywhere = [...PRODUCT, ...PAGE, ...TESTS];
  const basenames = new Set(everywhere.map(({ path: file }) => path.posix.basename(file)));

  it('names paths that exist', () => {
    const names = new RegExp(`^\\.?/?(${ROOMS.join('|')}|ui|test|bench|docs|\\.ci)/[\\w./-]*$`);
    const literals = new Set(everywhere.flatMap(({ text }) => text.match(/'[\w-]+\/[\w/-]+'/g) ?? []));
    const isKnown = (word: string, isDocument: boolean): boolean => {
      // In a comment such a name may be an example of a user's file.
      if (/^[\w-]+\.ts$/.test(word)) return !isDocument || basenames.has(word);
      if (!names.test(word)) return true;
      // A name of the API looks like a path, and so does one below the home.
      return isInTree(word) || literals.has(`'${word}'`) || HOME_FOLDERS.some((folder) => word.startsWith(folder));
    };
    const violations = [...DOCUMENTS, ...everywhere].flatMap((file) =>
      quotedWords(file)
        .filter((word) => !isKnown(word, file.path.endsWith('.md')))
        .map((word) => ({ place: file.path, detail: `${file.path}: ${word}` })),
    );
    expectOnlyExceptions('paths that do not exist', violations);
  });

  it('documents every configuration key', async () => {
    await expect(configMarkdown()).toMatchFileSnapshot('../../docs/CONFIG.md');
  });
});

const HOME_FOLDERS = ['memory/nodes', 'memory/briefs', 'memory/snapshots', 'memory/dream'];
