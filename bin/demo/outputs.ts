/*
 * Output of tools, at the length it really has. The same arguments give the same text.
 */

const NOUNS = ['booking', 'pickup', 'parcel', 'depot', 'label', 'route', 'window', 'carrier', 'manifest', 'voucher'];
const VERBS = ['load', 'resolve', 'merge', 'reserve', 'collect', 'confirm', 'split', 'assign', 'validate', 'publish'];
const FIELDS = ['id', 'state', 'weightGrams', 'postcode', 'createdAt', 'slot', 'reference', 'attempts'];

/** What `Read` shows of a module: numbered lines, one function for each name. */
export function source(imports: readonly string[], functions: readonly string[]): string {
  const pick = picker(functions.join());
  const lines = [
    ...imports.map((name) => `import { ${name} } from './${dashed(name)}.ts';`),
    "import { log } from '../log.ts';",
    '',
    ...functions.flatMap((name) => functionLines(name, pick)),
  ];
  return lines.map((line, at) => `${String(at + 1).padStart(6)}\t${line}`).join('\n');
}

function functionLines(name: string, pick: Picker): string[] {
  const [subject, other, field, verb] = [pick(NOUNS), pick(NOUNS), pick(FIELDS), pick(VERBS)];
  return [
    `export async function ${name}(${subject}: ${titled(subject)}, deps: Deps): Promise<${titled(other)}[]> {`,
    '  const startedMs = deps.clock.now();',
    `  const ${other}s = await deps.${other}s.${verb}All({ ${field}: ${subject}.${field}, limit: ${pick(STEPS)} });`,
    `  if (${other}s.length === 0) log.debug('no ${other} for this ${subject}', { ${subject}: ${subject}.id });`,
    `  const fresh = ${other}s.filter((${other}) => ${other}.${pick(FIELDS)} !== ${subject}.${field});`,
    '  for (const entry of fresh) {',
    `    await deps.events.publish('${subject}.${verb}', { id: entry.id, at: startedMs });`,
    '  }',
    `  const kept = new Map<string, ${titled(other)}>();`,
    `  for (const entry of ${other}s) {`,
    `    const known = kept.get(entry.${pick(FIELDS)});`,
    `    if (known !== undefined && known.${pick(FIELDS)} >= entry.${pick(FIELDS)}) continue;`,
    `    kept.set(String(entry.${pick(FIELDS)}), { ...entry, ${field}: ${subject}.${field} });`,
    '  }',
    `  const missing = fresh.filter((entry) => !kept.has(String(entry.${pick(FIELDS)})));`,
    `  if (missing.length > 0) await deps.${pick(NOUNS)}s.${pick(VERBS)}Later(missing, startedMs);`,
    `  log.debug('${name}', { count: fresh.length, tookMs: deps.clock.now() - startedMs });`,
    '  return fresh;',
    '}',
    '',
  ];
}

const STEPS = ['20', '50', '100', '200'];

const CASES = 14;

/** A run of the test suite; `failures` are shown with their messages. */
export function testRun(files: readonly string[], failures: readonly { test: string; message: string }[] = []): string {
  const pick = picker(files.join() + failures.length);
  const lines = files.flatMap((file) => {
    const cases = Array.from(
      { length: CASES },
      () => `   ✓ ${pick(VERBS)}s a ${pick(NOUNS)} with its ${pick(FIELDS)} ${pick(STEPS)}ms`,
    );
    return [` ✓ ${file} (${cases.length} tests) ${pick(STEPS)}ms`, ...cases];
  });
  const failed = failures.flatMap(({ test, message }) => ['', ` FAIL  ${test}`, `AssertionError: ${message}`]);
  const verdict = failures.length > 0 ? `${failures.length} failed | ` : '';
  return [
    ...lines,
    ...failed,
    '',
    ` Test Files  ${files.length}`,
    `      Tests  ${verdict}${files.length * CASES} passed`,
  ].join('\n');
}

/** Lines of the service's log. */
export function serviceLog(count: number, messages: readonly string[]): string {
  const pick = picker(messages.join() + count);
  return Array.from({ length: count }, (_, at) => {
    const second = String(at % 60).padStart(2, '0');
    const message = messages[at % messages.length] ?? '';
    return `{"time":"2026-11-02T09:${pick(['11', '12', '13'])}:${second}Z","level":"info","msg":"${message}","${pick(NOUNS)}":"${pick(VERBS)}-${pick(STEPS)}${at}","tookMs":${pick(STEPS)}}`;
  }).join('\n');
}

/** Matches of a search over the sources. */
export function hits(pattern: string, count: number): string {
  const pick = picker(pattern + count);
  return Array.from({ length: count }, (_, at) => {
    const [noun, verb] = [pick(NOUNS), pick(VERBS)];
    return `src/${noun}s/${verb}.ts:${7 + at * 11}:  const ${noun} = await ${pattern}(${noun}.${pick(FIELDS)}, { ${pick(FIELDS)} });`;
  }).join('\n');
}

/** Rows as `psql` prints them. */
export function rows(columns: readonly string[], count: number): string {
  const pick = picker(columns.join() + count);
  const cells = Array.from({ length: count }, (_, at) =>
    columns.map((column) => `${pick(NOUNS)}-${column.length}${at}`.padEnd(16)).join(' | '),
  );
  const head = columns.map((column) => column.padEnd(16)).join(' | ');
  return [head, head.replaceAll(/[^|]/g, '-').replaceAll('|', '+'), ...cells, `(${count} rows)`].join('\n');
}

type Picker = (words: readonly string[]) => string;

/** Numerical Recipes' linear congruential generator: any fixed sequence will do. */
function picker(seed: string): Picker {
  let state = [...seed].reduce((sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) >>> 0, 7);
  return (words) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return words[Math.floor((state / 2 ** 32) * words.length)] ?? '';
  };
}

function titled(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function dashed(name: string): string {
  return name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
}
