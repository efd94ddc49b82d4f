import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import { ROWS } from './rows.ts';

/** Journals of both kinds run what test/contract/journal.ts says. */
const runs = (file: string): string => file.replace('contract/journal.ts', 'integration/memory/journal.test.ts');

export default defineConfig({
  test: {
    ...base.test,
    root: '.',
    include: [...new Set(ROWS.flatMap(({ file }) => (file === null ? [] : [runs(file)])))],
    testNamePattern: /row \d\d: /,
  },
});
