import { defineConfig } from 'vitest/config';
import { systemProjects } from '../helpers/projects.ts';
import { ROWS } from './rows.ts';

const files = [...new Set(ROWS.flatMap(({ proofs }) => proofs.map(({ file }) => file)))];

export default defineConfig({
  test: {
    root: '.',
    reporters: ['default', './test/helpers/summary-reporter.ts'],
    projects: systemProjects(files, 2),
  },
});
