import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import { withoutMarkedBlock } from '../../install/index.ts';
import { type Import, isArchive, isTurnLines, parseTurnLines } from '../../memory/index.ts';
import { absolutePath, projectPath } from './schema.ts';

/** The engine reads the file itself: an export may be larger than a request. */
export const fileImportInput = z.strictObject({
  file: absolutePath,
  /** `nodes`: earlier name of `export`. */
  as: z.enum(['export', 'nodes', 'document', 'turns']).optional(),
  /** The user confirmed the origins that an export claims. */
  trusted: z.boolean().optional(),
  projectDir: projectPath.optional(),
  again: z.boolean().optional(),
});

/** For documents and turns; an export may hold a whole memory. */
const DOCUMENT_BYTES = 32 * 1024 * 1024;

/** Imports what `as` says; without it, turns where the first line shows them, and any other text as a document. */
export async function importFile(
  imports: Import,
  { file, as, trusted = false, projectDir = dirname(file), again = false }: z.infer<typeof fileImportInput>,
) {
  const refused = (reason: string) => new CometError('unsafe_file', `${file} ${reason}`);
  const stats = await readable(file, (name) => stat(name));
  if (stats.isDirectory()) throw refused('is a folder; name a file in it, or "claude" for the conversations');
  // The input or a pipe of a shell is not the same one here.
  if (!stats.isFile()) throw refused('is no file; write the text into one first');
  if (as === 'export' || as === 'nodes') return imports.importArchive(await readable(file, readText), trusted, again);
  if (stats.size > DOCUMENT_BYTES)
    throw refused(`has ${Math.round(stats.size / 2 ** 20)} MB; split it, a document takes 32 MB`);
  const text = await readable(file, readText);
  if (text.includes('\0') || text.includes('\uFFFD'))
    throw refused('is no text in UTF-8; convert it, then import it again');
  if (as === 'turns' || (as === undefined && isTurnLines(text))) return importTurns(imports, text, projectDir);
  if (as === undefined && isArchive(text)) {
    const next = 'import it with --as export, or as a text with --as document';
    throw new CometError('usage', `${file} is an export of comet-cc; ${next}`);
  }
  const own = withoutMarkedBlock(text.replace(/^\uFEFF/, ''), file);
  return imports.importDocument({ file, text: own, projectDir, again });
}

/** One message a line. */
async function importTurns(imports: Import, text: string, projectDir: string) {
  const sessions = parseTurnLines(text, projectDir);
  const seen = new Set<string>();
  const sum = { turns: 0, added: 0, known: 0, skipped: 0 };
  for (const own of sessions.values()) {
    const report = await imports.importTurns({ turns: own, imported: 'file', dryRun: false, seen });
    for (const name of ['turns', 'added', 'known', 'skipped'] as const) sum[name] += report[name];
  }
  return { kind: 'turns' as const, sessions: sessions.size, ...sum };
}

const readText = (file: string): Promise<string> => readFile(file, 'utf8');

async function readable<T>(file: string, work: (file: string) => Promise<T>): Promise<T> {
  return work(file).catch((cause: NodeJS.ErrnoException) => {
    const code = cause.code === 'ENOENT' ? 'not_found' : 'unsafe_file';
    throw new CometError(code, `${file} cannot be read (${cause.code}); name a file that you may read`, { cause });
  });
}
