import { NEEDS, ROWS, type Row } from './rows.ts';

const HEAD = `# Faults

What may fail, what still holds, and the tests that prove it (\`test/faults/rows.ts\` names them). \`npm run docs:faults\` runs them and writes their results here; \`npm test\` fails where its own results differ from this page. Processes, sockets and disks are real; \`COMET_FAULT\` ([0023](decisions/0023-fault-injection.md)) makes what cannot be brought about from outside.

| row | fault | promise | tests | result |
|---|---|---|---|---|`;
const HOLDS = 'holds';

/** What became of a row's tests. `skipped` holds for a row whose tests need what this machine lacks. */
export type Result = typeof HOLDS | '**fails**' | 'not run' | 'skipped' | 'in CI';

/** How the tests of a file ended: by their names, the states in which each ended. */
export type States = ReadonlyMap<string, readonly { readonly name: string; readonly state: string }[]>;

/** docs/FAULTS.md; `where` names the machine that the results come from. */
export function faultsPage(getResult: (row: Row) => string, where: string): string {
  const lines = ROWS.map((row) => line(row, getResult(row)));
  const held = ROWS.filter((row) => getResult(row) === HOLDS).length;
  return `${HEAD}\n${lines.join('\n')}\n\n${held} of ${ROWS.length} rows hold on ${where}; one is proven by a command of CI.\n`;
}

export const here = `${process.platform}-${process.arch}, Node ${process.versions.node}`;

export function resultOf({ proofs, needs }: Row, states: States): Result {
  if (proofs.length === 0) return 'in CI';
  const found = proofs.map(({ file, test }) => {
    // A name that is run once for each case holds the case where the source has a placeholder.
    const pattern = test.split(/%[sij]/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const name = new RegExp(`^${pattern.join('.*')}$`, 's');
    return (states.get(file) ?? []).filter((each) => name.test(each.name)).map(({ state }) => state);
  });
  if (found.some((each) => each.includes('failed'))) return '**fails**';
  if (found.every((each) => each.length > 0 && each.every((state) => state === 'passed'))) return HOLDS;
  return needs !== undefined && !NEEDS[needs] && found.every((each) => each.length > 0) ? 'skipped' : 'not run';
}

/** Rows of which the page says something else than the tests. */
export function differences(page: string, states: States): string[] {
  const where = /rows hold on (.+);/.exec(page)?.[1] ?? '';
  const written = new Map([...page.matchAll(/^\| (\d+) \|.* \| ([^|]+) \|$/gm)].map((each) => [each[1], each[2]]));
  const wrong = ROWS.flatMap((row) => {
    const [result, said] = [resultOf(row, states), written.get(String(row.row)) ?? 'nothing'];
    return result === said || result === 'skipped' ? [] : [`row ${row.row}: ${result}, the page says ${said}`];
  });
  const own = faultsPage(({ row }) => written.get(String(row)) ?? '', where);
  return page === own ? wrong : [...wrong, 'its text is not that of test/faults/rows.ts'];
}

function line({ row, fault, promise, proofs, note, command, needs }: Row, result: string): string {
  const files = [...new Set(proofs.map(({ file }) => file)), ...(command === undefined ? [] : [command])];
  const needed = needs === undefined ? [] : [`needs ${needs}`];
  const tests = [files.map((file) => `\`${file}\``).join(', '), ...needed, ...(note === undefined ? [] : [note])];
  return `| ${row} | ${fault} | ${promise} | ${tests.join('; ')} | ${result} |`;
}
