import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { ROWS, type Row } from './rows.ts';

const HEAD = `# Faults

What may go wrong, what holds then, and the test that proves it, each named \`row NN: …\`. Printed by \`npm run docs:faults\`, which runs them all; a test checks that every row has one. Processes, sockets and disks are real; \`COMET_FAULT\` ([0023](decisions/0023-faults-on-request.md)) makes what cannot be brought about from outside.

| row | fault | promise | test | last result |
|---|---|---|---|---|`;

/** Prints docs/FAULTS.md from what the tests of the rows came to. */
export default class FaultsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const results = new Map<number, Set<string>>();
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const number = Number(/^row (\d\d): /.exec(test.name)?.[1] ?? 0);
        results.set(number, (results.get(number) ?? new Set()).add(test.result().state));
      }
    }
    const lines = ROWS.map((row) => line(row, results.get(row.row) ?? new Set()));
    const held = lines.filter((text) => text.endsWith('| holds |')).length;
    const foot = `${held} of ${ROWS.length} rows hold here (${process.platform}-${process.arch}, Node ${process.versions.node}).`;
    writeFileSync('docs/FAULTS.md', `${HEAD}\n${lines.join('\n')}\n\n${foot}\n`);
  }
}

function line({ row, fault, promise, file, note }: Row, states: ReadonlySet<string>): string {
  const where = file === null ? (note ?? '') : [`\`${file}\``, note].filter(Boolean).join('; ');
  const result = states.has('failed') ? '**fails**' : states.has('passed') ? 'holds' : 'not run';
  return `| ${row} | ${fault} | ${promise} | ${where} | ${file === null ? 'none' : result} |`;
}
