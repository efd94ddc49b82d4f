import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { ImportedTurn } from '../../memory/index.ts';
import { createTranscriptReader, type Skipped } from '../../memory/index.ts';

export interface TranscriptFile {
  readonly file: string;
  readonly bytes: number;
  /** Changes when the file does. */
  readonly version: string;
  readonly changedAtMs: number;
}

export interface Transcript {
  readonly turns: readonly ImportedTurn[];
  readonly skipped: Skipped;
}

/** Counts the readers: a later one finds more, so that it reads again what an earlier one has read. */
const READER = 2;

/** A session is read whole; a larger file is no conversation. */
export const MOST_BYTES = 256 * 1024 * 1024;

/** Claude Code's transcripts, the oldest first: forks repeat what they were forked from. */
export async function transcriptFiles(claudeDir: string): Promise<TranscriptFile[]> {
  const projects = path.join(claudeDir, 'projects');
  const folders = await readdir(projects, { withFileTypes: true }).catch(() => []);
  const found: TranscriptFile[] = [];
  for (const folder of folders) {
    if (!folder.isDirectory()) continue;
    const dir = path.join(projects, folder.name);
    for (const name of await readdir(dir).catch(() => [])) {
      if (!name.endsWith('.jsonl')) continue;
      const file = path.join(dir, name);
      const state = await stat(file).catch(() => null);
      if (state === null || !state.isFile()) continue;
      const { size: bytes, mtimeMs: changedAtMs } = state;
      const version = createHash('sha256').update(`${READER}\n${file}\n${bytes}\n${changedAtMs}`).digest('hex');
      found.push({ file, bytes, version, changedAtMs });
    }
  }
  return found.sort((a, b) => a.changedAtMs - b.changedAtMs || (a.file < b.file ? -1 : 1));
}

/** Claude Code's own memory files: the user's, and those of the project directories. */
export async function claudeMemoryFiles(claudeDir: string, projectDirs: readonly string[]): Promise<MemoryFile[]> {
  const wanted: MemoryFile[] = [{ file: path.join(claudeDir, 'CLAUDE.md'), projectDir: claudeDir }];
  for (const projectDir of projectDirs) {
    const own = path.join(claudeDir, 'projects', projectDir.replace(/[^A-Za-z0-9]/g, '-'), 'memory');
    const notes = (await readdir(own).catch(() => [])).filter((name) => name.endsWith('.md')).sort();
    const names = path.isAbsolute(projectDir) ? ['CLAUDE.md', 'CLAUDE.local.md', '.claude/CLAUDE.md'] : [];
    const files = [...names.map((name) => path.join(projectDir, name)), ...notes.map((name) => path.join(own, name))];
    wanted.push(...files.map((file) => ({ file, projectDir })));
  }
  const there = await Promise.all(
    wanted.map(({ file }) =>
      stat(file)
        .then((state) => state.isFile())
        .catch(() => false),
    ),
  );
  return wanted.filter((_, at) => there[at]);
}

export interface MemoryFile {
  readonly file: string;
  readonly projectDir: string;
}

/** @throws what reading the file throws */
export async function readTranscript(file: string): Promise<Transcript> {
  const reader = createTranscriptReader(path.basename(file, '.jsonl'), Math.floor((await stat(file)).mtimeMs));
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) reader.line(line);
  return { turns: reader.turns(), skipped: reader.skipped() };
}
