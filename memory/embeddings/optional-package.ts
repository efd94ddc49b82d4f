import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';

const Manifest = z.looseObject({
  version: z.string().default(''),
  main: z.string().optional(),
  exports: z.unknown().optional(),
});
const CONDITIONS = ['node', 'import', 'module-sync', 'default'];

/**
 * A package that the user installed below a folder of ours, with all it exports. Node's own look-up begins where this
 * file lies, which is somewhere else.
 *
 * @throws CometError `index_failed`, naming the command that installs it
 */
export async function importOptional(dir: string, name: string, install: string): Promise<Record<string, unknown>> {
  const root = path.join(dir, 'node_modules', ...name.split('/'));
  try {
    const { main, exports } = Manifest.parse(JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')));
    const entry = entryOf(exports) ?? main ?? 'index.js';
    return (await import(pathToFileURL(path.join(root, entry)).href)) as Record<string, unknown>;
  } catch (cause) {
    throw new CometError('index_failed', `the embedder needs the package ${name}: ${install}`, { cause });
  }
}

/** Its version, null where it is not installed. */
export function installedVersion(dir: string, name: string): string | null {
  try {
    const file = path.join(dir, 'node_modules', ...name.split('/'), 'package.json');
    return Manifest.parse(JSON.parse(readFileSync(file, 'utf8'))).version;
  } catch {
    return null; // Not there, or nothing that can be loaded.
  }
}

/** The file of the package itself in what its `exports` say, undefined where they do not. */
function entryOf(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports;
  if (Array.isArray(exports)) return exports.map(entryOf).find((entry) => entry !== undefined);
  if (typeof exports !== 'object' || exports === null) return undefined;
  const branches = exports as Readonly<Record<string, unknown>>;
  if ('.' in branches) return entryOf(branches['.']);
  return CONDITIONS.map((condition) => entryOf(branches[condition])).find((entry) => entry !== undefined);
}
