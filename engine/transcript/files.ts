import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { readPart } from '../../common/files.ts';
import { compareText, isRecord, parseJson, sha256 } from '../../common/text.ts';
import { createTranscriptReader } from '../../memory/index.ts';
import type { TranscriptSource } from '../../proxy/index.ts';

export interface TranscriptFile {
  readonly file: string;
  readonly bytes: number;
  /** Changes when the file does. */
  readonly version: string;
  readonly changedAtMs: number;
  /** Files of the subagents that the session started. */
  readonly agents: readonly string[];
}

/** Counts the readers: a later one finds more, so that it reads again what an earlier one has read. */
const READER = 2;

const START_BYTES = 4_096;
/** Holds the last answer, except before the longest tool results. */
const END_BYTES = 1024 * 1024;
const SESSION_FILE = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/;

/** A session is read whole; a larger file is no conversation. */
export const MOST_BYTES = 256 * 1024 * 1024;

/** Claude Code's transcripts, the oldest first: forks repeat what they were forked from. */
export async function transcriptFiles(projects: string): Promise<TranscriptFile[]> {
  const folders = await readdir(projects, { withFileTypes: true }).catch(() => []);
  const transcripts: TranscriptFile[] = [];
  for (const folder of folders) {
    if (!folder.isDirectory()) continue;
    const dir = path.join(projects, folder.name);
    const names = (await readdir(dir).catch(() => [])).filter((name) => name.endsWith('.jsonl'));
    const besides = await findAgents(dir, names.filter(isAgentFile));
    for (const name of names) {
      if (isAgentFile(name)) continue;
      const sessionId = path.basename(name, '.jsonl');
      const below = await agentsBelow(path.join(dir, sessionId, 'subagents'));
      const agents = [...(besides.get(sessionId) ?? []), ...below];
      const files = [path.join(dir, name), ...agents];
      const states = await Promise.all(files.map((file) => stat(file).catch(() => null)));
      if (states[0]?.isFile() !== true) continue;
      const bytes = states.reduce((sum, state) => sum + (state?.size ?? 0), 0);
      const seen = states.map((state, at) => `${files[at]}\n${state?.size}\n${state?.mtimeMs}`);
      const version = sha256([READER, ...seen].join('\n'));
      transcripts.push({ file: path.join(dir, name), bytes, version, changedAtMs: states[0].mtimeMs, agents });
    }
  }
  return transcripts.sort((a, b) => a.changedAtMs - b.changedAtMs || compareText(a.file, b.file));
}

const isAgentFile = (name: string): boolean => /^agent-.*\.jsonl$/.test(name);

/** Newer versions keep subagents in a folder of the session, also in folders below it. */
async function agentsBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile() && isAgentFile(entry.name));
  return files.map((entry) => path.join(entry.parentPath, entry.name)).sort();
}

/** Older versions keep them beside the sessions, which their lines name. */
async function findAgents(dir: string, names: readonly string[]): Promise<Map<string, string[]>> {
  const bySession = new Map<string, string[]>();
  for (const name of names.toSorted()) {
    const file = path.join(dir, name);
    // One that cannot be read is left out; its session is not.
    const start = await readPart(file, 0, START_BYTES).catch(() => '');
    const sessionId = /"sessionId"\s*:\s*"([^"\\]+)"/.exec(start)?.[1];
    if (sessionId !== undefined) bySession.set(sessionId, [...(bySession.get(sessionId) ?? []), file]);
  }
  return bySession;
}

/** Files of Claude Code's sessions; those of subagents have other names. */
export async function transcripts(claudeDir: string) {
  const projects = path.join(claudeDir, 'projects');
  const folders = await readdir(projects).catch(() => []);
  const found = folders.map(async (folder) => {
    return (await readdir(path.join(projects, folder)).catch(() => [])).flatMap((name) => {
      const id = SESSION_FILE.exec(name)?.[1];
      return id === undefined ? [] : [{ id, file: path.join(projects, folder, name) }];
    });
  });
  return (await Promise.all(found)).flat();
}

/** Reads each line of a session and of its subagents. @throws what reading a file throws */
export async function readTranscriptLines(
  { file, agents }: Pick<TranscriptFile, 'file' | 'agents'>,
  onLine: (text: string, agentId: string) => void,
): Promise<void> {
  for (const one of [file, ...agents]) {
    const agentId = one === file ? '' : path.basename(one, '.jsonl').replace(/^agent-/, '');
    const lines = createInterface({ input: createReadStream(one, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
    for await (const line of lines) onLine(line, agentId);
  }
}

export function openTranscripts(claudeDir: string): TranscriptSource {
  const filesOf = async (sessionId: string) =>
    (await transcripts(claudeDir)).flatMap(({ id, file }) => (id === sessionId ? [file] : []));
  return {
    async lastAnswerMs(sessionId) {
      const ends = (await filesOf(sessionId)).map((file) =>
        readPart(file, -END_BYTES, END_BYTES).then(lastTime, () => null),
      );
      const times = (await Promise.all(ends)).filter((time) => time !== null);
      return times.length === 0 ? null : Math.max(...times);
    },
    async prompts(sessionId) {
      const [file] = await filesOf(sessionId);
      const reader = createTranscriptReader(sessionId, 0);
      if (file !== undefined) await readTranscriptLines({ file, agents: [] }, reader.line);
      return reader.prompts();
    },
  };
}

function lastTime(text: string): number | null {
  const lines = text.split('\n');
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const line = lines[at] as string;
    const entry = line.includes('"assistant"') ? parseJson(line) : null;
    const isAnswer = isRecord(entry) && entry['type'] === 'assistant' && entry['isApiErrorMessage'] !== true;
    const time = isAnswer ? Date.parse(String(entry['timestamp'])) : Number.NaN;
    if (!Number.isNaN(time)) return time;
  }
  return null;
}
