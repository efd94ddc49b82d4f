import path from 'node:path';
import { z } from 'zod';
import { MODES, type Say, SCOPES } from '../../common/policy.ts';

export const PROJECT_FILE = '.comet-cc.json';

const projectFile = z.strictObject({ memory: z.enum(MODES).default('on'), scope: z.enum(SCOPES).default('all') });

/** @throws where it does not say what it may: a file of a project can take away, and nothing else */
export function parseProjectFile(text: string): Say {
  const { memory: mode, scope } = projectFile.parse(JSON.parse(text));
  return { mode, scope };
}

/** Where one that holds for `directory` may lie: in it, and in every directory above. */
export function projectFilesFor(directory: string): string[] {
  const files: string[] = [];
  for (let at = path.resolve(directory); ; at = path.dirname(at)) {
    files.push(path.join(at, PROJECT_FILE));
    if (path.dirname(at) === at) return files;
  }
}
