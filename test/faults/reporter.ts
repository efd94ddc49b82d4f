import { readFileSync, writeFileSync } from 'node:fs';
import type { TestModule } from 'vitest/node';
import { differences, faultsPage, here, resultOf, type States } from './page.ts';
import { ROWS } from './rows.ts';

const PAGE = 'docs/FAULTS.md';

/**
 * Compares docs/FAULTS.md with a run that held the tests of all rows, or writes it where `COMET_FAULTS_PAGE=write`.
 *
 * @returns what differs
 */
export function reportFaults(modules: readonly TestModule[]): string[] {
  const states: States = new Map(
    modules.map((module) => [
      module.relativeModuleId,
      [...module.children.allTests()].map((test) => ({ name: test.name, state: test.result().state })),
    ]),
  );
  const files = new Set(ROWS.flatMap(({ proofs }) => proofs.map(({ file }) => file)));
  if ([...files].some((file) => !states.has(file))) return [];
  if (process.env['COMET_FAULTS_PAGE'] === 'write')
    writeFileSync(
      PAGE,
      faultsPage((row) => resultOf(row, states), here),
    );
  return differences(readFileSync(PAGE, 'utf8'), states);
}
