import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const VERSION = readVersion(path.dirname(fileURLToPath(import.meta.url)));

/** The package is found from `bin/` in a checkout and from `dist/bin/` once built. */
function readVersion(from: string): string {
  for (const up of ['..', '../..']) {
    try {
      const text = readFileSync(path.join(from, up, 'package.json'), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
