import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createSessionReader, type PastSession } from '../../engine/transcript/cost.ts';
import { transcriptFiles } from '../../engine/transcript/files.ts';

/**
 * Runs a benchmark on the sessions of `projects`, a folder of transcripts, or else of `real` in `data`; says so where there
 * are none. The oldest session comes first.
 */
export async function withSessions(
  { data, projects }: { readonly data: string; readonly projects?: string | undefined },
  run: (sessions: readonly PastSession[]) => Promise<void>,
): Promise<void> {
  const home = await mkdtemp(path.join(tmpdir(), 'comet-bench-'));
  try {
    const dir = path.resolve(projects ?? path.join(data, 'real'));
    const sessions = await readSessions(dir, home);
    if (sessions.length === 0) console.log(`skipped: no transcripts in ${dir}`);
    else await run(sessions);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function readSessions(dir: string, home: string): Promise<PastSession[]> {
  const files = await transcriptFiles(dir);
  const reader = createSessionReader();
  const sessions: PastSession[] = [];
  for (const file of files.length > 0 ? files : await unpack(dir, home)) sessions.push(await reader.read(file));
  const getStart = ([first]: PastSession): number => first?.requests[0]?.atMs ?? 0;
  return sessions.filter((session) => session.length > 0).sort((a, b) => getStart(a) - getStart(b));
}

/** Transcripts at any depth of `dir`, also packed ones. */
async function unpack(dir: string, home: string) {
  const names = await readdir(dir, { recursive: true }).catch(() => []);
  const project = path.join(home, 'project');
  await mkdir(project);
  for (const name of names.filter((each) => /\.jsonl(\.gz)?$/.test(each))) {
    const bytes = await readFile(path.join(dir, name));
    const text = name.endsWith('.gz') ? gunzipSync(bytes) : bytes;
    await writeFile(path.join(project, path.basename(name, '.gz')), text);
  }
  return await transcriptFiles(home);
}
