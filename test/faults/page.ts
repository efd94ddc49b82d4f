import { ROWS, type Row } from './rows.ts';

const HEAD = `# Faults

What may fail, what still holds, and the test that proves it (\`test/faults/rows.ts\` names each). Printed by \`npm run docs:faults\`, which runs them all; a test checks that every row has one. Processes, sockets and disks are real; \`COMET_FAULT\` ([0023](decisions/0023-fault-injection.md)) makes what cannot be brought about from outside.

| row | fault | promise | test | last result |
|---|---|---|---|---|`;
const HOLDS = 'holds';

/** docs/FAULTS.md, with what the tests of each row came to. */
export function faultsPage(resultOf: (row: number) => string, foot = footOf(resultOf)): string {
  return `${HEAD}\n${ROWS.map((row) => line(row, resultOf(row.row))).join('\n')}\n\n${foot}\n`;
}

export function footOf(resultOf: (row: number) => string): string {
  const held = ROWS.filter(({ row, file }) => file !== null && resultOf(row) === HOLDS).length;
  return `${held} of ${ROWS.length} rows hold here (${process.platform}-${process.arch}, Node ${process.versions.node}).`;
}

export function resultIn(states: ReadonlySet<string>): string {
  return states.has('failed') ? '**fails**' : states.has('passed') ? HOLDS : 'not run';
}

function line({ row, fault, promise, file, note, command }: Row, result: string): string {
  const proof = file ?? command;
  const where = [proof === undefined ? '' : `\`${proof}\``, note].filter(Boolean).join('; ');
  const untested = command === undefined ? 'none' : 'in CI';
  return `| ${row} | ${fault} | ${promise} | ${where} | ${file === null ? untested : result} |`;
}
