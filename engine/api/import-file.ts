import { open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CometError } from '../../common/errors.ts';
import type { Memory } from '../../memory/index.ts';
import { isTurnLines, parseTurnLines } from '../../memory/ingest/turns-jsonl.ts';
import { isArchive } from '../../memory/model/archive.ts';
import type { OperationInput, OperationResults } from './contract.ts';

const START_BYTES = 512;
/** A document, not an export, which may hold a whole memory. */
const DOCUMENT_BYTES = 32 * 1024 * 1024;

/** An export or turns by what the first line says, any other text as a document. */
export async function importFile(
  memory: Pick<Memory, 'importAll' | 'importDocument' | 'importTurns'>,
  { file, as, projectDir = dirname(file), again = false }: OperationInput<'memory/import'>,
): Promise<OperationResults['memory/import']> {
  const { size, start } = await readable(file, startOf);
  if (as === 'nodes' || (as === undefined && isArchive(start))) return memory.importAll(await readable(file, readText));
  if (size > DOCUMENT_BYTES) {
    throw new CometError('unsafe_file', `${file} has ${Math.round(size / 2 ** 20)} MB; split it, a document takes 32`);
  }
  const text = await readable(file, readText);
  if (text.includes('\0') || text.includes('\uFFFD')) {
    throw new CometError('unsafe_file', `${file} is no text in UTF-8; convert it, then import it again`);
  }
  if (as === 'turns' || (as === undefined && isTurnLines(text))) return importTurns(memory, text, projectDir);
  return memory.importDocument({ file, text: text.replace(/^\uFEFF/, ''), projectDir, again });
}

async function importTurns(
  memory: Pick<Memory, 'importTurns'>,
  text: string,
  projectDir: string,
): Promise<OperationResults['memory/import']> {
  const sessions = parseTurnLines(text, projectDir);
  const met = new Set<string>();
  const sum = { turns: 0, added: 0, known: 0, skipped: 0 };
  for (const own of sessions.values()) {
    const report = await memory.importTurns({ turns: own, imported: 'file', dryRun: false, met });
    for (const name of ['turns', 'added', 'known', 'skipped'] as const) sum[name] += report[name];
  }
  return { kind: 'turns', sessions: sessions.size, ...sum };
}

const readText = (file: string): Promise<string> => readFile(file, 'utf8');

/** Enough to tell what it is, however large it is. */
async function startOf(file: string): Promise<{ readonly size: number; readonly start: string }> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(START_BYTES), position: 0 });
    return { size, start: buffer.toString('utf8', 0, bytesRead) };
  } finally {
    await handle.close();
  }
}

async function readable<T>(file: string, work: (file: string) => Promise<T>): Promise<T> {
  try {
    return await work(file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new CometError(
      code === 'ENOENT' ? 'not_found' : 'unsafe_file',
      `${file} cannot be read (${code}); name a file that you may read`,
      {
        cause: error,
      },
    );
  }
}
