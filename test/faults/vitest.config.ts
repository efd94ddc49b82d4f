import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import { ROWS } from './rows.ts';

export default defineConfig({
  test: {
    ...base.test,
    root: '.',
    include: [...new Set(ROWS.flatMap(({ file }) => (file === null ? [] : [file])))],
    testNamePattern: /row \d\d: /,
  },
});
